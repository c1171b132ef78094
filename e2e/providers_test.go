package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// For a release that its publisher has signed, clients get the published SHA256SUMS,
// signature and key (#13, #35, #37, #39, #42, #50 to #55).
func TestReleaseSignedByPublisher(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	registry := startRegistry(t, site("registry.example.com", files))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		out := c.Run(t, ws, "init")
		expect(t, out, "Installed registry.example.com/acme/demo v1.0.0 (")
		expect(t, out, "signed, key ID "+acme.KeyID(t)+")")

		// All hashes in SHA256SUMS are in the lock file, so that it can be used
		// on other platforms.
		want := digests(files.Read("providers/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS"))
		lock := ws.Lock(t, "registry.example.com/acme/demo")
		if !slices.Equal(lock.ZH, want) {
			t.Errorf("the lock file has zh: %v, SHA256SUMS has %v", lock.ZH, want)
		}
		if len(lock.H1) != 1 {
			t.Errorf("the lock file has h1: %v, want that of this platform", lock.H1)
		}

		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)
		// The versions of a locked provider are requested again, and it is
		// still listed (#22).
		expect(t, c.Run(t, ws, "init"), "Using previously-installed registry.example.com/acme/demo v1.0.0")
	})
}

// An unsigned release is signed by the registry, with or without a SHA256SUMS.
func TestReleaseSignedByRegistry(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("acme/demo", "1.0.0").
		Provider("acme/demo", "1.1.0", zipsOnly)
	registry := startRegistry(t, site("registry.example.com", files))
	key := keyIDs(t, registry.Get(t, "https://registry.example.com/v1/providers/acme/demo/1.0.0/download/"+strings.ReplaceAll(thisPlatform, "_", "/")))

	eachClient(t, func(t *testing.T, c Client) {
		for _, version := range []string{"1.0.0", "1.1.0"} {
			ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", version))
			expect(t, c.Run(t, ws, "init"), "signed, key ID "+key[0]+")")
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from `+version+`"`)
			lock := ws.Lock(t, "registry.example.com/acme/demo")
			for _, platform := range threePlatforms() {
				zip := files.Path("providers/acme/demo/terraform-provider-demo_" + version + "_" + platform + ".zip")
				if !slices.Contains(lock.ZH, sha256Of(t, zip)) {
					t.Errorf("zh: of %s is not in the lock file: %v", platform, lock.ZH)
				}
			}
		}
	})
}

// Types may have hyphens, as google-beta has.
func TestProviderWithHyphen(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := newTree(t).
		Provider("acme/demo-beta", "1.0.0", signedBy(acme)).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	registry := startRegistry(t, site("registry.example.com", files))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo-beta", "1.0.0"))
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `demo_beta_greeting.world`, `text = "hello world from 1.0.0"`)
	})
}

// Clients decide which version is selected. They select prereleases only by an exact
// constraint. Build metadata stays in the path unchanged (#14, #32). Each release may
// have its own folder, or releases may share one.
func TestVersionSelection(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("acme/demo", "1.0.0").
		Provider("acme/demo", "1.1.0", perFolder).
		Provider("acme/demo", "2.0.0-rc.1").
		Provider("acme/demo", "0.9.0+build.5", perFolder)
	registry := startRegistry(t, site("registry.example.com", files))

	eachClient(t, func(t *testing.T, c Client) {
		for constraint, want := range map[string]string{
			">= 0.9.0":      "1.1.0",
			"~> 1.0.0":      "1.0.0",
			"2.0.0-rc.1":    "2.0.0-rc.1",
			"< 1.0.0":       "0.9.0+build.5",
			"0.9.0+build.5": "0.9.0+build.5",
		} {
			ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", constraint))
			c.Run(t, ws, "init")
			if got := ws.Lock(t, "registry.example.com/acme/demo").Version; got != want {
				t.Errorf("%q selects %s, want %s", constraint, got, want)
			}
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from `+want+`"`)
		}
	})
}

// Clients distinguish a provider that does not exist (#18) from one without a
// package for their platform (#34).
func TestAbsentProvider(t *testing.T) {
	t.Parallel()
	files := newTree(t).Provider("acme/demo", "1.0.0", platforms("plan9_386"))
	registry := startRegistry(t, site("registry.example.com", files))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/missing", "1.0.0"))
		expect(t, c.Refused(t, ws, "init"), "provider registry registry.example.com does not have a provider named registry.example.com/acme/missing")

		ws = newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		expect(t, c.Refused(t, ws, "init"), "does not have a package available for your current platform")
	})
}

