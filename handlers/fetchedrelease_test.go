package handlers_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

const originStandIn = "/v1/registries/" + originHost

// A client installs from the registry that stands in as from the origin, whatever
// packages the tree has, and whether the origin answers or not.
func TestStandInPullsThrough(t *testing.T) {
	origin, publisher := signedTree(t)
	denied, err := pull.ParsePattern("acme/denied")
	if err != nil {
		t.Fatal(err)
	}
	p := pullThrough(t, origin, pull.Policy{Deny: []address.Pattern{denied}}, nil)
	p.site.original = originHost
	const linux, darwin = "acme/demo/1.0.0/download/linux/amd64", "acme/demo/1.0.0/download/darwin/arm64"

	p.rule("versions and platforms are the origin's", func(t *testing.T, s *site) {
		l := s.versions("acme/demo")
		if !slices.Equal(l.names(), []string{"1.1.0", "1.0.0"}) || len(l.Versions[1].Platforms) != 2 || !slices.Equal(l.Versions[1].Protocols, []string{"5.0"}) {
			t.Errorf("got %+v", l)
		}
	})
	p.rule("a package is described before it is fetched", func(t *testing.T, s *site) {
		d := s.download(linux)
		if keys := d.SigningKeys.Keys; len(keys) != 1 || keys[0].ID != publisher.ID() {
			t.Errorf("the keys are %v", keys)
		}
		if p.askedFor(".zip") != 0 {
			t.Error("it was fetched")
		}
	})
	p.rule("the client verifies the publisher's signature, and locks the hashes of all platforms", func(t *testing.T, s *site) {
		zip, locked := s.install(linux)
		if zip != origin.Read("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip") || len(locked) != 2 {
			t.Errorf("it locks %v", locked)
		}
	})
	p.rule("the hashes of all packages are listed once they are in the tree (checklist 48)", func(t *testing.T, s *site) {
		s.install(darwin)
		if d := s.download(linux); len(d.Packages) != 2 {
			t.Errorf("got %v", d.Packages)
		}
	})
	p.rule("what is in the tree is there when the origin is not", func(t *testing.T, s *site) {
		p.down.Store(true)
		defer p.down.Store(false)
		s.install(linux)
		if got := s.versions("acme/demo").names(); !slices.Equal(got, []string{"1.1.0", "1.0.0"}) {
			t.Errorf("the versions are %v", got)
		}
	})
	for rule, path := range map[string]string{
		"a version that does not exist":  "acme/demo/9.0.0/download/linux/amd64",
		"what is no version":             "acme/demo/latest/download/linux/amd64",
		"a platform that does not exist": "acme/demo/1.1.0/download/plan9/386",
		"what is no platform":            "acme/demo/1.1.0/download/Linux/amd64",
		"a provider that does not exist": "acme/nothing/versions",
		"a provider that is not fetched": "acme/denied/versions",
	} {
		p.rule(rule, func(t *testing.T, s *site) {
			mustRefuse(t, s.get(originStandIn+"/providers/"+path), http.StatusNotFound)
		})
	}
	if p.askedFor("denied/versions") != 0 {
		t.Error("the origin was asked for what is not fetched")
	}
}

// A withdrawn version is neither listed nor fetched, and clients are warned of a
// deprecated one, whether or not the tree has the version.
func TestStandInNoticesOfTheOperator(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, func(files *indextest.Tree) {
		files.Write("providers/"+originHost+"/acme/demo/registry.hcl", "withdrawn \"1.1.0\" {\n  reason = \"CVE-2026-1\"\n}\ndeprecated \"1.0.0\" {\n  reason = \"use 2.0\"\n}\n")
	})
	p.site.original = originHost
	l := p.versions("acme/demo")
	if !slices.Equal(l.names(), []string{"1.0.0"}) || !slices.Equal(l.Warnings, []string{"withdrawn, use other versions than 1.1.0 (CVE-2026-1)", "version 1.0.0 is deprecated: use 2.0"}) {
		t.Errorf("got %+v", l)
	}
	mustRefuse(t, p.get(originStandIn+"/providers/acme/demo/1.1.0/download/linux/amd64"), http.StatusGone)
}

