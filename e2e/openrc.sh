#!/bin/sh
# Starts, reloads and stops the service as Alpine's init would, on a copy of this system:
# openrc.sh APK DEBS, which are an unpacked apk, and a folder with the packages of OpenRC if
# this system does not have it. Debian's OpenRC knows no capabilities: the service gets ports that need none.
set -eu
apk=$1 debs=$2
name=caddy-terraform-registry

log=/var/log/$name.log
. "$(dirname "$0")/systemcopy.sh"

if ! chroot "$system" test -e /sbin/openrc-run; then
	cp "$debs"/*.deb "$system/tmp"
	chroot "$system" sh -c 'dpkg --unpack --force-all /tmp/*.deb'
fi
# What the boot has made when services start.
for folder in starting started stopping inactive wasinactive failed hotplugged daemons options exclusive scheduled tmp; do
	mkdir -p "$system/run/openrc/$folder"
done
touch "$system/run/openrc/softlevel"
cp -a "$apk/etc" "$apk/usr" "$system"
service() { chroot "$system" /sbin/openrc-run "/etc/init.d/$name" --nodeps "$@"; }
caddyfile=$system/etc/$name/Caddyfile

say 'installing'
chroot "$system" sh -s 1.2.3 <"$apk/.post-install"
sed -i 's/^capabilities=/: &/' "$system/etc/init.d/$name"
sed -i 's/^localhost {/localhost:8443 {/; s/^{/{\n\thttp_port 8080/' "$caddyfile"

say 'starting'
service start || fail 'it does not start'
tries=0
until curl --silent --fail --noproxy '*' --insecure https://localhost:8443/.well-known/terraform.json | grep modules.v1; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] || fail 'it does not serve'
	sleep 0.1
done
service status || fail 'it does not know that it runs'
pid=$(chroot "$system" pgrep -u $name) || fail 'it runs as another user'

say 'reloading'
service reload || fail 'it does not reload'
kill -0 "$pid" || fail 'a reload has ended it'

say 'restarting with a mistake in the Caddyfile'
cp "$caddyfile" "$system/tmp/Caddyfile"
sed -i 's/terraform_registry {/terraform_registri {/' "$caddyfile"
service restart >"$system/tmp/out" 2>&1 || true # OpenRC's status is 0 all the same
grep -q 'unrecognized directive: terraform_registri' "$system/tmp/out" || fail "it says $(cat "$system/tmp/out")"
kill -0 "$pid" || fail 'that has ended it'
service status || fail 'it does not know that it still runs'
cat "$system/tmp/Caddyfile" >"$caddyfile"

say 'stopping'
service stop || fail 'it does not stop'
! kill -0 "$pid" 2>/dev/null || fail 'it runs after it has been stopped'
grep -q 'shutdown complete' "$system$log" || fail 'the log lacks its end'

say 'starting with a mistake in the Caddyfile'
sed -i 's/terraform_registry {/terraform_registri {/' "$caddyfile"
! service start >"$system/tmp/out" 2>&1 || fail 'it starts'
grep -q 'unrecognized directive: terraform_registri' "$system/tmp/out" || fail "it says $(cat "$system/tmp/out")"
