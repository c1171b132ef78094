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
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch d.Val() {
		case "host":
			host := new(module.GitHost)
			if err := hostBlock(d, &host.Name, &host.Allow, host.CheckAllow, []string{"user", "token", "webhook"}, &host.User, &host.Token, &host.Webhook); err != nil {
				return err
			}
			if host.Token != "" && len(host.Allow) == 0 {
				return d.Errf("the host %s has a token and no allow: name the repositories that it is for, since others choose which ones are fetched", host.Name)
			}
			g.Hosts = append(g.Hosts, host)
		case "private":
			if err := addWords(d, &g.Private); err != nil {
				return err
			}
		case "poll":
			if err := positiveDuration(d, &g.Poll); err != nil {
				return err
			}
		default:
			return d.Errf("unrecognized word '%s' in git, the allowed ones are: host, private, poll", d.Val())
		}
	}
	h.Git = g
	return nil
}
