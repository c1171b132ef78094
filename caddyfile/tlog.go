package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// tlog parses the transparency log with its optional folder and block:
//
//	tlog [<folder>] {
//	    origin  <name>
//	    key     <file>
//	    require
//	}
func tlog(d *caddyfile.Dispenser, h *module.Handler) error {
	t := new(module.Tlog)
	if d.NextArg() {
		if t.Folder = d.Val(); t.Folder == "" || t.Folder == off {
			return d.Errf("tlog: '%s' is no folder: leave tlog out to have no log", t.Folder)
		}
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if d.Val() == "require" {
			if d.NextArg() {
				return d.ArgErr()
			}
			t.Require = true
			continue
		}
		texts := map[string]*string{"origin": &t.Origin, "key": &t.Key}
		text, ok := texts[d.Val()]
		if !ok {
			return d.Errf("unrecognized word '%s' in tlog, the allowed ones are: origin, key, require", d.Val())
		}
		if err := setText(d, text); err != nil {
			return err
		}
	}
	h.Tlog = t
	return nil
}
