package caddyfile

import (
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// login parses the block that says where users get a token:
//
//	login {
//	    client <id>
//	    secret <secret>
//	    issuer <url>
//	    authz  <url>
//	    token  <url>
//	    ports  <min> <max>
//	    scopes <scope...>
//	}
func login(d *caddyfile.Dispenser, h *module.Handler) error {
	if d.NextArg() {
		return d.Errf("unexpected argument '%s': login has a block", d.Val())
	}
	l := new(module.Login)
	texts := map[string]*string{"client": &l.Client, "secret": &l.Secret, "issuer": &l.Issuer, "authz": &l.Authz, "token": &l.Token}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word := d.Val()
		var err error
		switch {
		case texts[word] != nil:
			err = text(texts[word])(d)
		case word == "ports":
			err = loginPorts(d, l)
		case word == "scopes":
			err = list(&l.Scopes)(d)
		default:
			err = d.Errf("unrecognized subdirective '%s', the allowed ones are: client, secret, issuer, authz, token, ports, scopes", word)
		}
		if err != nil {
			return err
		}
		if d.NextBlock(d.Nesting()) {
			return d.Errf("%s does not have a block", word)
		}
	}
	if l.Client == "" {
		return d.Err("the client is missing: add 'client <id>' to the block of login, with the ID of the OAuth client")
	}
	h.Login = l
	return nil
}

// loginPorts parses `ports <min> <max>`.
func loginPorts(d *caddyfile.Dispenser, l *module.Login) error {
	if l.Ports != nil {
		return d.Err("ports is already specified")
	}
	args := d.RemainingArgs()
	if len(args) != 2 {
		return d.Err("ports takes two numbers, the lowest and the highest")
	}
	for _, arg := range args {
		port, err := strconv.Atoi(arg)
		if err != nil {
			return d.Errf("ports: '%s' is not a number", arg)
		}
		l.Ports = append(l.Ports, port)
	}
	if err := l.CheckPorts(); err != nil {
		return d.WrapErr(err)
	}
	return nil
}
