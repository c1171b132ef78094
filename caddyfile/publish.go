package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// publish parses the optional block of publishing:
//
//	publish {
//	    max_size        <size>
//	    staging         <duration>
//	    max_staged      <size>
//	    max_staged_each <size>
//	}
func publish(d *caddyfile.Dispenser, h *module.Handler) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	p := new(module.Publish)
	h.Publish = p
	return parseBlock(d, "publish",
		word{"max_size", checked(size(&p.MaxSize), p.Validate)},
		word{"staging", checked(duration(&p.Staging), p.Validate)},
		word{"max_staged", checked(size(&p.MaxStaged), p.Validate)},
		word{"max_staged_each", checked(size(&p.MaxStagedEach), p.Validate)},
	)
}
