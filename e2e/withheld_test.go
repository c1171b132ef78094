package e2e_test

import (
	"maps"
	"strings"
	"testing"
)

// Releases that would fail in a client, or harm it, are never offered: `check`
// gives the reason and exits with status 1, the running registry stays up, and
// clients get the valid version. (#57)
func TestWithheldRelease(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	const dir = "providers/acme/demo/terraform-provider-demo_1.1.0_"
	for name, defect := range map[string]struct {
		release []func(*Release)
		reasons map[string]string // by path
	}{
		"tampered package": {
			[]func(*Release){signedBy(acme), platforms(thisPlatform), tampered(thisPlatform)},
			map[string]string{dir + thisPlatform + ".zip": "checksum_mismatch"},
		},
		"wrong signature": {
			[]func(*Release){wronglySignedBy(acme)},
			map[string]string{dir + "SHA256SUMS.sig": "bad_signature"},
		},
		"blank line in SHA256SUMS": { // #50
			[]func(*Release){signedBy(acme), sums(func(s string) string { return s + "\n" })},
			map[string]string{dir + "SHA256SUMS": "bad_checksums"},
		},
		"comment in SHA256SUMS": { // #51
			[]func(*Release){signedBy(acme), sums(func(s string) string { return "# demo\n" + s })},
			map[string]string{dir + "SHA256SUMS": "bad_checksums"},
		},
		"binary mode in SHA256SUMS": { // #52
			[]func(*Release){signedBy(acme), sums(func(s string) string { return strings.ReplaceAll(s, "  ", " *") })},
			map[string]string{dir + "SHA256SUMS": "bad_checksums"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := newTree(t).
				Provider("acme/demo", "1.0.0", signedBy(acme)).
				Provider("acme/demo", "1.1.0", defect.release...).
				Keys("acme", acme)

			report, status := check(t, files)
			if status != 1 {
				t.Errorf("check exits with %d, want 1", status)
			}
			if got := report.reasons(); !maps.Equal(got, defect.reasons) {
				t.Errorf("check withholds %v, want %v", got, defect.reasons)
			}

			registry := startRegistry(t, site("registry.example.com", files))
			for _, path := range []string{
				"/v1/providers/acme/demo/versions",
				"/v1/mirror/registry.example.com/acme/demo/index.json",
			} {
				if answer := registry.Get(t, "https://registry.example.com"+path); strings.Contains(answer.Body, "1.1.0") {
					t.Errorf("%s offers it: %s", path, answer.Body)
				}
			}
			eachClient(t, func(t *testing.T, c Client) {
				ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", ">= 1.0.0"))
				c.Run(t, ws, "init")
				if got := ws.Lock(t, "registry.example.com/acme/demo").Version; got != "1.0.0" {
					t.Errorf("%s is selected, want 1.0.0", got)
				}
			})
		})
	}
}

// A package that was tampered with does not affect the packages of other platforms.
func TestWithheldPackage(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	other := threePlatforms()[1]
	files := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme), tampered(other)).
		Keys("acme", acme)
	registry := startRegistry(t, site("registry.example.com", files))

	report, status := check(t, files)
	if status != 1 {
		t.Errorf("check exits with %d, want 1", status)
	}
	zip := "terraform-provider-demo_1.0.0_" + other + ".zip"
	if got := report.reasons()["providers/acme/demo/"+zip]; got != "checksum_mismatch" {
		t.Errorf("check gives the reason %q, want checksum_mismatch", got)
	}
	for _, path := range []string{
		"/v1/providers/acme/demo/1.0.0/download/" + strings.ReplaceAll(other, "_", "/"),
		"/v1/mirror/registry.example.com/acme/demo/" + zip,
	} {
		if answer := registry.Get(t, "https://registry.example.com"+path); answer.Status != 404 {
			t.Errorf("%s: %d, want 404", path, answer.Status)
		}
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)
	})
}

// A package that changes while the registry runs is no longer served from that
// moment on, and is withheld after the scan that this causes (#60). A request
// waits for that scan, and gets 503 only if it takes long.
func TestPackageThatChanges(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Provider("acme/demo", "1.1.0", signedBy(acme), platforms(thisPlatform)).
		Keys("acme", acme)
	registry := startRegistry(t, site("registry.example.com", files, "rescan off"))
	zip := "terraform-provider-demo_1.1.0_" + thisPlatform + ".zip"
	url := "https://registry.example.com/v1/mirror/registry.example.com/acme/demo/" + zip
	if answer := registry.Get(t, url); answer.Status != 200 {
		t.Fatalf("%s: %d, want 200", url, answer.Status)
	}

	appendTo(t, files.Path("providers/acme/demo/"+zip), "tampered with")
	if answer := registry.Get(t, url); answer.Status != 404 && (answer.Status != 503 || answer.Header.Get("Retry-After") != "1") {
		t.Errorf("%s: %d, Retry-After %q, want 404, or 503 and 1", url, answer.Status, answer.Header.Get("Retry-After"))
	}
	registry.Log.Wait(t, "it offers one release", func(e Entry) bool { return e.scan() && e.Offered == 1 })
	if answer := registry.Get(t, url); answer.Status != 404 {
		t.Errorf("%s after the scan: %d, want 404", url, answer.Status)
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", ">= 1.0.0"))
		c.Run(t, ws, "init")
		if got := ws.Lock(t, "registry.example.com/acme/demo").Version; got != "1.0.0" {
			t.Errorf("%s is selected, want 1.0.0", got)
		}
	})
}

// With `signatures require`, only releases signed by their publishers are
// offered.
func TestSignaturesRequired(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Provider("acme/demo", "1.1.0").
		Keys("acme", acme)
	registry := startRegistry(t, site("registry.example.com", files, "signatures require"))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", ">= 1.0.0"))
		c.Run(t, ws, "init")
		if got := ws.Lock(t, "registry.example.com/acme/demo").Version; got != "1.0.0" {
			t.Errorf("%s is selected, want 1.0.0", got)
		}
	})
}
