#!/bin/sh
# Runs a binary as the last stage of the Dockerfile does, on a copy of this system on which
# nothing can be written but /data and /config, not even /tmp:
# image.sh BINARY CADDYFILE USER CHECKED-URL COMMAND ENVIRONMENT…
set -eu
binary=$1 caddyfile=$2 user=$3 url=$4 command=$5
shift 5

log=/log
. "$(dirname "$0")/systemcopy.sh"

mkdir -p "$system/data" "$system/config" "$system/srv/registry/modules/acme/vpc/aws/1.0.0" "$system/etc/caddy-terraform-registry"
echo 'variable "name" {}' >"$system/srv/registry/modules/acme/vpc/aws/1.0.0/main.tf"
chown "$user" "$system/data" "$system/config"
cp "$binary" "$system/usr/bin/caddy-terraform-registry"
cp "$caddyfile" "$system/etc/caddy-terraform-registry/Caddyfile"
chmod 755 "$system/usr/bin/caddy-terraform-registry"
# As in a container of Docker.
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start

say 'serving'
unshare --mount chroot "$system" sh -c '
	mount --bind / / && mount -o remount,ro,bind / &&
	for folder in /data /config; do
		mount --bind $folder $folder && mount -o remount,rw,bind $folder || exit
	done &&
	mount -t tmpfs -o ro tmpfs /tmp && mount -t tmpfs -o ro tmpfs /run && cd /srv &&
	user=$1 command=$2 && shift 2 &&
	exec setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --no-new-privs \
		--inh-caps=-all --ambient-caps=-all --bounding-set=-all env -i PATH=/usr/bin "$@" $command' \
	sh "$user" "$command" "$@" >"$system$log" 2>&1 &
service=$!
get() { curl --silent --fail --noproxy '*' --cacert "$system/data/caddy/pki/authorities/local/root.crt" "$1"; }
tries=0
until get https://localhost/v1/modules/acme/vpc/aws/versions | grep -q 1.0.0; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] || fail 'it does not serve'
	kill -0 $service 2>/dev/null || fail 'it has ended'
	sleep 0.1
done
get "$url" >/dev/null || fail "the health check finds nothing at $url"
[ -e "$system/data/caddy/terraform_registry/signing_key.asc" ] || fail 'the signing key is not in the volume'
kill $service
wait $service || fail 'it does not end by itself'
