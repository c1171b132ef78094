package e2e_test

import (
	"slices"
	"strings"
	"testing"
)

// viaMirror installs every provider from the mirror only.
const viaMirror = `
provider_installation {
  network_mirror {
    url = "https://mirror.example.com/v1/mirror/"
  }
}
`

// viaMirrorOrDirect asks the mirror first and then the origin registry.
const viaMirrorOrDirect = `
provider_installation {
  network_mirror {
    url = "https://mirror.example.com/v1/mirror/"
  }
  direct {}
}
`

// The mirror serves providers of other hostnames (#61 to #64, #67 to #69).
func TestMirrorAlone(t *testing.T) {
	t.Parallel()
	files := newTree(t).Provider("registry.example.com/acme/demo", "1.0.0", zipsOnly)
	mirror := startRegistry(t, site("mirror.example.com", files))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, mirror, greeting("registry.example.com/acme/demo", "1.0.0"))
		ws.CLIConfig(t, viaMirror)
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)
		if lock := ws.Lock(t, "registry.example.com/acme/demo"); len(lock.H1) != 1 {
			t.Errorf("the lock file has h1: %v, want that of this platform", lock.H1)
		}

		ws = newWorkspace(t, mirror, greeting("registry.example.com/acme/missing", "1.0.0"))
		ws.CLIConfig(t, viaMirror)
		expect(t, c.Refused(t, ws, "init"), "was not found in any of the search locations")
	})
	// The origin registry does not exist here, and was not requested: see
	// Proxy.
}

// A mirror combined with direct installation may lack a version that the origin
// registry has (#66), or the whole provider (#65). Neither makes the client fail.
func TestMirrorLacksProvider(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	origin := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Provider("acme/demo", "1.1.0", signedBy(acme)).
		Provider("acme/demo-beta", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	mirrored := newTree(t).Provider("registry.example.com/acme/demo", "1.0.0", signedBy(acme))
	registry := startRegistry(t,
		site("registry.example.com", origin),
		site("mirror.example.com", mirrored))

	for name, want := range map[string]struct{ source, constraint, version, from string }{
		"a version":  {"registry.example.com/acme/demo", ">= 1.0.0", "1.1.0", "registry.example.com"},
		"a provider": {"registry.example.com/acme/demo-beta", "1.0.0", "1.0.0", "registry.example.com"},
		"nothing":    {"registry.example.com/acme/demo", "1.0.0", "1.0.0", "mirror.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			eachClient(t, func(t *testing.T, c Client) {
				ws := newWorkspace(t, registry, greeting(want.source, want.constraint))
				ws.CLIConfig(t, viaMirrorOrDirect)
				c.Run(t, ws, "init")
				expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from `+want.version+`"`)
				if got := ws.Lock(t, want.source).Version; got != want.version {
					t.Errorf("version %s is selected, want %s", got, want.version)
				}
			})
			local, folder := lastElement(want.source), want.source
			if want.from == "registry.example.com" { // the registry hosts it
				folder = strings.Replace(folder, want.from, "-", 1)
			}
			registry.Log.WaitAccess(t, want.from, "/v1/mirror/"+folder+"/terraform-provider-"+local+"_"+want.version+"_"+thisPlatform+".zip")
		})
	}
}

// The mirror has the h1: of every platform, so that one command completes a
// lock file for a whole team (#69). The packages equal those of the registry
// byte for byte: its zh: hashes verify them (#70).
func TestLockFromMirror(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	registry := startRegistry(t, site("registry.example.com", files))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		lock := []string{"providers", "lock", "-net-mirror=https://registry.example.com/v1/mirror/"}
		for _, platform := range threePlatforms() {
			lock = append(lock, "-platform="+platform)
		}
		c.Run(t, ws, lock...)
		if locked := ws.Lock(t, "registry.example.com/acme/demo"); len(locked.H1) != 3 {
			t.Errorf("the lock file has h1: %v, want those of %v", locked.H1, threePlatforms())
		}
		c.Run(t, ws, "init", "-lockfile=readonly")

		// Locked from the registry, installed from the mirror.
		ws = newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		c.Run(t, ws, "init")
		elsewhere := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		elsewhere.CLIConfig(t, `
provider_installation {
  network_mirror {
    url = "https://registry.example.com/v1/mirror/"
  }
}
`)
		copyFile(t, ws.Dir+"/.terraform.lock.hcl", elsewhere.Dir+"/.terraform.lock.hcl")
		c.Run(t, elsewhere, "init", "-lockfile=readonly")
	})
}

// The output of `providers mirror` is a tree: put into another one as it is, it
// is served as a mirror.
func TestProvidersMirror(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Provider("acme/demo-beta", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	registry := startRegistry(t, site("registry.example.com", files))

	eachClient(t, func(t *testing.T, c Client) {
		copied := newTree(t)
		for _, source := range []string{"registry.example.com/acme/demo", "registry.example.com/acme/demo-beta"} {
			ws := newWorkspace(t, registry, greeting(source, "1.0.0"))
			mirror := []string{"providers", "mirror"}
			for _, platform := range threePlatforms() {
				mirror = append(mirror, "-platform="+platform)
			}
			c.Run(t, ws, append(mirror, copied.Path("providers"))...)
		}
		report, status := check(t, copied)
		if status != 0 {
			t.Errorf("check of what `providers mirror` wrote exits with %d: %+v", status, report)
		}

		again := startRegistry(t, site("mirror.example.com", copied))
		for _, source := range []string{"registry.example.com/acme/demo", "registry.example.com/acme/demo-beta"} {
			ws := newWorkspace(t, again, greeting(source, "1.0.0"))
			ws.CLIConfig(t, viaMirror)
			c.Run(t, ws, "init")
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)
			lock := []string{"providers", "lock", "-net-mirror=https://mirror.example.com/v1/mirror/"}
			for _, platform := range threePlatforms() {
				lock = append(lock, "-platform="+platform)
			}
			c.Run(t, ws, lock...)
			if locked := ws.Lock(t, source); len(locked.H1) != len(slices.Compact(locked.H1)) || len(locked.H1) != 3 {
				t.Errorf("the lock file has h1: %v, want those of %v", locked.H1, threePlatforms())
			}
		}
	})
}
