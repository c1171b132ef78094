#!/bin/sh
# Stops the service when the package is removed, and not when it is upgraded: then the
# argument is "upgrade" for a deb, and 1 for an rpm.
set -e

case ${1:-remove} in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now caddy-terraform-registry.service
	fi
	;;
esac

# Alpine runs this at a removal alone.
if command -v rc-service >/dev/null && [ -x /etc/init.d/caddy-terraform-registry ]; then
	rc-service --quiet --ifstarted caddy-terraform-registry stop
	rc-update --quiet --all delete caddy-terraform-registry || true # it may be in no runlevel
fi
