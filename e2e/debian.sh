#!/bin/sh
# Installs a deb on a copy of this system, starts the service as its unit would, upgrades
# it, changes to the other flavour and back, and removes it:
# debian.sh PACKAGE NEWER-PACKAGE OTHER-FLAVOUR
set -eu
package=$1 newer=$2 other=$3
name=caddy-terraform-registry

log=/tmp/log
. "$(dirname "$0")/systemcopy.sh"

cp "$package" "$system/tmp/package.deb"
cp "$newer" "$system/tmp/newer.deb"
cp "$other" "$system/tmp/other.deb"
inside() { chroot "$system" "$@"; }

# setting prints what the unit has for a key.
setting() { sed -n "s/^$1=//p" "$system/usr/lib/systemd/system/$name.service"; }

# start runs the service as systemd would: its user and capabilities, its environment, its
# folders, no new privileges, and a system that cannot be written to but where it says.
start() {
	user=$(setting User)
	mkdir -p "$system/run/$(setting RuntimeDirectory)"
	chroot "$system" chown "$user" "/run/$(setting RuntimeDirectory)" "/var/lib/$(setting StateDirectory)"
	set --
	for variable in $(setting Environment); do set -- "$@" "$variable"; done
	unshare --mount chroot "$system" sh -c '
		mount --bind / / && mount -o remount,ro,bind / &&
		mount --bind /var/lib/'"$name /var/lib/$name"' && mount -o remount,rw,bind /var/lib/'"$name"' &&
		exec setpriv --reuid '"$user"' --regid '"$user"' --init-groups --no-new-privs \
			--inh-caps=-all,+net_bind_service --ambient-caps=-all,+net_bind_service --bounding-set=-all,+net_bind_service \
			env -i "$@"' sh "$@" $(setting ExecStart) >"$system$log" 2>&1 &
	service=$!
}
get() {
	curl --silent --fail --noproxy '*' --cacert "$system/var/lib/$name/caddy/pki/authorities/local/root.crt" "https://localhost$1"
}
# await repeats a request until its answer has a text, for a minute.
await() {
	tries=0
	until get "$1" | grep -q "$2"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || fail "$1 does not say $2: $(get "$1" || true)"
		kill -0 $service 2>/dev/null || fail 'the service has ended'
		sleep 0.1
	done
}
stop() {
	kill $service
	wait $service || true
}

say 'installing'
inside dpkg --install /tmp/package.deb
inside getent passwd $name
mkdir -p "$system/var/lib/$name/registry/modules/acme/vpc/aws/1.0.0"
echo 'variable "name" {}' >"$system/var/lib/$name/registry/modules/acme/vpc/aws/1.0.0/main.tf"
[ -e "$system/usr/share/man/man8/$name.8" ] || fail 'there is no man page'

# The service can read what is there before its first start.
say 'validating as root'
inside $name validate --config /etc/$name/Caddyfile

say 'serving'
start
await /.well-known/terraform.json modules.v1
await /v1/modules/acme/vpc/aws/versions 1.0.0
key=$(sha256sum "$system/var/lib/$name/caddy/terraform_registry/signing_key.asc")
stop

# The unit's environment has no part in it: an operator gives the commands of the manual.
say 'backing up'
inside su -s /bin/sh $name -c "$name storage export --config /etc/$name/Caddyfile --output -" >"$system/tmp/storage.tar"
tar -tf "$system/tmp/storage.tar" | grep -q terraform_registry/signing_key.asc || fail 'the backup lacks the signing key'

say 'upgrading'
echo '# by an operator' >>"$system/etc/$name/Caddyfile"
inside dpkg --install /tmp/newer.deb
grep -q '# by an operator' "$system/etc/$name/Caddyfile" || fail 'the Caddyfile was replaced'
inside /usr/bin/$name version | grep -q '^v1.3.0 ' || fail 'it is not the newer version'
start
await /v1/modules/acme/vpc/aws/versions 1.0.0
[ "$key" = "$(sha256sum "$system/var/lib/$name/caddy/terraform_registry/signing_key.asc")" ] || fail 'the signing key is another one'
stop

say 'changing the flavour'
for package in other newer; do
	inside dpkg --install /tmp/$package.deb
	grep -q '# by an operator' "$system/etc/$name/Caddyfile" || fail 'the Caddyfile was replaced'
	blob=$(inside /usr/bin/$name list-modules | grep -cx caddy.fs.blob || true)
	[ "$package $blob" = 'other 1' ] || [ "$package $blob" = 'newer 0' ] || fail "the flavour $package has caddy.fs.blob $blob times"
	start
	await /v1/modules/acme/vpc/aws/versions 1.0.0
	stop
done

say 'removing'
inside dpkg --remove $name
[ ! -e "$system/usr/bin/$name" ] || fail 'the binary is still there'
grep -q '# by an operator' "$system/etc/$name/Caddyfile" || fail 'the Caddyfile is gone'
inside dpkg --purge $name
[ ! -e "$system/etc/$name/Caddyfile" ] || fail 'purge left the Caddyfile'
[ -e "$system/var/lib/$name/registry/modules/acme/vpc/aws/1.0.0/main.tf" ] || fail 'the registry is gone'
[ -e "$system/var/lib/$name/caddy/terraform_registry/signing_key.asc" ] || fail 'the signing key is gone'
