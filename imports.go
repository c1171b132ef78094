// Package terraformregistry adds the Terraform and OpenTofu registry to Caddy:
//
//	xcaddy build --with github.com/caddy-terraform/caddy-terraform-registry
//
// It has no code of its own. It makes the module's path an import path, by which xcaddy,
// Caddy's download page and Caddy's documentation find the modules below it.
package terraformregistry

import (
	// The directive of the Caddyfile.
	_ "github.com/caddy-terraform/caddy-terraform-registry/caddyfile"
	// The command `caddy terraform-registry`.
	_ "github.com/caddy-terraform/caddy-terraform-registry/command"
	// The app and the HTTP handler.
	_ "github.com/caddy-terraform/caddy-terraform-registry/module"
)
