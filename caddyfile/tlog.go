package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// tlog parses the transparency log with its optional folder and block:
//
//	tlog [<folder>] {
//	    origin <name>
//	    key    <file>
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
		words := map[string]*string{"origin": &t.Origin, "key": &t.Key}
		word := d.Val()
		value, ok := words[word]
		switch {
		case !ok:
			return d.Errf("unrecognized word '%s' in tlog, the allowed ones are: origin, key", word)
		case *value != "":
			return d.Errf("%s is already specified", word)
		case !d.AllArgs(value):
			return d.ArgErr()
		case *value == "":
			return d.Errf("%s is empty", word)
		}
	}
	h.Tlog = t
	return nil
}
