// Package caddyfile is the registry's directive:
//
//	terraform_registry [<matcher>] {
//	    root        <folder>
//	    providers   <folder>
//	    modules     <folder>
//	    keys        <folder>
//	    fs          <name>
//	    hostname    <name...>
//	    prefix      <path>
//	    public_url  <url>
//	    signing_key <file> [<passphrase>] | off
//	    signatures  prefer | require
//	    rescan      <duration> | off
//	    poll        <duration> | off
//	    auth        terraform_tokens <file>
//	    auth        terraform_oidc <issuer> {
//	        audience <value...>
//	        subject  <claim>
//	        groups   <claim...>
//	        require  <claim> <value...>
//	    }
//	    auth        http_basic [<hash_algorithm> [<realm>]] {
//	        <username> <hashed_password>
//	    }
//	    auth        <other provider> ...
//	    access {
//	        subject    <placeholder>
//	        groups     <placeholder>
//	        allow|deny <subject>|group:<name>|anonymous|authenticated read|publish|manage <address pattern...>
//	    }
//	    links       <duration>
//	    redirect    [<duration>]
//	    login {
//	        client <id>
//	        secret <secret>
//	        issuer <url>
//	        authz  <url>
//	        token  <url>
//	        ports  <min> <max>
//	        scopes <scope...>
//	    }
//	    upstream <hostname...> {
//	        mirror       <url>
//	        url          <url>
//	        allow        <address pattern...>
//	        deny         <address pattern...>
//	        platforms    <platform...>
//	        max_held     <size>
//	        versions_ttl <duration>
//	        min_age      <duration>
//	        signatures   require | prefer
//	        token        <token>
//	        timeout      <duration>
//	        private      <host...>
//	        modules      [<url>]
//	        host <name> {
//	            user  <user>
//	            token <token>
//	            allow <repository pattern...>
//	        }
//	    }
//	    git {
//	        host <name> {
//	            user    <user>
//	            token   <token>
//	            allow   <repository pattern...>
//	            webhook <secret>
//	        }
//	        private <host...>
//	        poll    <duration>
//	    }
//	    ui          [<path>] {
//	        name <name>
//	        logo <file>
//	        link <text> <url>
//	    }
//	    publish {
//	        max_size        <size>
//	        staging         <duration>
//	        max_staged      <size>
//	        max_staged_each <size>
//	    }
//	    tlog        [<folder>] {
//	        origin  <name>
//	        key     <file>
//	        require
//	    }
//	    usage {
//	        by   subject|group
//	        keep <duration>
//	    }
//	}
//
// It only sets the exported fields of [module.Handler], which documents them: a
// Caddyfile becomes JSON, and other state would be lost.
package caddyfile

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

func init() {
	httpcaddyfile.RegisterDirective("terraform_registry", parseDirective)

	// After the directives that authenticate or refuse access, and before the
	// directives that answer every request.
	httpcaddyfile.RegisterDirectiveOrder("terraform_registry", httpcaddyfile.Before, "reverse_proxy")
}

// parseDirective returns the route of a terraform_registry directive.
func parseDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name
	if h.NextArg() && strings.HasPrefix(h.Val(), "/") {
		// Caddy would use such an argument as a path matcher, but the root is meant.
		// The registry would never answer, since the path of discovery would not match.
		return nil, h.Errf("'%s' is not a matcher the registry can have: the folder to serve goes into the block as 'root %s', a path to serve it under as 'prefix %s'", h.Val(), h.Val(), h.Val())
	}
	h.Reset()
	h.Next()
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err // err has the position
	}
	handler := new(module.Handler)
	if err := unmarshal(h.Dispenser, handler); err != nil {
		return nil, err
	}
	return h.NewRoute(matchers, handler), nil
}
