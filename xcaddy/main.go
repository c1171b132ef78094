// Command xcaddy is Caddy with its standard modules and the registry: what
// `xcaddy build` would make of it, for those who would rather use `go build`.
//
//	go build -tags nobadger,nomysql,nopgx -o caddy ./xcaddy
package main

import (
	_ "time/tzdata" // for systems that have no time zones, such as containers

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddy-terraform/caddy-terraform-registry"
)

func main() {
	caddycmd.Main()
}
