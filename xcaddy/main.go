// Command xcaddy is Caddy with its standard modules and the registry, as `xcaddy build`
// would build it. It is meant for people who prefer `go build`.
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
