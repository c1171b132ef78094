package caddyfile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// off is the value that turns an option off.
const off = "off"

// An option is a subdirective.
type option struct {
	name  string
	parse parser
	list  bool // may be repeated
	block bool // may have a block
}

// options returns all options, in the order of the manual. They are parsed into h.
func options(h *module.Handler) []option {
	bound := func(parse func(*caddyfile.Dispenser, *module.Handler) error) parser {
		return func(d *caddyfile.Dispenser) error { return parse(d, h) }
	}
	return []option{
		{name: "root", parse: text(&h.Root)},
		{name: "providers", parse: text(&h.Providers)},
		{name: "modules", parse: text(&h.Modules)},
		{name: "keys", parse: text(&h.Keys)},
		{name: "fs", parse: text(&h.FileSystem)},
		{name: "hostname", parse: list(&h.Hostnames), list: true},
		{name: "prefix", parse: text(&h.Prefix)},
		{name: "public_url", parse: text(&h.PublicURL)},
		{name: "signing_key", parse: bound(signingKey)},
		{name: "signatures", parse: bound(signatures)},
		{name: "rescan", parse: interval("periodic scans", &h.Rescan)},
		{name: "poll", parse: interval("other instances", &h.Poll)},
		{name: "auth", parse: bound(auth), list: true, block: true},
		{name: "access", parse: bound(accessRules), block: true},
		{name: "links", parse: duration(&h.Links)},
		{name: "redirect", parse: bound(redirect)},
		{name: "login", parse: bound(login), block: true},
		{name: "upstream", parse: bound(upstream), list: true, block: true},
		{name: "git", parse: bound(git), block: true},
		{name: "ui", parse: bound(ui), block: true},
		{name: "publish", parse: bound(publish), block: true},
		{name: "tlog", parse: bound(tlog), block: true},
		{name: "usage", parse: bound(usage), block: true},
	}
}

// unmarshal parses the tokens of a directive into h. Errors have the file and the line.
func unmarshal(d *caddyfile.Dispenser, h *module.Handler) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Errf("unexpected argument '%s': the folder to serve goes into the block, as 'root %s'", d.Val(), d.Val())
	}
	allowed, seen := options(h), make(map[string]bool)
	var rules *caddyfile.Dispenser // at the beginning of the block of rules
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		i := slices.IndexFunc(allowed, func(o option) bool { return o.name == d.Val() })
		if i < 0 {
			return d.Errf("unrecognized subdirective '%s', the allowed ones are: %s", d.Val(), names(allowed))
		}
		o := allowed[i]
		if seen[o.name] && !o.list {
			return d.Errf("%s is already specified", o.name)
		}
		seen[o.name] = true
		if o.name == "access" {
			begin := *d
			rules = &begin
		}
		if err := o.parse(d); err != nil {
			return err
		}
		if !o.block && d.NextBlock(d.Nesting()) {
			return d.Errf("%s does not have a block", o.name)
		}
	}
	if number, err := h.CheckRuleHostnames(); err != nil {
		return seekRule(rules, number).WrapErr(err)
	}
	return nil
}

func names(all []option) string {
	var names []string
	for _, o := range all {
		names = append(names, o.name)
	}
	return strings.Join(names, ", ")
}

func signingKey(d *caddyfile.Dispenser, h *module.Handler) error {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 || args[0] == "" {
		return d.ArgErr()
	}
	key := &module.SigningKey{File: args[0]}
	if len(args) == 2 {
		key.Passphrase = args[1]
	}
	if args[0] == off {
		if len(args) == 2 {
			return d.ArgErr()
		}
		key = &module.SigningKey{Off: true}
	}
	h.SigningKey = key
	return nil
}

func signatures(d *caddyfile.Dispenser, h *module.Handler) error {
	if !d.AllArgs(&h.Signatures) {
		return d.ArgErr()
	}
	if !module.HasPlaceholder(h.Signatures) && h.Signatures != module.PreferSignatures && h.Signatures != module.RequireSignatures {
		return d.Errf("signatures is either %s or %s, not '%s'", module.PreferSignatures, module.RequireSignatures, h.Signatures)
	}
	return nil
}

// interval parses a word with one argument, a positive duration or off, which turns off what it is for.
func interval(kind string, field *caddy.Duration) parser {
	return func(d *caddyfile.Dispenser) error {
		name, value := d.Val(), ""
		if !d.AllArgs(&value) {
			return d.ArgErr()
		}
		if value == off {
			*field = -1
			return nil
		}
		interval, err := caddy.ParseDuration(value)
		if err != nil {
			return d.WrapErr(fmt.Errorf("%s: %w", name, err))
		}
		if interval <= 0 {
			return d.Errf("%s must be positive, not '%s': use '%s off' for no %s", name, value, name, kind)
		}
		*field = caddy.Duration(interval)
		return nil
	}
}

// defaultRedirect is how long URLs of a store are valid if no time is given. It is the
// same as for links.
const defaultRedirect = caddy.Duration(15 * time.Minute)

func redirect(d *caddyfile.Dispenser, h *module.Handler) error {
	if d.CountRemainingArgs() == 0 {
		h.Redirect = defaultRedirect
		return nil
	}
	return duration(&h.Redirect)(d)
}
