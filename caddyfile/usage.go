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
	h.Usage = u
	check := func() error {
		known := *u
		if module.HasPlaceholder(known.By) {
			known.By = ""
		}
		return known.Validate()
	}
	return parseBlock(d, "usage",
		word{"by", checked(text(&u.By), check)},
		word{"keep", checked(duration(&u.Keep), check)},
	)
}