// A namespace may have several keys, as when a publisher replaces one: clients
// get each in a separate armor block (#43).
func TestKeysOfNamespace(t *testing.T) {
	t.Parallel()
	former, current := publisher(t, "former"), publisher(t, "acme")
	files := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(former)).
		Provider("acme/demo", "1.1.0", signedBy(current)).
		Keys("acme", current, former)
	registry := startRegistry(t, site("registry.example.com", files))

	eachClient(t, func(t *testing.T, c Client) {
		for version, signer := range map[string]*Publisher{"1.0.0": former, "1.1.0": current} {
			ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", version))
			expect(t, c.Run(t, ws, "init"), "signed, key ID "+signer.KeyID(t)+")")
		}
	})
}

// When a publisher has extended a key, the keys file may have both copies: clients get the one
// that lasts, since Terraform 1.6.0 stops at the first copy, expired or not (#56).
func TestExtendedKey(t *testing.T) {
	t.Parallel()
	extended, before := extendedPublisher(t)
	files := newTree(t).Provider("acme/demo", "1.0.0", signedBy(extended))
	files.append("keys/acme.asc", before)
	files.Keys("acme", extended)
	registry := startRegistry(t, site("registry.example.com", files))
	given := keyIDs(t, registry.Get(t, "https://registry.example.com/v1/providers/acme/demo/1.0.0/download/"+strings.ReplaceAll(thisPlatform, "_", "/")))
	if want := []string{extended.KeyID(t)}; !slices.Equal(given, want) {
		t.Errorf("clients are given keys %v, want %v", given, want)
	}

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		expect(t, c.Run(t, ws, "init"), "signed, key ID "+extended.KeyID(t)+")")
	})
}

// Copying a release into the tree publishes it, without a restart or upload.
func TestReleaseOfRunningRegistry(t *testing.T) {
	t.Parallel()
	for name, publish := range map[string]struct {
		options []string
		do      func(t *testing.T, registry *Registry, s Site)
	}{
		"by itself": {[]string{"rescan 100ms"}, func(*testing.T, *Registry, Site) {}},
		"at reload": {[]string{"rescan off"}, func(t *testing.T, r *Registry, s Site) { r.Reload(t, s) }},
	} {
		t.Run(name, func(t *testing.T) {
			files := newTree(t).Provider("acme/demo", "1.0.0")
			s := site("registry.example.com", files, publish.options...)
			registry := startRegistry(t, s)
			selected := func(want string) {
				eachClient(t, func(t *testing.T, c Client) {
					ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", ">= 1.0.0"))
					c.Run(t, ws, "init")
					if got := ws.Lock(t, "registry.example.com/acme/demo").Version; got != want {
						t.Errorf("%s is selected, want %s", got, want)
					}
				})
			}
			selected("1.0.0")
			files.Provider("acme/demo", "1.1.0")
			publish.do(t, registry, s)
			registry.Log.Wait(t, "it offers two releases", func(e Entry) bool { return e.scan() && e.Offered == 2 })
			selected("1.1.0")
		})
	}
}

// digests returns the digests in SHA256SUMS, sorted.
func digests(sums string) []string {
	var all []string
	for line := range strings.Lines(sums) {
		all = append(all, strings.Fields(line)[0])
	}
	slices.Sort(all)
	return all
}

// keyIDs returns the IDs of the keys in an answer of a provider registry.
func keyIDs(t *testing.T, answer Response) []string {
	t.Helper()
	var download struct {
		SigningKeys struct {
			GPGPublicKeys []struct {
				KeyID string `json:"key_id"`
			} `json:"gpg_public_keys"`
		} `json:"signing_keys"`
	}
	if err := json.Unmarshal([]byte(answer.Body), &download); err != nil {
		t.Fatalf("%d %s: %v", answer.Status, answer.Body, err)
	}
	var ids []string
	for _, key := range download.SigningKeys.GPGPublicKeys {
		ids = append(ids, key.KeyID)
	}
	if len(ids) == 0 {
		t.Fatalf("no signing keys in %s", answer.Body)
	}
	return ids
}

// expect fails the test if an output lacks one of the given texts.
func expect(t *testing.T, output string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(output, want) {
			t.Errorf("the output lacks %q:\n%s", want, output)
		}
	}
}
