package caddyfile

import (
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// upstream parses hostnames and the block of options for mirroring them.
func upstream(d *caddyfile.Dispenser, h *module.Handler) error {
	u := &module.Upstream{Hostnames: d.RemainingArgs()}
	if len(u.Hostnames) == 0 {
		return d.Err("upstream needs the hostnames to mirror, such as registry.terraform.io")
	}
	h.Upstreams = append(h.Upstreams, u)
	return parseBlock(d, "upstream",
		word{"mirror", text(&u.Mirror)},
		word{"url", text(&u.URL)},
		word{"allow", list(&u.Allow)},
		word{"deny", list(&u.Deny)},
		word{"platforms", list(&u.Platforms)},
		word{"max_held", size(&u.MaxHeld)},
		word{"versions_ttl", duration(&u.VersionsTTL)},
		word{"min_age", duration(&u.MinAge)},
		word{"signatures", text(&u.Signatures)},
		word{"token", text(&u.Token)},
		word{"timeout", duration(&u.Timeout)},
		word{"private", list(&u.Private)},
		word{"modules", func(d *caddyfile.Dispenser) error { return upstreamModules(d, u) }},
		word{"host", func(d *caddyfile.Dispenser) error { return upstreamHost(d, u) }},
	)
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
	u.Hosts = append(u.Hosts, h)
	return hostBlock(d, &h.Name, &h.Allow, h.CheckAllow, word{"user", text(&h.User)}, word{"token", text(&h.Token)})
}

// hostBlock parses the name of a host of repositories, and a block with further words and the repositories
// that its credentials are for.
func hostBlock(d *caddyfile.Dispenser, name *string, allow *[]string, check func(pattern string) error, words ...word) error {
	if !d.AllArgs(name) || *name == "" {
		return d.Err("host needs one name, such as git.example.com")
	}
	return parseBlock(d, "host", append(words, word{"allow", checked(list(allow), func() error {
		for _, pattern := range *allow {
			if err := check(pattern); err != nil {
				return fmt.Errorf("allow: %w", err)
			}
		}
		return nil
	})})...)
}
