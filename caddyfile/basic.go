package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// httpBasic is the authentication provider that comes with Caddy. It cannot parse a
// Caddyfile itself, since the directive basic_auth builds it.
const httpBasic = "http_basic"

// basicAuth parses the arguments of auth http_basic, with the syntax of basic_auth:
//
//	auth http_basic [<hash_algorithm> [<realm>]] {
//	    <username> <hashed_password>
//	}
func basicAuth(d *caddyfile.Dispenser, h *module.Handler) error {
	provider := caddyauth.HTTPBasicAuth{HashCache: new(caddyauth.Cache)} // a hash takes a tenth of a second
	algorithm := "bcrypt"
	switch args := d.RemainingArgs(); len(args) {
	case 2:
		provider.Realm = args[1]
		fallthrough
	case 1:
		algorithm = args[0]
	case 0:
	default:
		return d.ArgErr()
	}
	provider.HashRaw = caddyconfig.JSON(map[string]string{"algorithm": algorithm}, nil)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		account := caddyauth.Account{Username: d.Val()}
		if !d.AllArgs(&account.Password) || account.Username == "" || account.Password == "" {
			return d.Err("write each account as a user name and a hash from `caddy hash-password`")
		}
		provider.AccountList = append(provider.AccountList, account)
	}
	if len(provider.AccountList) == 0 {
		return d.Err("auth http_basic has no accounts: add lines with a user name and a hash from `caddy hash-password`")
	}
	h.AuthRaw = append(h.AuthRaw, caddyconfig.JSONModuleObject(provider, "provider", httpBasic, nil))
	return nil
}