// Of the platforms that an upstream does not include, only packages in the tree are listed.
func TestStandInListsThePlatformsOfItsPolicy(t *testing.T) {
	origin, publisher := signedTree(t)
	linux := address.Platform{OS: "linux", Arch: "amd64"}
	p := pullThrough(t, origin, pull.Policy{Platforms: []address.Platform{linux}}, func(files *indextest.Tree) {
		files.Keys(originHost+"/acme", publisher)
		files.Provider(originHost+"/acme/demo", "1.0.0", "darwin_arm64", "linux_amd64").Signed(publisher)
		files.Remove("providers/" + originHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip")
	})
	p.site.original = originHost
	listed := make(map[string]int)
	for _, v := range p.versions("acme/demo").Versions {
		for _, k := range v.Platforms {
			listed[v.Version]++
			p.install("acme/demo/" + v.Version + "/download/" + k.OS + "/" + k.Arch)
		}
	}
	if listed["1.0.0"] != 2 || listed["1.1.0"] != 1 {
		t.Errorf("the numbers of platforms are %v", listed)
	}
}

// A tree that has all packages that it may have needs no answer of the origin, which may hang.
func TestStandInThatHasWhatItMayHaveAsksNothing(t *testing.T) {
	for rule, policy := range map[string]pull.Policy{
		"all platforms": {},
		"one platform":  {Platforms: []address.Platform{{OS: "linux", Arch: "amd64"}}},
	} {
		t.Run(rule, func(t *testing.T) {
			origin, publisher := signedTree(t)
			p := pullThrough(t, origin, policy, func(files *indextest.Tree) {
				files.Keys(originHost+"/acme", publisher)
				files.Provider(originHost+"/acme/demo", "1.0.0", "darwin_arm64", "linux_amd64").Signed(publisher)
				if policy.Platforms != nil {
					files.Remove("providers/" + originHost + "/acme/demo/terraform-provider-demo_1.0.0_darwin_arm64.zip")
				}
			})
			p.site.original = originHost
			p.versions("acme/demo")
			before := p.askedFor("")
			p.install("acme/demo/1.0.0/download/linux/amd64")
			p.hashes(originPath + "demo/1.0.0.json")
			if asked := p.askedFor(""); asked != before {
				t.Errorf("the origin was asked %d times", asked-before)
			}
		})
	}
}

// Without a key of its own, the registry lists unsigned packages if the publisher has signed them at
// the origin.
func TestStandInWithoutASigningKey(t *testing.T) {
	origin, publisher := signedTree(t)
	const demo = originHost + "/acme/demo"
	p := pullThrough(t, origin, pull.Policy{}, func(files *indextest.Tree) {
		files.Provider(demo, "1.0.0", "linux_amd64")
		files.Provider(demo, "9.0.0", "linux_amd64")
	})
	snapshot := scanWith(t, optionsWith(t, p.tree, nil))
	p.registry.Snapshot = func() *index.Snapshot { return snapshot }
	p.site.original = originHost
	l := p.versions("acme/demo")
	if !slices.Equal(l.names(), []string{"1.1.0", "1.0.0"}) || len(l.Versions[1].Platforms) != 2 {
		t.Errorf("got %+v", l.Versions)
	}
	for _, v := range l.Versions {
		for _, k := range v.Platforms {
			path := "acme/demo/" + v.Version + "/download/" + k.OS + "/" + k.Arch
			if p.install(path); p.download(path).SigningKeys.Keys[0].ID != publisher.ID() {
				t.Errorf("%s %s: another key has signed it", v.Version, k.OS)
			}
		}
	}
}

// A provider exists although none of its versions may be fetched: a mirror's index.json is
// empty then. A 404 would send clients elsewhere, or stop them.
func TestIndexOfVersionsThatAreAllWithdrawn(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, func(files *indextest.Tree) {
		files.Write("providers/"+originHost+"/acme/demo/registry.hcl", "withdrawn \">= 0\" {}\n")
	})
	if a := p.get(originPath + "demo/index.json"); a.StatusCode != http.StatusOK || string(a.body) != `{"versions":{}}` {
		t.Errorf("it is %d %s", a.StatusCode, a.body)
	}
	mustRefuse(t, p.get(originStandIn+"/providers/acme/demo/versions"), http.StatusNotFound)
}

