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
	h.Tlog = t
	return parseBlock(d, "tlog",
		word{"origin", text(&t.Origin)},
		word{"key", text(&t.Key)},
		word{"require", func(d *caddyfile.Dispenser) error {
			if d.NextArg() {
				return d.ArgErr()
			}
			t.Require = true
			return nil
		}},
	)
}
