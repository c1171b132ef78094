package e2e_test

import (
	"slices"
	"testing"
)

// A public registry also serves clients that send credentials: a token for the
// host, which may be expired, with all requests except downloads (#4, #19), and
// a password from ~/.netrc with downloads (#40).
func TestUnrequestedCredentials(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("acme/demo", "1.0.0").
		Module("acme/vpc/aws", "1.0.0", asTarGz)
	registry := startRegistry(t, site("registry.example.com", files))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		ws.Write(t, "module.tf", `
module "vpc" {
  source  = "registry.example.com/acme/vpc/aws"
  version = "1.0.0"
}
`)
		ws.Setenv("TF_TOKEN_registry_example_com", "expired")
		ws.Netrc(t, "machine registry.example.com login user password secret\n")
		c.Run(t, ws, "init")

		// The same through the mirror, to which clients send the token as well.
		ws = newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		ws.CLIConfig(t, `
provider_installation {
  network_mirror {
    url = "https://registry.example.com/v1/mirror/"
  }
}

credentials "registry.example.com" {
  token = "expired"
}
`)
		c.Run(t, ws, "init")
	})

	// Verify in the log that credentials were really sent.
	for _, path := range []string{
		"/.well-known/terraform.json",
		"/v1/providers/acme/demo/versions",
		"/v1/mirror/registry.example.com/acme/demo/index.json",
		"/v1/modules/acme/vpc/aws/versions",
		"/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz",
	} {
		if !slices.ContainsFunc(registry.Log.Accesses("registry.example.com"), func(e Entry) bool {
			return e.Request.URI == path && e.Request.Headers["Authorization"] != nil
		}) {
			t.Errorf("%s was never requested with credentials", path)
		}
	}
}