// The latest version of a provider that is not in the tree is not a deprecated one.
func TestDetailFetchesNoDeprecatedVersion(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, func(files *indextest.Tree) {
		files.Write("providers/"+originHost+"/acme/demo/registry.hcl", "deprecated \"1.1.0\" {}\n")
	})
	p.registry.Next = func(context.Context, *index.Snapshot, ...index.Selection) *index.Snapshot {
		p.registry.Changed()
		return p.registry.Snapshot()
	}
	var d struct{ ID string }
	if p.json(originStandIn+"/providers/acme/demo", &d); d.ID != "acme/demo/1.0.0" {
		t.Errorf("it is %s", d.ID)
	}
}

// The details of a release that is not in the tree are shown as soon as the tree has a
// package of it.
func TestStandInFetchesWhatItDescribes(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, nil)
	p.registry.Next = func(_ context.Context, after *index.Snapshot, _ ...index.Selection) *index.Snapshot {
		if p.registry.Snapshot() == after {
			p.registry.Changed()
		}
		return p.registry.Snapshot()
	}
	var d struct{ ID string }
	for path, want := range map[string]string{"acme/denied": "acme/denied/1.0.0", "acme/demo/1.0.0": "acme/demo/1.0.0"} {
		if p.json(originStandIn+"/providers/"+path, &d); d.ID != want {
			t.Errorf("%s: got %s", path, d.ID)
		}
	}
	if got := p.askedFor("linux_amd64.zip"); got != 2 || p.askedFor(".zip") != 2 {
		t.Errorf("%d packages for the most likely platform were fetched, of %d", got, p.askedFor(".zip"))
	}
	if p.json(originStandIn+"/providers/acme/demo", &d); d.ID != "acme/demo/1.0.0" {
		t.Errorf("the latest of what is in the tree is %s", d.ID)
	}
	mustRefuse(t, p.get(originStandIn+"/providers/acme/demo/9.0.0"), http.StatusNotFound)
	mustRefuse(t, p.get(originStandIn+"/providers/acme/nothing"), http.StatusNotFound)
}

// A releasing is an upstream with one release. It fetches no package by itself.
type releasing struct {
	pull.Upstream
	release *upstream.Release
	fails   error
	answer  func(address.Platform) (*upstream.Release, error) // in place of release and fails, for a platform
	fill    func(name string) (*pull.Filled, error)
}

func (releasing) Mirrors(address.Address) bool { return true }

func (u releasing) Versions(context.Context, address.Address) (pull.Offering, error) {
	return pull.Offering{Versions: []wire.ProviderVersion{{Version: u.release.Version}}, Age: time.Second}, u.fails
}

func (u releasing) ReleaseFor(_ context.Context, _ address.Address, _ string, p address.Platform, _ *index.Release) (*upstream.Release, error) {
	if u.answer != nil {
		return u.answer(p)
	}
	return u.release, u.fails
}

func (releasing) Misled(wire.SHA256) bool { return false }

func (u releasing) MayHaveMore(_ address.Address, present *index.Release) bool {
	return len(u.release.Packages) > len(present.Packages)
}

func (u releasing) Available(context.Context, address.Address, string, *index.Release) (list []wire.Archive, complete bool, err error) {
	for _, p := range u.release.Packages {
		list = append(list, wire.Archive{Platform: p.Platform, URL: p.Name, Hashes: []string{p.SHA256.ZH()}})
	}
	return list, true, u.fails
}

func (u releasing) Fill(_ context.Context, _ address.Address, name string, _ *index.Provider, _ pull.FillOptions) (*pull.Filled, error) {
	if u.fill == nil {
		return nil, upstream.ErrNotFound
	}
	return u.fill(name)
}

var demoOfOrigin = address.Address{Hostname: originHost, Namespace: "acme", Name: "demo"}

