package caddyfile

import (
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// auth parses an authentication provider, which has its own syntax.
func auth(d *caddyfile.Dispenser, h *module.Handler) error {
	if !d.NextArg() {
		return d.Err("auth needs the name of an authentication provider, such as terraform_tokens or terraform_oidc")
	}
	name := d.Val()
	if name == httpBasic {
		return basicAuth(d, h)
	}
	id := "http.authentication.providers." + name
	if _, err := caddy.GetModule(id); err != nil {
		return d.Errf("there is no authentication provider '%s': this server has %s", name, strings.Join(authenticationProviders(), ", "))
	}
	provider, err := caddyfile.UnmarshalModule(d, id)
	if err != nil {
		return err // err has the position
	}
	h.AuthRaw = append(h.AuthRaw, caddyconfig.JSONModuleObject(provider, "provider", name, nil))
	return nil
}

func authenticationProviders() (names []string) {
	for _, m := range caddy.GetModules("http.authentication.providers") {
		names = append(names, m.ID.Name())
	}
	return names
}

// accessRules parses the block of rules:
//
//	access {
//	    subject    <placeholder>
//	    groups     <placeholder>
//	    allow|deny <who> <right> <address pattern...>
//	}
func accessRules(d *caddyfile.Dispenser, h *module.Handler) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	h.Access = new(module.Access)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch word := d.Val(); word {
		case "subject", "groups":
			field := &h.Access.Subject
			if word == "groups" {
				field = &h.Access.Groups
			}
			if *field != "" {
				return d.Errf("%s is already specified", word)
			}
			if !d.AllArgs(field) || *field == "" {
				return d.ArgErr()
			}
		case "allow", "deny":
			rule, err := module.NewAccessRule(append([]string{word}, d.RemainingArgs()...))
			if err != nil {
				return d.WrapErr(err)
			}
			h.Access.Rules = append(h.Access.Rules, rule)
		default:
			return d.Errf("unrecognized word '%s' in access, the allowed ones are: subject, groups, allow, deny", word)
		}
	}
	if len(h.Access.Rules) == 0 {
		return d.Err("access has no rule, so nothing could be read: add one such as 'allow authenticated read *'")
	}
	return nil
}

// seekRule advances d from the beginning of a block of rules to the rule with a number.
func seekRule(d *caddyfile.Dispenser, number int) *caddyfile.Dispenser {
	for nesting := d.Nesting(); number > 0 && d.NextBlock(nesting); {
		if word := d.Val(); word == "allow" || word == "deny" {
			number--
		}
		for number > 0 && d.NextArg() {
			continue
		}
	}
	return d
}
