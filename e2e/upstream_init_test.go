package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

const demoOfOrigin = "origin.example.com/acme/demo"

// Clients that can reach only the mirror get the packages of its origin. The first
// client causes the download, the others do not. Fetched packages remain available
// without the origin, and without the upstream option: they are an ordinary tree.
func TestPullThrough(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	eachClient(t, func(t *testing.T, c Client) {
		published := newTree(t).
			Provider("acme/demo", "1.0.0", signedBy(acme)).
			Keys("acme", acme)
		outside := newOutside(t, published)
		filled := newTree(t)
		s := mirrorOf("origin.example.com", filled, "versions_ttl 1ms")
		mirror := outside.StartMirror(t, s)
		machine := func() *Workspace {
			ws := newWorkspace(t, mirror, greeting(demoOfOrigin, ">= 1.0.0"))
			ws.CLIConfig(t, viaMirror)
			return ws
		}
		greets := func(ws *Workspace, version string) {
			t.Helper()
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from `+version+`"`)
		}

		first := machine()
		c.Run(t, first, "init")
		greets(first, "1.0.0")
		if lock := first.Lock(t, demoOfOrigin); len(lock.H1) != 1 {
			t.Errorf("the lock file has h1: %v, want that of this platform", lock.H1)
		}
		wantDownloads(t, outside.Origin, zipOfDemo("1.0.0", thisPlatform))

		// Both hashes are known for packages in the tree. For others, only the hash
		// that the publisher signed is known.
		eventually(t, "the index has the fetched package", func() bool {
			return len(archivesOf(t, mirror, "1.0.0")[thisPlatform].Hashes) == 2
		})
		for platform, packed := range archivesOf(t, mirror, "1.0.0") {
			zh := "zh:" + sha256Of(t, published.Path("providers/acme/demo/"+zipOfDemo("1.0.0", platform)))
			if !slices.Contains(packed.Hashes, zh) || platform != thisPlatform && len(packed.Hashes) != 1 {
				t.Errorf("hashes for %s: %v, with %s", platform, packed.Hashes, zh)
			}
		}

		second := machine()
		c.Run(t, second, "init")
		greets(second, "1.0.0")
		wantDownloads(t, outside.Origin, zipOfDemo("1.0.0", thisPlatform))

		published.Provider("acme/demo", "1.1.0", signedBy(acme))
		eventually(t, "the origin lists the new release", func() bool {
			return strings.Contains(outside.Origin.Get(t, "https://origin.example.com/v1/providers/acme/demo/versions").Body, `"1.1.0"`)
		})
		c.Run(t, second, "init", "-upgrade")
		c.Run(t, second, "plan") // it starts the executable
		if lock := second.Lock(t, demoOfOrigin); lock.Version != "1.1.0" {
			t.Errorf("the lock file has %s", lock.Version)
		}

		lock := []string{"providers", "lock", "-net-mirror=https://mirror.example.com/v1/mirror/"}
		for _, platform := range threePlatforms() {
			lock = append(lock, "-platform="+platform)
		}
		team := machine()
		c.Run(t, team, lock...)
		if locked := team.Lock(t, demoOfOrigin); len(locked.H1) != 3 {
			t.Errorf("the lock file has h1: %v, want those of %v", locked.H1, threePlatforms())
		}
		wantDownloads(t, outside.Origin, zipOfDemo("1.0.0", thisPlatform),
			zipOfDemo("1.1.0", threePlatforms()[0]), zipOfDemo("1.1.0", threePlatforms()[1]), zipOfDemo("1.1.0", threePlatforms()[2]))

		outside.Origin.Stop(t)
		c.Run(t, team, "init", "-lockfile=readonly")
		third := machine()
		c.Run(t, third, "init")
		greets(third, "1.1.0")
		c.Run(t, first, "init", "-upgrade")
		if lock := first.Lock(t, demoOfOrigin); lock.Version != "1.1.0" {
			t.Errorf("the lock file has %s", lock.Version)
		}
		if answer := mirror.Get(t, mirrored("origin.example.com", "index.json")); answer.Header.Get("Age") == "" {
			t.Errorf("a stale list of versions is not marked as such: %d %v", answer.Status, answer.Header)
		}

		isPlainTree(t, published, filled, map[string][]string{"1.0.0": {thisPlatform}, "1.1.0": threePlatforms()})
		mirror.Settle(t)
		s.Options = nil
		mirror.Reload(t, s)
		for version, want := range map[string]int{"1.0.0": 1, "1.1.0": 3} {
			if got := archivesOf(t, mirror, version); len(got) != want {
				t.Errorf("without upstream, the mirror has these packages of %s: %v", version, got)
			}
		}
		plain := machine()
		c.Run(t, plain, "init")
		greets(plain, "1.1.0")
		c.Run(t, team, "init", "-lockfile=readonly")
		if asked := mirror.Proxy.Asked(); len(slices.Compact(asked)) != 1 {
			t.Errorf("clients connected to other hosts than the mirror: %v", asked)
		}
	})
}

// An archive is the entry of a package in VERSION.json.
type archive struct {
	URL    string
	Hashes []string
}

// archivesOf returns the archives of a version of acme/demo, by platform.
func archivesOf(t *testing.T, mirror *Registry, version string) map[string]archive {
	t.Helper()
	answer := mirror.Get(t, mirrored("origin.example.com", version+".json"))
	var document struct{ Archives map[string]archive }
	if err := json.Unmarshal([]byte(answer.Body), &document); err != nil || answer.Status != 200 {
		t.Fatalf("%s.json: %d %s", version, answer.Status, answer.Body)
	}
	return document.Archives
}

// wantDownloads verifies that an origin has sent exactly these packages so far,
// each once.
func wantDownloads(t *testing.T, origin *Registry, want ...string) {
	t.Helper()
	for _, name := range want { // the log may be late
		origin.Log.WaitAccess(t, "origin.example.com", "/v1/mirror/-/acme/demo/"+name)
	}
	var got []string
	for _, e := range origin.Log.Accesses("origin.example.com") {
		if strings.HasSuffix(e.Request.URI, ".zip") {
			got = append(got, lastElement(e.Request.URI))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the origin has sent %v, want %v", got, want)
	}
}

// isPlainTree compares a filled tree with the published one. It must have
// exactly the given platforms of each version, and their signed documents, beside its
// records.
func isPlainTree(t *testing.T, published, filled *Tree, present map[string][]string) {
	t.Helper()
	want := []string{"keys/origin.example.com/acme.asc"}
	for version, platforms := range present {
		release := "terraform-provider-demo_" + version + "_"
		// Manifests are not part of any protocol, and this registry does not
		// serve them.
		names := []string{release + "SHA256SUMS", release + "SHA256SUMS.sig"}
		for _, platform := range platforms {
			names = append(names, zipOfDemo(version, platform))
		}
		for _, name := range names {
			name = "/acme/demo/" + name
			want = append(want, "providers/origin.example.com"+name)
			if sha256Of(t, filled.Path("providers/origin.example.com"+name)) != sha256Of(t, published.Path("providers"+name)) {
				t.Errorf("%s differs from that of the origin", name)
			}
		}
	}
	got := slices.DeleteFunc(filled.files(), isRecord)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the tree has %v, want %v", got, want)
	}
	report, status := check(t, filled)
	if status != 0 || len(report.Withheld) != 0 || len(report.Offered) != len(present) {
		t.Errorf("check of the filled tree exits with %d: %+v", status, report)
	}
}
