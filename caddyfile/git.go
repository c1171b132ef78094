package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// git parses the hosts of repositories whose tags are versions:
//
//	git {
//	    host <name> {
//	        user    <user>
//	        token   <token>
//	        allow   <repository pattern...>
//	        webhook <secret>
//	    }
//	    private <host...>
//	    poll    <duration>
//	}
func git(d *caddyfile.Dispenser, h *module.Handler) error {
	if d.NextArg() {
		return d.Err("git has no argument: repositories are named in the registry.hcl of modules, and hosts in the block")
	}
	g := new(module.Git)
	h.Git = g
	return parseBlock(d, "git",
		word{"host", func(d *caddyfile.Dispenser) error { return gitHost(d, g) }},
		word{"private", list(&g.Private)},
		word{"poll", duration(&g.Poll)},
	)
}

// gitHost parses the name of a host, and the block of its credentials and webhook.
func gitHost(d *caddyfile.Dispenser, g *module.Git) error {
	h := new(module.GitHost)
	g.Hosts = append(g.Hosts, h)
	err := hostBlock(d, &h.Name, &h.Allow, h.CheckAllow,
		word{"user", text(&h.User)}, word{"token", text(&h.Token)}, word{"webhook", text(&h.Webhook)})
	if err == nil && h.Token != "" && len(h.Allow) == 0 {
		return d.Errf("the host %s has a token and no allow: name the repositories that it is for, since others choose which ones are fetched", h.Name)
	}
	return err
}