// unsignedRelease returns demo 1.0.0 for two platforms, from a tree that has its files.
func unsignedRelease(t *testing.T, files *indextest.Tree) *upstream.Release {
	t.Helper()
	r := files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Checksums()
	return releaseOf(t, files.Read(r.ChecksumsName()))
}

// releaseOf returns demo 1.0.0 with that SHA256SUMS.
func releaseOf(t *testing.T, checksums string) *upstream.Release {
	t.Helper()
	sums, err := wire.DecodeChecksums([]byte(checksums))
	if err != nil {
		t.Fatal(err)
	}
	release := &upstream.Release{Address: demoOfOrigin, Version: "1.0.0", Checksums: []byte(checksums), Sums: sums}
	release.Packages = release.ListedPackages()
	return release
}

// signRelease signs a release.
func signRelease(t *testing.T, r *upstream.Release, by *indextest.Publisher) {
	t.Helper()
	ring, err := signing.ReadKeyring([]byte(by.PublicKey()))
	if err != nil {
		t.Fatal(err)
	}
	r.Keys, r.Signature = ring.Keys(), []byte(by.Sign(string(r.Checksums)))
}

// If the signature of a release's publisher is unknown, the registry signs the release.
// Its documents stay the same while its packages come into the tree.
func TestReleasesThatArriveUnsigned(t *testing.T) {
	const zips, sums = "acme/demo/terraform-provider-demo_1.0.0_", originPath + "demo/terraform-provider-demo_1.0.0_SHA256SUMS"
	for _, test := range []struct {
		rule   string
		change func(*upstream.Release)
		kept   bool // SHA256SUMS in the tree
	}{
		{"with SHA256SUMS", func(*upstream.Release) {}, true},
		{"with a signature by an unknown key", func(r *upstream.Release) { r.Signature = []byte("by somebody") }, true},
		{"with SHA256SUMS that the tree does not have", func(*upstream.Release) {}, false},
		{"from a mirror without SHA256SUMS", func(r *upstream.Release) { r.Checksums, r.Sums = nil, nil }, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files, folders := indextest.New(t), indextest.New(t)
			release := unsignedRelease(t, files)
			test.change(release)
			o := options(t, folders)
			snapshot := scanWith(t, o)
			s := serve(t, &handlers.Registry{Snapshot: func() *index.Snapshot { return snapshot }, Upstream: releasing{release: release}})
			s.original = originHost
			const path = "acme/demo/1.0.0/download/linux/amd64"
			d := s.download(path)
			checksums, signature := s.get(sums), s.get(sums+".sig")
			if err := checkSignature([]string{d.SigningKeys.Keys[0].Armor}, checksums.body, signature.body); err != nil {
				t.Fatal(err)
			}
			if len(acceptableHashes([]byte(checksums.body))) != 2 {
				t.Errorf("SHA256SUMS is %s", checksums.body)
			}
			for _, platform := range []string{"linux_amd64", "darwin_arm64"} {
				folders.Write("providers/"+originHost+"/"+zips+platform+".zip", files.Read("providers/"+zips+platform+".zip"))
				if test.kept {
					folders.Write("providers/"+originHost+"/"+zips+"SHA256SUMS", string(release.Checksums))
				}
				snapshot = scanWith(t, o)
				if a := s.get(sums); a.body != checksums.body || a.Header.Get("Etag") != checksums.Header.Get("Etag") {
					t.Errorf("with %s SHA256SUMS is %s", platform, a.body)
				}
				if s.get(sums+".sig").body != signature.body {
					t.Errorf("with %s the signature is another", platform)
				}
				s.install(path)
			}
			if d := s.download(path); len(d.Packages) != 2 {
				t.Errorf("with both packages the hashes are %v", d.Packages)
			}
		})
	}
}

