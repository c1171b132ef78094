#!/bin/sh
# Makes the service's user and folders. Nothing is started at the first installation: the
# Caddyfile does not have the registry's name yet. An upgrade restarts what runs.
set -e

user=caddy-terraform-registry
state=/var/lib/$user

if ! getent passwd "$user" >/dev/null; then
	if command -v useradd >/dev/null; then
		useradd --system --user-group --home-dir "$state" --no-create-home --shell /usr/sbin/nologin "$user"
	else # Alpine
		addgroup -S "$user"
		adduser -S -D -H -h "$state" -s /sbin/nologin -G "$user" "$user"
	fi
fi
if [ ! -d "$state/registry" ]; then
	mkdir -p "$state/registry"
	chown "$user:$user" "$state" "$state/registry"
	# Makes Caddy's storage and its authority. If root were the first to run a command with
	# --config, they would belong to root, and the service could not read them.
	su -s /bin/sh "$user" -c "$user validate --config /etc/$user/Caddyfile" >/dev/null 2>&1 || true
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart "$user.service"
elif command -v rc-service >/dev/null && rc-service --quiet "$user" status >/dev/null 2>&1; then
	rc-service "$user" restart
fi

# The second argument is the version that a deb is upgraded from; a first installation of
# an rpm has the argument 1, and that of an apk one argument, its version.
start=
if { [ "$1" = configure ] && [ -z "$2" ]; } || [ "$1" = 1 ]; then
	start="systemctl enable --now $user"
elif command -v rc-update >/dev/null && [ $# = 1 ]; then
	start="rc-update add $user && rc-service $user start"
fi
if [ -n "$start" ]; then
	cat <<-END

		Put the registry's name into /etc/$user/Caddyfile, then:

		    $start

		It serves $state/registry.

	END
fi
