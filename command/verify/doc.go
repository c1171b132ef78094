// Package verify is the subcommand that checks what clients have downloaded against what is on
// record.
package verify
