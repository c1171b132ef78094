package caddyfile

import (
	"fmt"
	"math"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// upstream is the registries of some hostnames, with how they are mirrored.
func upstream(d *caddyfile.Dispenser, h *module.Handler) error {
	u := &module.Upstream{Hostnames: d.RemainingArgs()}
	if len(u.Hostnames) == 0 {
		return d.Err("upstream needs the hostnames that are mirrored, such as registry.terraform.io")
	}
	texts := map[string]*string{"mirror": &u.Mirror, "url": &u.URL, "signatures": &u.Signatures, "token": &u.Token}
	lists := map[string]*[]string{"allow": &u.Allow, "deny": &u.Deny, "platforms": &u.Platforms, "private": &u.Private}
	durations := map[string]*caddy.Duration{"versions_ttl": &u.VersionsTTL, "min_age": &u.MinAge, "timeout": &u.Timeout}
	sizes := map[string]*int64{"max_held": &u.MaxHeld}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word := d.Val()
		switch {
		case texts[word] != nil:
			if *texts[word] != "" {
				return d.Errf("%s is already specified", word)
			}
			if !d.AllArgs(texts[word]) || *texts[word] == "" {
				return d.ArgErr()
			}
		case lists[word] != nil:
			words := d.RemainingArgs()
			if len(words) == 0 {
				return d.ArgErr()
			}
			*lists[word] = append(*lists[word], words...)
		case durations[word] != nil:
			if *durations[word] != 0 {
				return d.Errf("%s is already specified", word)
			}
			if err := positiveDuration(d, durations[word]); err != nil {
				return err
			}
		case sizes[word] != nil:
			if *sizes[word] != 0 {
				return d.Errf("%s is already specified", word)
			}
			if err := positiveSize(d, sizes[word]); err != nil {
				return err
			}
		default:
			return d.Errf("unrecognized word '%s' in upstream, the allowed ones are: mirror, url, allow, deny, platforms, max_held, versions_ttl, min_age, signatures, token, timeout, private", word)
		}
	}
	h.Upstreams = append(h.Upstreams, u)
	return nil
}

// positiveSize is an option with one argument that is a number of bytes, such as
// 500GiB.
func positiveSize(d *caddyfile.Dispenser, into *int64) error {
	name, value := d.Val(), ""
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

// positiveDuration is an option with one argument that is a duration.
func positiveDuration(d *caddyfile.Dispenser, into *caddy.Duration) error {
	name, value := d.Val(), ""
	if !d.AllArgs(&value) {
		return d.ArgErr()
	}
	duration, err := caddy.ParseDuration(value)
	if err != nil {
		return d.WrapErr(fmt.Errorf("%s: %w", name, err))
	}
	if duration <= 0 {
		return d.Errf("%s must be longer than nothing, not '%s'", name, value)
	}
	*into = caddy.Duration(duration)
	return nil
}
