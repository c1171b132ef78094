#!/usr/bin/env bash
# Runs `caddy-terraform-registry publish` with the inputs of the action, which come as
# environment variables: none of them is ever a part of a script.
set -euo pipefail

caddy=$INPUT_COMMAND
if [ -n "$INPUT_DOWNLOAD" ]; then
	if [ -z "$INPUT_SHA256" ]; then
		echo '::error::download needs sha256, that of the file it names' >&2
		exit 2
	fi
	folder=$(mktemp -d "$RUNNER_TEMP/publish.XXXXXX")
	caddy=$folder/caddy
	curl --fail --silent --show-error --location --retry 3 --proto '=https' --output "$caddy" -- "$INPUT_DOWNLOAD"
	sum=$(sha256sum <"$caddy" 2>/dev/null || shasum -a 256 <"$caddy") # the second one on macOS
	if [ "${sum%% *}" != "$INPUT_SHA256" ]; then
		echo "::error::what was downloaded has the sha256 ${sum%% *}" >&2
		exit 2
	fi
	chmod +x "$caddy"
fi

arguments=("--to=$INPUT_TO")
add() {
	if [ -n "$2" ]; then arguments+=("$1=$2"); fi
}
add --version "$INPUT_VERSION"
add --docs "$INPUT_DOCS"
add --audience "$INPUT_AUDIENCE"
add --dry-run "$INPUT_DRY_RUN"
add --wait "$INPUT_WAIT"
if [ -n "$INPUT_FROM_GIT" ]; then
	add --from-git "$INPUT_FROM_GIT"
	add --path "$INPUT_PATH"
	add --tag-pattern "$INPUT_TAG_PATTERN"
	add --tag "$INPUT_TAG"
	add --all-tags "$INPUT_ALL_TAGS"
else
	arguments+=(-- "$INPUT_PATH")
fi
exec "$caddy" terraform-registry publish "${arguments[@]}"
