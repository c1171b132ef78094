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
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		sizes := map[string]*int64{"max_size": &p.MaxSize, "max_staged": &p.MaxStaged, "max_staged_each": &p.MaxStagedEach}
		switch word := d.Val(); word {
		case "max_size", "max_staged", "max_staged_each":
			if err := positiveSize(d, sizes[word]); err != nil {
				return err
			}
		case "staging":
			if err := positiveDuration(d, &p.Staging); err != nil {
				return err
			}
		default:
			return d.Errf("unrecognized word '%s' in publish, the allowed ones are: max_size, staging, max_staged, max_staged_each", word)
		}
		if err := p.Validate(); err != nil {
			return d.WrapErr(err)
		}
	}
	h.Publish = p
	return nil
}
