package caddyfile

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// ui parses the path and the optional block of the pages:
//
//	ui [<path>] {
//	    name <name>
//	    logo <file>
//	    link <text> <url>
//	}
func ui(d *caddyfile.Dispenser, h *module.Handler) error {
	u := new(module.UI)
	args := d.RemainingArgs()
	if len(args) > 1 || len(args) == 1 && args[0] == "" {
		return d.ArgErr()
	}
	if len(args) == 1 {
		u.Path = args[0]
	}
	if u.Path != "" && !strings.HasPrefix(u.Path, "/") && !strings.HasPrefix(u.Path, "{") {
		return d.Errf("ui: the path '%s' does not start with a slash", u.Path)
	}
	h.UI = u
	return parseBlock(d, "ui",
		word{"name", text(&u.Name)},
		word{"logo", text(&u.Logo)},
		word{"link", func(d *caddyfile.Dispenser) error {
			var l module.UILink
			if !d.AllArgs(&l.Text, &l.URL) {
				return d.ArgErr()
			}
			u.Links = append(u.Links, l)
			return nil
		}},
	)
}
