package snippet

import (
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
)

// A Step is a part of the configuration to paste.
type Step struct {
	Title, Text string
	Code        Code
}

// A Setup has the values that the configuration to paste depends on.
type Setup struct {
	clientconfig.Registry

	Modules, Providers bool // some are hosted here
	Mirror             bool // clients can get providers of other registries
}

// Steps returns the configuration to paste, filled in for the registry.
func (s Setup) Steps() []Step {
	var steps []Step
	add := func(title, text, language, source string) {
		steps = append(steps, Step{title, text, Code{language, strings.TrimSuffix(source, "\n")}})
	}
	name := s.Hostnames[0]
	if s.Login {
		add("Sign in", "Run this once on every machine. It opens a browser and saves a token. With OpenTofu: tofu login.", "", "terraform login "+name)
	}
	if s.Private && !s.Login {
		add("Credentials", "Goes in ~/.terraformrc or ~/.tofurc; on Windows, in %APPDATA%\\terraform.rc.", "terraform", clientconfig.Credentials(name, "…"))
	}
	if s.Modules || !s.Providers && !s.Mirror {
		add("Modules", "The page of a module has this with everything filled in.", "terraform",
			"module \"NAME\" {\n  source  = "+literal(name+"/NAMESPACE/NAME/SYSTEM")+"\n  version = \"~> 1.0\"\n}")
	}
	if s.Providers {
		add("Providers", "Signed, and verified by every client.", "terraform",
			"terraform {\n  required_providers {\n    TYPE = {\n      source  = "+literal(name+"/NAMESPACE/TYPE")+"\n      version = \"~> 1.0\"\n    }\n  }\n}")
	}
	if s.Mirror {
		add("Network mirror", "Gets providers of other registries from here. Goes in ~/.terraformrc or ~/.tofurc; your configurations stay as they are.", "terraform", s.Registry.Mirror())
	}
	if len(s.Origins) > 0 {
		title, text, blocks := s.standIn()
		add(title, text, "terraform", blocks)
	}
	return steps
}

// standIn returns the step after which clients use this registry in place of others.
func (s Setup) standIn() (title, text, blocks string) {
	title, text = "In place of other registries", "Gets the providers and modules with these hostnames from here."
	if len(s.Origins) == 1 {
		title, text = "In place of "+s.Origins[0].String(), "Gets the providers and modules with that hostname from here."
	}
	text += " Unlike with a network mirror, your client verifies the publishers' signatures itself, and lock files get the hashes of all platforms. Goes in ~/.terraformrc or ~/.tofurc, instead of the network mirror."
	var all []string
	private := false
	for _, o := range s.Origins {
		all = append(all, s.StandIn(o))
		if o.Private {
			private = true
			all = append(all, clientconfig.Credentials(o.String(), "…"))
		}
	}
	if private {
		text += " The token is that of this registry: as long as the host block is there, it is sent here."
	}
	return title, text, strings.Join(all, "\n")
}
