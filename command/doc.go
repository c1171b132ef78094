// Package command is the command `caddy terraform-registry` with its subcommands:
// it serves a folder without a configuration file, works on trees, rules and tokens
// files from a terminal, and publishes to registries elsewhere.
//
// Standard output has the result, and standard error has messages about it. Most subcommands
// exit with 0 if all is well, 1 if there is a problem, and 2 if they could not do their work.
package command
