package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// usage parses the optional block of the counts of downloads:
//
//	usage {
//	    by   subject|group
//	    keep <duration>
//	}
func usage(d *caddyfile.Dispenser, h *module.Handler) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	u := new(module.Usage)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch word := d.Val(); word {
		case "by":
			if err := setText(d, &u.By); err != nil {
				return err
			}
		case "keep":
			if err := positiveDuration(d, &u.Keep); err != nil {
				return err
			}
		default:
			return d.Errf("unrecognized word '%s' in usage, the allowed ones are: by, keep", word)
		}
		known := *u
		if module.HasPlaceholder(known.By) {
			known.By = ""
		}
		if err := known.Validate(); err != nil {
			return d.WrapErr(err)
		}
	}
	h.Usage = u
	return nil
}
