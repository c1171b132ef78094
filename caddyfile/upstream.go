package caddyfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// upstream parses hostnames and the block of options for mirroring them.
func upstream(d *caddyfile.Dispenser, h *module.Handler) error {
	u := &module.Upstream{Hostnames: d.RemainingArgs()}
	if len(u.Hostnames) == 0 {
		return d.Err("upstream needs the hostnames to mirror, such as registry.terraform.io")
	}
	texts := map[string]*string{"mirror": &u.Mirror, "url": &u.URL, "signatures": &u.Signatures, "token": &u.Token}
	lists := map[string]*[]string{"allow": &u.Allow, "deny": &u.Deny, "platforms": &u.Platforms, "private": &u.Private}
	durations := map[string]*caddy.Duration{"versions_ttl": &u.VersionsTTL, "min_age": &u.MinAge, "timeout": &u.Timeout}
	sizes := map[string]*int64{"max_held": &u.MaxHeld}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word := d.Val()
		switch {
		case word == "modules":
			if err := upstreamModules(d, u); err != nil {
				return err
			}
		case word == "host":
			if err := upstreamHost(d, u); err != nil {
				return err
			}
		case texts[word] != nil:
			if err := setText(d, texts[word]); err != nil {
				return err
			}
		case lists[word] != nil:
			if err := addWords(d, lists[word]); err != nil {
				return err
			}
		case durations[word] != nil:
			if err := positiveDuration(d, durations[word]); err != nil {
				return err
			}
		case sizes[word] != nil:
			if err := positiveSize(d, sizes[word]); err != nil {
				return err
			}
		default:
			return d.Errf("unrecognized word '%s' in upstream, the allowed ones are: mirror, url, allow, deny, platforms, max_held, versions_ttl, min_age, signatures, token, timeout, private, modules, host", word)
		}
	}
	h.Upstreams = append(h.Upstreams, u)
	return nil
}

// upstreamModules parses `modules [<url>]`.
func upstreamModules(d *caddyfile.Dispenser, u *module.Upstream) error {
	if u.Modules {
		return d.Err("modules is already specified")
	}
	u.Modules = true
	if d.NextArg() {
		if u.ModulesURL = d.Val(); u.ModulesURL == "" {
			return d.ArgErr()
		}
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

// upstreamHost parses the name of a host and the block of its credentials.
func upstreamHost(d *caddyfile.Dispenser, u *module.Upstream) error {
	h := new(module.UpstreamHost)
	err := hostBlock(d, &h.Name, &h.Allow, h.CheckAllow, []string{"user", "token"}, &h.User, &h.Token)
	u.Hosts = append(u.Hosts, h)
	return err
}

// hostBlock parses the name of a host of repositories, and a block with the repositories that its
// credentials are for, and with words that have one argument.
func hostBlock(d *caddyfile.Dispenser, name *string, allow *[]string, check func(string) error, words []string, fields ...*string) error {
	if !d.AllArgs(name) || *name == "" {
		return d.Err("host needs one name, such as git.example.com")
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word := d.Val()
		switch {
		case word == "allow":
			patterns := d.RemainingArgs()
			if len(patterns) == 0 {
				return d.ArgErr()
			}
			for _, pattern := range patterns {
				if err := check(pattern); err != nil {
					return d.WrapErr(fmt.Errorf("allow: %w", err))
				}
			}
			*allow = append(*allow, patterns...)
		case !slices.Contains(words, word):
			return d.Errf("unrecognized word '%s' in host, the allowed ones are: %s, allow", word, strings.Join(words, ", "))
		default:
			if err := setText(d, fields[slices.Index(words, word)]); err != nil {
				return err
			}
		}
	}
	return nil
}
