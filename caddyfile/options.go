package caddyfile

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// off is the value that turns an option off.
const off = "off"

// An option is a subdirective.
type option struct {
	name  string
	parse func(d *caddyfile.Dispenser, h *module.Handler) error // into h
	list  bool                                                  // may be repeated
	block bool                                                  // may have a block
}

// options returns all options, in the order of the manual.
func options() []option {
	return []option{
		{name: "root", parse: text(func(h *module.Handler) *string { return &h.Root })},
		{name: "providers", parse: text(func(h *module.Handler) *string { return &h.Providers })},
		{name: "modules", parse: text(func(h *module.Handler) *string { return &h.Modules })},
		{name: "keys", parse: text(func(h *module.Handler) *string { return &h.Keys })},
		{name: "fs", parse: text(func(h *module.Handler) *string { return &h.FileSystem })},
		{name: "hostname", parse: hostname, list: true},
		{name: "prefix", parse: text(func(h *module.Handler) *string { return &h.Prefix })},
		{name: "public_url", parse: text(func(h *module.Handler) *string { return &h.PublicURL })},
		{name: "signing_key", parse: signingKey},
		{name: "signatures", parse: signatures},
		{name: "rescan", parse: interval("rescan", "periodic scans", func(h *module.Handler) *caddy.Duration { return &h.Rescan })},
		{name: "poll", parse: interval("poll", "other instances", func(h *module.Handler) *caddy.Duration { return &h.Poll })},
		{name: "auth", parse: auth, list: true, block: true},
		{name: "access", parse: accessRules, block: true},
		{name: "links", parse: duration(func(h *module.Handler) *caddy.Duration { return &h.Links })},
		{name: "redirect", parse: redirect},
		{name: "login", parse: login, block: true},
		{name: "upstream", parse: upstream, list: true, block: true},
		{name: "git", parse: git, block: true},
		{name: "ui", parse: ui, block: true},
		{name: "publish", parse: publish, block: true},
		{name: "tlog", parse: tlog, block: true},
		{name: "usage", parse: usage, block: true},
	}
}

// unmarshal parses the tokens of a directive into h. Errors have the file and the line.
func unmarshal(d *caddyfile.Dispenser, h *module.Handler) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Errf("unexpected argument '%s': the folder to serve goes into the block, as 'root %s'", d.Val(), d.Val())
	}
	allowed, seen := options(), make(map[string]bool)
	var rules *caddyfile.Dispenser // at the beginning of the block of rules
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		o, ok := find(allowed, d.Val())
		if !ok {
			return d.Errf("unrecognized subdirective '%s', the allowed ones are: %s", d.Val(), names(allowed))
		}
		if seen[o.name] && !o.list {
			return d.Errf("%s is already specified", o.name)
		}
		seen[o.name] = true
		if o.name == "access" {
			begin := *d
			rules = &begin
		}
		if err := o.parse(d, h); err != nil {
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

func find(all []option, name string) (option, bool) {
	for _, o := range all {
		if o.name == name {
			return o, true
		}
	}
	return option{}, false
}

func names(all []option) string {
	var names []string
	for _, o := range all {
		names = append(names, o.name)
	}
	return strings.Join(names, ", ")
}

// text parses an option with one argument, which is not changed.
func text(field func(*module.Handler) *string) func(*caddyfile.Dispenser, *module.Handler) error {
	return func(d *caddyfile.Dispenser, h *module.Handler) error { return setText(d, field(h)) }
}

// setText parses a word with one argument, which may stand once.
func setText(d *caddyfile.Dispenser, field *string) error {
	word := d.Val()
	switch {
	case *field != "":
		return d.Errf("%s is already specified", word)
	case !d.AllArgs(field):
		return d.ArgErr()
	case *field == "":
		return d.Errf("%s is empty", word)
	}
	return nil
}

// addWords adds the arguments of a word, which may be repeated, to a list.
func addWords(d *caddyfile.Dispenser, list *[]string) error {
	words := d.RemainingArgs()
	if len(words) == 0 {
		return d.ArgErr()
	}
	*list = append(*list, words...)
	return nil
}

func hostname(d *caddyfile.Dispenser, h *module.Handler) error { return addWords(d, &h.Hostnames) }

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

// interval parses an option with one argument, a positive duration or off. off disables
// the option.
func interval(name, kind string, field func(*module.Handler) *caddy.Duration) func(*caddyfile.Dispenser, *module.Handler) error {
	return func(d *caddyfile.Dispenser, h *module.Handler) error {
		var value string
		if !d.AllArgs(&value) {
			return d.ArgErr()
		}
		if value == off {
			*field(h) = -1
			return nil
		}
		interval, err := caddy.ParseDuration(value)
		if err != nil {
			return d.WrapErr(fmt.Errorf("%s: %w", name, err))
		}
		if interval <= 0 {
			return d.Errf("%s must be positive, not '%s': use '%s off' for no %s", name, value, name, kind)
		}
		*field(h) = caddy.Duration(interval)
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
	return positiveDuration(d, &h.Redirect)
}

// duration parses an option with one argument, a positive duration.
func duration(field func(*module.Handler) *caddy.Duration) func(*caddyfile.Dispenser, *module.Handler) error {
	return func(d *caddyfile.Dispenser, h *module.Handler) error { return positiveDuration(d, field(h)) }
}

// positiveSize parses a word with one argument, a number of bytes such as 500GiB, which may stand once.
func positiveSize(d *caddyfile.Dispenser, into *int64) error {
	name, value := d.Val(), ""
	if *into != 0 {
		return d.Errf("%s is already specified", name)
	}
	if !d.AllArgs(&value) {
		return d.ArgErr()
	}
	size, err := humanize.ParseBytes(value)
	if err != nil || size == 0 || size > math.MaxInt64 {
		return d.Errf("%s: '%s' is not a size, write it like 500GiB", name, value)
	}
	*into = int64(size)
	return nil
}

// positiveDuration parses a word with one argument, a duration, which may stand once.
func positiveDuration(d *caddyfile.Dispenser, into *caddy.Duration) error {
	name, value := d.Val(), ""
	if *into != 0 {
		return d.Errf("%s is already specified", name)
	}
	if !d.AllArgs(&value) {
		return d.ArgErr()
	}
	duration, err := caddy.ParseDuration(value)
	if err != nil {
		return d.WrapErr(fmt.Errorf("%s: %w", name, err))
	}
	if duration <= 0 {
		return d.Errf("%s must be positive, not '%s'", name, value)
	}
	*into = caddy.Duration(duration)
	return nil
}
