#!/bin/sh
# Writes the man pages and the completions of shells, which the binary makes itself, into
# a folder: generate.sh FOLDER
set -eu
cd "$(dirname "$0")/.."
folder=${1:?which folder}

rm -rf "$folder"
mkdir -p "$folder/man" "$folder/completions"
binary=$folder/caddy-terraform-registry
env -u GOOS -u GOARCH CGO_ENABLED=0 go build -trimpath -tags nobadger,nomysql,nopgx -o "$binary" \
	-ldflags '-s -w -X github.com/caddyserver/caddy/v2.CustomBinaryName=caddy-terraform-registry' ./xcaddy
"$binary" manpage --directory "$folder/man" >/dev/null
for shell in bash zsh fish; do
	"$binary" completion "$shell" >"$folder/completions/$shell"
done
rm "$binary"

# An apk contains the times of these files; with those of the checkout no two would be the same.
touch -d "@$(git log -1 --format=%ct)" packaging/postinstall.sh packaging/preremove.sh packaging/postremove.sh
