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
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		texts := map[string]*string{"name": &u.Name, "logo": &u.Logo}
		switch word := d.Val(); word {
		case "name", "logo":
			if err := setText(d, texts[word]); err != nil {
				return err
			}
		case "link":
			var l module.UILink
			if !d.AllArgs(&l.Text, &l.URL) {
				return d.ArgErr()
			}
			u.Links = append(u.Links, l)
		default:
			return d.Errf("unrecognized word '%s' in ui, the allowed ones are: name, logo, link", word)
		}
	}
	h.UI = u
	return nil
}
