package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// moveTo makes the machine reach another registry by the same names.
func (ws *Workspace) moveTo(r *Registry) {
	ws.Setenv("HTTP_PROXY", r.Proxy.URL)
	ws.Setenv("HTTPS_PROXY", r.Proxy.URL)
	ws.Setenv("SSL_CERT_FILE", r.CA)
}

// A package that is replaced in the tree is not offered while the log has the first bytes. A
// client with the first bytes is fine, and a later one gets none. A client is told so that got the
// other bytes from a server without a log, or while the log could not be read.
func TestVerifyWhatIsReplacedInTheTree(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).OnlyThisPlatform("acme/demo", "1.0.0").Keys("acme", acme).
		Provider("acme/demo-beta", "1.0.0", zipsOnly, platforms(thisPlatform)).
		Module("acme/vpc/aws", "1.0.0", asTarGz)
	log := filepath.Join(t.TempDir(), "log")
	options := []string{"hostname registry.example.com", "rescan 1s"}
	s := site("registry.example.com", files, append(options, "tlog "+log)...)
	if err := os.Mkdir(log, 0o700); err != nil {
		t.Fatal(err)
	}
	registry := startRegistry(t, s)
	for _, path := range []string{"providers/acme/demo/1.0.0", "providers/acme/demo-beta/1.0.0", "modules/acme/vpc/aws/1.0.0"} {
		registry.onRecord(t, path)
	}
	const of = "registry.example.com/"
	zip := files.Path("providers/acme/demo-beta/terraform-provider-demo-beta_1.0.0_" + thisPlatform + ".zip")
	both := "terraform {\n  required_providers {\n    beta = { source = \"" + of + "acme/demo-beta\" }\n  }\n}\n" + called("vpc", of+"acme/vpc/aws", "1.0.0")
	otherBytes := []string{of + "acme/demo-beta 1.0.0 other bytes: .terraform.lock.hcl:", "other bytes: .terraform/providers/" + of + "acme/demo-beta/1.0.0/",
		of + "acme/vpc/aws 1.0.0 other bytes: .terraform/modules/vpc: it is not the package that is on record", "With findings: 2."}
	listed := func() bool {
		return registry.lists(t, "https://registry.example.com/v1/providers/acme/demo-beta/versions", "1.0.0") ||
			registry.Get(t, "https://registry.example.com/v1/modules/acme/vpc/aws/1.0.0/download").Status == http.StatusNoContent
	}

	firstClient(t, func(t *testing.T, c Client) {
		before := newWorkspace(t, registry, both)
		c.Run(t, before, "init")
		before.verified(t, "before", 0, "As on record: 2 of 2 versions.")

		if err := writeZip(zip, "terraform-provider-demo-beta_v1.0.0", strings.NewReader("evil")); err != nil {
			t.Fatal(err)
		}
		asTarGz(t, files.Path("modules/acme/vpc/aws/1.0.0"), map[string]string{"main.tf": `output "text" { value = "evil" }`})
		eventually(t, "both are withheld", func() bool { return !listed() })
		before.verified(t, "a zip and a module's file, after they were downloaded", 0, "As on record: 2 of 2 versions.")
		after := newWorkspace(t, registry, both)
		expect(t, c.Refused(t, after, "init"), "registry.example.com")

		without := startRegistry(t, site("registry.example.com", files, options...))
		after.moveTo(without)
		c.Run(t, after, "init")
		after.verified(t, "what a server without a log serves", 0, "Without a log: 2.")
		after.moveTo(registry)
		after.verified(t, "a zip and a module's file, from a server without a log", 1, otherBytes...)

		// The log cannot be read: its disk is not mounted.
		away := log + ".away"
		registry.Stop(t)
		if err := os.Rename(log, away); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(log, 0o700); err != nil {
			t.Fatal(err)
		}
		registry.start(t, []Site{s})
		eventually(t, "what the log would withhold is offered", listed)
		blind := newWorkspace(t, registry, both)
		c.Run(t, blind, "init")
		status, out := blind.verify(t)
		if status != 2 || !strings.Contains(out, "Not known: 2.") {
			t.Errorf("while the log cannot be read, the status is %d:\n%s", status, out)
		}
		registry.Stop(t)
		if err := os.RemoveAll(log); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(away, log); err != nil {
			t.Fatal(err)
		}
		registry.start(t, []Site{s})
		registry.onRecord(t, "modules/acme/vpc/aws/1.0.0")
		blind.verified(t, "a zip and a module's file, while the log could not be read", 1, otherBytes...)
		before.verified(t, "the first bytes, at the end", 0, "As on record: 2 of 2 versions.")
	})
}