// A platform that the origin has added is described with a SHA256SUMS that lists it,
// though the tree still has an earlier SHA256SUMS.
func TestStandInOfPlatformsThatAreAdded(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	files := indextest.New(t).Keys(originHost+"/acme", publisher)
	files.Provider(originHost+"/acme/demo", "1.0.0", "linux_amd64").Signed(publisher)
	release := unsignedRelease(t, indextest.New(t))
	signRelease(t, release, publisher)
	g := registry(scan(t, files))
	g.Upstream = releasing{release: release}
	s := serve(t, g)
	s.original = originHost
	if _, locked := s.install("acme/demo/1.0.0/download/linux/amd64"); len(locked) != 2 {
		t.Errorf("it locks %v", locked)
	}
	d := s.download("acme/demo/1.0.0/download/darwin/arm64")
	if d.Packages != nil {
		t.Errorf("the hashes are %v, though not all are known (checklist 48)", d.Packages)
	}
	if err := matchingChecksum([]byte(s.fetch(d.url, d.SHA256SumsURL)), d.Filename, d.SHA256); err != nil {
		t.Error(err)
	}
}

// The registry signs a release in the tree without SHA256SUMS, and the origin has it signed by
// its publisher. All documents of an installation are of one of them, whichever can be had.
func TestDocumentsOfOneInstallationHaveOneIssuer(t *testing.T) {
	const linux = "acme/demo/1.0.0/download/linux/amd64"
	publisher := indextest.NewPublisher(t)
	packages := indextest.New(t)
	release := unsignedRelease(t, packages)
	signRelease(t, release, publisher)
	const zip = "acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	files := indextest.New(t).Write("providers/"+originHost+"/"+zip, packages.Read("providers/"+zip))
	snapshot := scan(t, files)
	// standIn returns a registry whose origin fails while it is down.
	standIn := func(t *testing.T, down *bool) *handlers.Registry {
		g := registry(snapshot)
		g.Upstream = releasing{release: release, answer: func(address.Platform) (*upstream.Release, error) {
			if *down {
				return nil, upstream.ErrTimeout
			}
			return release, nil
		}}
		return g
	}
	site := func(t *testing.T, g *handlers.Registry) *site {
		s := serve(t, g)
		s.original = originHost
		return s
	}
	verify := func(t *testing.T, d download, sums, signature string) {
		t.Helper()
		if err := checkSignature([]string{d.SigningKeys.Keys[0].Armor}, sums, signature); err != nil {
			t.Error(err)
		}
		if err := matchingChecksum([]byte(sums), d.Filename, d.SHA256); err != nil {
			t.Error(err)
		}
	}
	t.Run("the registry, if the origin answers too late", func(t *testing.T) {
		down := true
		s := site(t, standIn(t, &down))
		d := s.download(linux)
		down = false
		verify(t, d, s.fetch(d.url, d.SHA256SumsURL), s.fetch(d.url, d.SHA256SumsSignature))
	})
	t.Run("the publisher, or none if the origin fails meanwhile", func(t *testing.T) {
		down := false
		s := site(t, standIn(t, &down))
		d := s.download(linux)
		down = true
		for _, link := range []string{d.SHA256SumsURL, d.SHA256SumsSignature} {
			a := s.get(s.resolve(d.url, link).String())
			if mustRefuse(t, a, http.StatusServiceUnavailable); !strings.Contains(a.body, "cannot be fetched from the origin at the moment") {
				t.Errorf("it says %s", a.body)
			}
		}
		down = false
		verify(t, d, s.fetch(d.url, d.SHA256SumsURL), s.fetch(d.url, d.SHA256SumsSignature))
	})
	t.Run("links are signed beside that", func(t *testing.T) {
		down := true
		g := privately(t, standIn(t, &down), "allow reader read "+originHost+"/acme")
		g.PublicURL = home
		document := originStandIn + "/providers/" + linux
		var d download
		if w := askAs(g, reader, ownHost, document); json.Unmarshal(w.Body.Bytes(), &d) != nil {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		down = false
		sums := askAs(g, anonymous, ownHost, pathOf(t, home+document, d.SHA256SumsURL)).Body.String()
		verify(t, d, sums, askAs(g, anonymous, ownHost, pathOf(t, home+document, d.SHA256SumsSignature)).Body.String())
	})
	t.Run("a link of a hosted provider says nothing of it", func(t *testing.T) {
		s := serve(t, registry(scan(t, packages)))
		if d := s.download(linux); strings.Contains(d.SHA256SumsURL, "?") {
			t.Errorf("it is %s", d.SHA256SumsURL)
		}
	})
}

// If the origin has added platforms, and signed SHA256SUMS again with another key, packages in
// the tree are described with that key too.
func TestPackagesOfTheTreeWithANewKeyOfTheOrigin(t *testing.T) {
	const linux = "acme/demo/1.0.0/download/linux/amd64"
	before, after := indextest.NewPublisher(t), indextest.NewPublisher(t)
	files := indextest.New(t).Keys(originHost+"/acme", before)
	files.Provider(originHost+"/acme/demo", "1.0.0", "linux_amd64").Signed(before)
	kept := releaseOf(t, files.Read("providers/"+originHost+"/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS"))
	signRelease(t, kept, before)
	extended := unsignedRelease(t, indextest.New(t))
	signRelease(t, extended, after)
	slow := false
	g := registry(scan(t, files))
	g.Upstream = releasing{release: extended, answer: func(p address.Platform) (*upstream.Release, error) {
		switch {
		case p.OS == "linux":
			return kept, nil
		case slow:
			return nil, upstream.ErrTimeout
		}
		return extended, nil
	}}
	s := serve(t, g)
	s.original = originHost
	slow = true
	d := s.download(linux)
	slow = false
	if err := checkSignature([]string{d.SigningKeys.Keys[0].Armor}, s.fetch(d.url, d.SHA256SumsURL), s.fetch(d.url, d.SHA256SumsSignature)); err != nil {
		t.Errorf("described before the origin has answered: %v", err)
	}
	if _, locked := s.install(linux); len(locked) != 2 {
		t.Errorf("it locks %v", locked)
	}
}

// A registry that signs nothing offers no release without a signature of its publisher.
func TestUnsignedReleasesWithoutASigningKey(t *testing.T) {
	files := indextest.New(t)
	for rule, o := range map[string]index.Options{
		"signing_key off":    {Open: files.Open},
		"signatures require": {Open: files.Open, Signer: newKey(t), RequireSignatures: true},
	} {
		t.Run(rule, func(t *testing.T) {
			g := registry(scanWith(t, o))
			g.Upstream = releasing{release: unsignedRelease(t, indextest.New(t))}
			s := serve(t, g)
			a := s.get(originStandIn + "/providers/acme/demo/1.0.0/download/linux/amd64")
			if mustRefuse(t, a, http.StatusNotFound); !strings.Contains(a.body, "is not signed") {
				t.Errorf("it says %s", a.body)
			}
			mustRefuse(t, s.get(originPath+"demo/terraform-provider-demo_1.0.0_SHA256SUMS.sig"), http.StatusNotFound)
		})
	}
}

// Clients get the packages in the tree. If the origin has other bytes, its documents
// are not mixed with them.
func TestTheTreesPackagesCount(t *testing.T) {
	for _, test := range []struct {
		rule   string
		signed bool
	}{{"of a signed release", true}, {"of one that is not signed", false}} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			files.Write("providers/"+originHost+"/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", indextest.ProviderZip("demo", "1.0.0", "another"))
			release := unsignedRelease(t, indextest.New(t))
			if test.signed {
				publisher := indextest.NewPublisher(t)
				signRelease(t, release, publisher)
			}
			g := registry(scan(t, files))
			g.Upstream = releasing{release: release}
			s := serve(t, g)
			s.original = originHost
			s.install("acme/demo/1.0.0/download/linux/amd64")
		})
	}
}

