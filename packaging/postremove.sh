#!/bin/sh
# The user, the registry's folder, its keys and certificates stay: they are data.
set -e

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