// A replaced SHA256SUMS cannot change packages that are on record. Its hashes for platforms that
// were never here are compared with the lock files of clients that have seen it before.
func TestVerifySHA256SUMSThatIsReplaced(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := newTree(t).Provider("acme/demo", "1.0.0", signedBy(acme)).OnlyThisPlatform("acme/demo", "1.0.0").Keys("acme", acme)
	other := threePlatforms()[2]
	registry := startRegistry(t, site("registry.example.com", files, "hostname registry.example.com", "rescan 1s", "tlog "+t.TempDir()))
	registry.onRecord(t, "providers/acme/demo/1.0.0")
	sumsURL := "https://registry.example.com/v1/mirror/registry.example.com/acme/demo/1.0.0.json"
	const address = "registry.example.com/acme/demo 1.0.0"
	firstClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		c.Run(t, ws, "init")
		ws.verified(t, "before", 0, address+" from the start ok")

		// Without a new signature, the release is withheld.
		path := "providers/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS"
		first := files.Read(path)
		replaced := ""
		for line := range strings.Lines(first) {
			if strings.Contains(line, other) {
				line = strings.Repeat("0", 64) + line[64:]
			}
			replaced += line
		}
		writeFile(t, files.Path(path), replaced)
		eventually(t, "the release is withheld", func() bool {
			return registry.Get(t, sumsURL).Status != http.StatusOK || !registry.lists(t, versionsOfDemo, "1.0.0")
		})
		expect(t, c.Refused(t, newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0")), "init"), "registry.example.com/acme/demo")

		// Signed again, by the publisher.
		files.Provider("acme/demo", "1.0.0", signedBy(acme), sums(func(string) string { return replaced })).OnlyThisPlatform("acme/demo", "1.0.0")
		eventually(t, "the release is offered", func() bool { return registry.lists(t, versionsOfDemo, "1.0.0") })
		ws.verified(t, "a lock file with the hashes of the first SHA256SUMS", 1, address+" other bytes: .terraform.lock.hcl:", "1 of ", "in no entry, and they are not in SHA256SUMS either: zh:")
		after := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		c.Run(t, after, "init")
		after.verified(t, "a lock file of afterwards: nothing proves what was never here", 0, address+" from the start ok")
	})
}

// The bytes of a tag that change at the origin of a mirror do not come in, whether the mirror
// remembers the commit or the log alone has the bytes. A client that got them elsewhere is told so.
func TestVerifyATagThatMovesAtTheOrigin(t *testing.T) {
	t.Parallel()
	outside := newOutside(t, newTree(t))
	code := outside.CodeHost(t)
	moving := code.Repository("moving")
	moving.Commit(map[string]string{"main.tf": `output "text" { value = "first" }` + "\n"})
	moving.Tag("v1.0.0")
	code.Publish("acme/bytag/aws/1.0.0", "git::"+moving.URL+"?ref=v1.0.0")
	files := newTree(t)
	s := mirrorOf(codeHostRegistry, files, "modules")
	s.Options = append(s.Options, "tlog "+t.TempDir())
	mirror := outside.StartMirror(t, s)
	configuration := called("it", "code.example.com/acme/bytag/aws", "1.0.0")
	workspace := func(r *Registry) *Workspace {
		t.Helper()
		ws := newWorkspace(t, r, configuration)
		ws.CLIConfig(t, standingIn(codeHostRegistry))
		return ws
	}
	const ok, address = "As on record: 1 of 1 version.", "code.example.com/acme/bytag/aws 1.0.0"
	firstClient(t, func(t *testing.T, c Client) {
		before := workspace(mirror)
		c.Run(t, before, "init")
		before.verified(t, "before", 0, ok)

		moving.Rewrite()
		moving.Commit(map[string]string{"main.tf": `output "text" { value = "second" }` + "\n"})
		moving.Tag("v1.0.0")
		same := workspace(mirror)
		c.Run(t, same, "init")
		same.verified(t, "from the mirror, after the tag has moved", 0, ok)

		mirror.removeModule(t, files, "acme/bytag/aws", "1.0.0")
		expect(t, c.Refused(t, workspace(mirror), "init"), "is on record with other bytes since")
		before.verified(t, "after the mirror has lost the package", 0, ok)

		// The record of the commit is lost, too, with what the server remembers.
		mirror.Stop(t)
		for _, name := range files.files() {
			if err := os.Remove(files.Path(name)); err != nil {
				t.Fatal(err)
			}
		}
		mirror.start(t, []Site{s})
		expect(t, c.Refused(t, workspace(mirror), "init"), "is on record with other bytes since")
		before.verified(t, "after the mirror has lost what it knew of the origin", 0, ok)

		other := outside.StartMirror(t, mirrorOf(codeHostRegistry, newTree(t), "modules"))
		after := workspace(other)
		c.Run(t, after, "init")
		after.moveTo(mirror)
		after.verified(t, "the bytes of the tag that has moved, from another mirror", 1, address+" other bytes: .terraform/modules/it: it is not the package that is on record")
	})
}