// The hashes that an origin announces complete the hashes of the tree, if h1:, zh: and
// size are known for every package (checklist 48).
func TestAnnouncedHashes(t *testing.T) {
	release := unsignedRelease(t, indextest.New(t))
	h1 := "h1:" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	announced := func(change func(h *wire.PackageHashes)) map[address.Platform]wire.PackageHashes {
		all := make(map[address.Platform]wire.PackageHashes)
		for i, p := range release.Packages {
			all[p.Platform] = wire.PackageHashes{Hashes: []string{fmt.Sprint(h1[:len(h1)-3], i, "A="), "zh:" + p.SHA256.String()}, Size: 7}
		}
		h := all[release.Packages[0].Platform]
		change(&h)
		all[release.Packages[0].Platform] = h
		return all
	}
	for _, test := range []struct {
		rule   string
		change func(*wire.PackageHashes)
		want   int
	}{
		{"all are known", func(*wire.PackageHashes) {}, 2},
		{"without the size of one", func(h *wire.PackageHashes) { h.Size = 0 }, 0},
		{"without h1: of one", func(h *wire.PackageHashes) { h.Hashes = h.Hashes[1:] }, 0},
		{"with another zh: of one", func(h *wire.PackageHashes) { h.Hashes[1] = "zh:" + wire.SHA256{1}.String() }, 0},
	} {
		release.Announced = announced(test.change)
		g := registry(scan(t, indextest.New(t)))
		g.Upstream = releasing{release: release}
		s := serve(t, g)
		s.original = originHost
		if d := s.download("acme/demo/1.0.0/download/linux/amd64"); len(d.Packages) != test.want {
			t.Errorf("%s: got %v", test.rule, d.Packages)
		}
	}
}

