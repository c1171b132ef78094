package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

// If the tree lacks the publisher's documents of a release or their signature, the
// registry signs the release, as it signs a hosted one. It signs an unsigned SHA256SUMS
// unchanged, so that lock files have the hashes of platforms that the tree does not
// have.
func TestStandInForUnsignedReleases(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("registry.terraform.io/acme/demo", "1.0.0").OnlyThisPlatform("registry.terraform.io/acme/demo", "1.0.0").
		Provider("registry.terraform.io/acme/demo", "1.1.0", zipsOnly)
	sums := files.Read("providers/registry.terraform.io/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS")
	registry := startRegistry(t, site("mirror.example.com", files))
	download := "https://mirror.example.com/v1/registries/registry.terraform.io/providers/acme/demo/1.0.0/download/" + strings.ReplaceAll(thisPlatform, "_", "/")
	key := keyIDs(t, registry.Get(t, download))

	eachClient(t, func(t *testing.T, c Client) {
		for version, zh := range map[string]int{"1.0.0": 4, "1.1.0": 3} { // with or without the manifest
			ws := newWorkspace(t, registry, greeting("registry.terraform.io/acme/demo", version))
			ws.CLIConfig(t, standingIn(publicRegistry))
			expect(t, c.Run(t, ws, "init"), "signed, key ID "+key[0]+")")
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from `+version+`"`)
			lock := ws.Lock(t, "registry.terraform.io/acme/demo")
			if len(lock.ZH) != zh || version == "1.0.0" && !slices.Equal(lock.ZH, digests(sums)) {
				t.Errorf("the lock file has zh: %v for %s", lock.ZH, version)
			}
		}
	})
}
