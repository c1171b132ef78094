package module

import (
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// UnmarshalCaddyfile reads the option `login`, on which the dispenser stands.
// Syntax:
//
//	login {
//	    client <id>
//	    issuer <url>
//	    authz  <url>
//	    token  <url>
//	    ports  <min> <max>
//	    scopes <scope...>
//	}
//
// Scopes may be repeated and add up.
func (l *Login) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.Errf("unexpected argument '%s': login has a block", d.Val())
	}
	texts := map[string]*string{"client": &l.Client, "issuer": &l.Issuer, "authz": &l.Authz, "token": &l.Token}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		option := d.Val()
		switch text := texts[option]; {
		case text != nil && *text != "", option == "ports" && l.Ports != nil:
			return d.Errf("%s is already specified", option)
		case text != nil:
			if !d.AllArgs(text) {
				return d.ArgErr()
			}
			if *text == "" {
				return d.Errf("%s is empty", option)
			}
		case option == "ports":
			if err := l.unmarshalPorts(d); err != nil {
				return err
			}
		case option == "scopes":
			scopes := d.RemainingArgs()
			if len(scopes) == 0 {
				return d.ArgErr()
			}
			l.Scopes = append(l.Scopes, scopes...)
		default:
			return d.Errf("unrecognized subdirective '%s', the allowed ones are: client, issuer, authz, token, ports, scopes", option)
		}
		if d.NextBlock(d.Nesting()) {
			return d.Errf("%s does not have a block", option)
		}
	}
	if l.Client == "" {
		return d.Err("the client is missing: add 'client <id>' to the block of login, with the ID of the OAuth client")
	}
	return nil
}

func (l *Login) unmarshalPorts(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) != 2 {
		return d.Err("ports takes two numbers, the lowest and the highest")
	}
	l.Ports = make([]int, len(args))
	for i, arg := range args {
		port, err := strconv.Atoi(arg)
		if err != nil {
			return d.Errf("ports: '%s' is not a number", arg)
		}
		l.Ports[i] = port
	}
	if err := validateLoginPorts(l.Ports); err != nil {
		return d.WrapErr(err)
	}
	return nil
}