// Clients need the sha256 of a package. If a mirror does not know it, the package is
// fetched first.
func TestPackagesWithoutASHA256AreFetchedFirst(t *testing.T) {
	const name = "terraform-provider-demo_1.0.0_linux_amd64.zip"
	files := indextest.New(t)
	o := options(t, files)
	snapshot := scanWith(t, o)
	linux := address.Platform{OS: "linux", Arch: "amd64"}
	u := releasing{release: &upstream.Release{Address: demoOfOrigin, Version: "1.0.0", Packages: []upstream.Package{{Platform: linux, Name: name, FileHashes: []string{"h1:x"}}}}}
	u.fill = func(string) (*pull.Filled, error) {
		files.Provider(originHost+"/acme/demo", "1.0.0", "linux_amd64")
		return &pull.Filled{New: true}, nil
	}
	g := &handlers.Registry{
		Snapshot: func() *index.Snapshot { return snapshot }, Upstream: u,
		Next: func(context.Context, *index.Snapshot, ...index.Selection) *index.Snapshot {
			snapshot = scanWith(t, o)
			return snapshot
		},
	}
	s := serve(t, g)
	s.original = originHost
	mustRefuse(t, s.get(originPath+"demo/terraform-provider-demo_1.0.0_SHA256SUMS"), http.StatusNotFound) // an empty one
	s.install("acme/demo/1.0.0/download/linux/amd64")
}

// If a version or a file cannot be fetched, the answer says the true reason.
func TestStandInSaysWhyThereIsNoVersion(t *testing.T) {
	for _, test := range []struct {
		fails  error
		status int
		says   string
	}{
		{upstream.ErrNotFound, http.StatusNotFound, "neither has its origin"},
		{pull.ErrNotMirrored, http.StatusNotFound, "does not fetch it"},
		{pull.ErrExcluded, http.StatusNotFound, "its configuration excludes it"},
		{pull.ErrUnlisted, http.StatusNotFound, "its origin does not list it"},
		{pull.ErrTooYoung, http.StatusNotFound, "published too recently"},
		{pull.ErrWithdrawn, http.StatusGone, "the version is withdrawn"},
		{upstream.ErrUnavailable, http.StatusBadGateway, "could not fetch it"},
	} {
		g := registry(scan(t, indextest.New(t)))
		g.Upstream = releasing{release: new(upstream.Release), fails: test.fails, fill: func(string) (*pull.Filled, error) { return nil, test.fails }}
		s := serve(t, g)
		for path, of := range map[string]string{
			originStandIn + "/providers/acme/demo/1.0.0/download/linux/amd64": originHost + "/acme/demo 1.0.0, ",
			originPath + "demo/terraform-provider-demo_1.0.0_plan9_386.zip":   "such file of " + originHost + "/acme/demo, ",
		} {
			a := s.get(path)
			if mustRefuse(t, a, test.status); !strings.Contains(a.body, test.says) || test.status != http.StatusBadGateway && !strings.Contains(a.body, "this registry has no "+of) {
				t.Errorf("%v: it says %s", test.fails, a.body)
			}
		}
	}
}
