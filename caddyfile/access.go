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
	a := new(module.Access)
	h.Access = a
	rule := func(d *caddyfile.Dispenser) error {
		rule, err := module.NewAccessRule(append([]string{d.Val()}, d.RemainingArgs()...))
		if err != nil {
			return d.WrapErr(err)
		}
		a.Rules = append(a.Rules, rule)
		return nil
	}
	err := parseBlock(d, "access",
		word{"subject", text(&a.Subject)}, word{"groups", text(&a.Groups)}, word{"allow", rule}, word{"deny", rule},
	)
	if err == nil && len(a.Rules) == 0 {
		return d.Err("access has no rule, so nothing could be read: add one such as 'allow authenticated read *'")
	}
	return err
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
