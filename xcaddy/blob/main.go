// Command blob is the Caddy of the folder above with the file system for object stores.
// It is the second flavour of the binary, which is larger because of the SDKs of these
// stores.
//
//	go build -C xcaddy/blob -tags nobadger,nomysql,nopgx -o ../../caddy
package main

import (
	_ "time/tzdata" // for systems that have no time zones, such as containers

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddy-terraform/caddy-terraform-registry"
	_ "github.com/caddy-terraform/caddy-terraform-registry/blob"
)

func main() {
	caddycmd.Main()
}
