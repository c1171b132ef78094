package command

import (
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
)

// A clientFile is a CLI configuration to be printed.
type clientFile struct {
	registry clientconfig.Registry
	purpose  purpose
	tofu     bool
	tokens   bool // with blocks for tokens, to be filled in

	elsewhere bool // discovery at the name of the registry does not lead to it

	// private asks the server whether it requires a token for providers and modules of
	// another registry. Nil: there is a configuration, which says what origins there are.
	private func(svchost.Hostname) bool

	notes []string // for users, beside the file
}

// text returns the file, with comments about the purpose of each block. It is valid even if
// clients need no configuration.
func (f clientFile) text() string {
	name := f.registry.Hostnames[0]
	place, login := "~/.terraformrc; on Windows, %APPDATA%\\terraform.rc", "terraform login "
	if f.tofu {
		place, login = "~/.tofurc; on Windows, %APPDATA%\\tofu.rc", "tofu login "
	}
	parts := []string{comment("For " + place + ".")}
	add := func(say string, block string) { parts = append(parts, comment(say)+block) }
	if f.elsewhere {
		add("The services of "+name+", which are not found by discovery at that name.", f.registry.Host(name))
	}
	switch f.purpose {
	case forRegistry:
		if !f.elsewhere {
			add("Nothing is needed for the providers and modules of "+name+": clients find it by the name.", "")
		}
	case forMirror:
		add("Gets the providers of other registries from "+name+".", f.registry.Mirror())
	case forStandIn:
		for _, o := range f.registry.Origins {
			add("Gets "+nouns(o)+" of "+o.String()+" from "+name+".", f.registry.StandIn(o))
		}
	}
	isPrivate := func(o clientconfig.Origin) bool { return o.Private }
	token := func(hostname, say string) {
		block := clientconfig.Credentials(hostname, "…")
		if h, err := address.ParseHostname(hostname); err == nil {
			if variable, ok := handlers.TokenVariable(h); ok {
				say += " Setting " + variable + " does the same."
			}
		}
		if !f.tokens {
			var b strings.Builder
			for line := range strings.Lines(block) {
				b.WriteString("# " + line)
			}
			block = b.String()
		}
		add(say, block)
	}
	if f.registry.Private || f.purpose == forMirror && slices.ContainsFunc(f.registry.Origins, isPrivate) || f.tokens && f.purpose != forStandIn {
		say := "The token for " + name + "."
		if f.registry.Login {
			say = "The token for " + name + ", unless `" + login + name + "` has stored one."
		}
		token(name, say)
	}
	if f.purpose == forStandIn {
		for _, o := range f.registry.Origins {
			if o.Private || f.tokens && f.private != nil {
				token(o.String(), "The token of "+name+", which is sent there under the name that it stands in for. Remove this together with the host block: without that, it would be sent to "+o.String()+" itself.")
			}
		}
	}
	return strings.Join(parts, "\n")
}

// nouns names what the registry has of an origin.
func nouns(o clientconfig.Origin) string {
	switch {
	case !o.Modules:
		return "the providers"
	case !o.Providers:
		return "the modules"
	}
	return "providers and modules"
}

// comment makes lines of a comment.
func comment(text string) string { return cli.WrapBehind(text, "# ") }
