// Package command is the command `caddy terraform-registry` with its subcommands:
// it serves a folder without a configuration file, works on trees, rules and tokens
// files from a terminal, and publishes to registries elsewhere.
//
// Standard output has the result, standard error what is said about it. Most
// subcommands exit with 0 if all is well, 1 if something is not, and 2 if they
// could not do their work.
package command
