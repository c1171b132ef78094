package handlers_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	version "github.com/hashicorp/go-version"
	"golang.org/x/mod/semver"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// sampleTree has one provider of every kind: with and without a signature of its
// publisher, with names and versions that make other registries fail.
func sampleTree(t testing.TB, publisher *indextest.Publisher) *indextest.Tree {
	t.Helper()
	files := indextest.New(t)
	files.Keys("acme", indextest.NewPublisher(t), publisher)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64", "windows_amd64").Signed(publisher)
	files.Provider("acme/demo", "1.9.0", "linux_amd64")
	files.Provider("acme/demo", "1.10.0", "linux_amd64", "linux_arm64").Manifest("6.0")
	files.Provider("acme/demo", "1.10.0-rc.1", "linux_amd64")
	files.Provider("acme/demo", "1.0.0+build.5", "linux_amd64").Manifest("5.0", "6.0").Signed(publisher)
	files.Provider("acme/google-beta", "2.0.0", "linux_amd64")
	files.Provider("münchen/straße", "1.0.0", "linux_amd64")
	files.Provider("registry.terraform.io/hashicorp/null", "3.2.0", "linux_amd64", "darwin_arm64")
	return files
}

// Checklist, group B. This registry sends neither the texts that 21 is about nor the
// reason phrases that 31 allows.
func TestProviderVersions(t *testing.T) {
	files := sampleTree(t, indextest.NewPublisher(t))
	x := index.New(options(t, files))
	if _, err := x.Rescan(context.Background()); err != nil {
		t.Fatal(err)
	}
	g := registry(nil)
	g.Snapshot = x.Snapshot
	s := serve(t, g)
	const path = "/v1/providers/acme/demo/versions"
	demo := s.versions("acme/demo")
	raw := s.get(path)

	s.rule("13 it is 200 with versions, protocols and platforms", func(t *testing.T, s *site) {
		const want = `{"versions":[` +
			`{"version":"1.10.0","protocols":["6.0"],"platforms":[{"os":"linux","arch":"amd64"},{"os":"linux","arch":"arm64"}]},`
		if !strings.HasPrefix(raw.body, want) {
			t.Errorf("got %s, want %s…", raw.body, want)
		}
	})
	s.rule("14 every version is strict semver", func(t *testing.T, s *site) {
		for _, v := range demo.names() {
			parsed, err := version.NewSemver(v)
			if err != nil || !semver.IsValid("v"+v) || parsed.String() != v {
				t.Errorf("%q is read as %v (%v)", v, parsed, err)
			}
		}
		if want := []string{"1.10.0", "1.10.0-rc.1", "1.9.0", "1.0.0", "1.0.0+build.5"}; !slices.Equal(demo.names(), want) {
			t.Errorf("got %v, want %v: the newest first", demo.names(), want)
		}
	})
	s.rule("15 16 every version has protocols, strings of MAJOR.MINOR", func(t *testing.T, s *site) {
		for _, v := range demo.Versions {
			if len(v.Protocols) == 0 {
				t.Errorf("%s has none", v.Version)
			}
			for _, p := range v.Protocols {
				if !regexp.MustCompile(`^\d+\.\d+$`).MatchString(p) {
					t.Errorf("%s has %q", v.Version, p)
				}
			}
		}
	})
	s.rule("17 every version has platforms", func(t *testing.T, s *site) {
		for _, v := range demo.Versions {
			if len(v.Platforms) == 0 || v.Platforms[0].OS == "" || v.Platforms[0].Arch == "" {
				t.Errorf("%s has %v", v.Version, v.Platforms)
			}
		}
	})
	for _, path := range []string{"acme/none", "none/demo", "hashicorp/null", "terraform-x/-", "a_b/c.d"} {
		s.rule("18 an unknown provider is 404: "+path, func(t *testing.T, s *site) {
			mustRefuse(t, s.get("/v1/providers/"+path+"/versions"), http.StatusNotFound)
		})
	}
	for _, token := range []string{"Bearer token", "Bearer ", "Bearer", "Basic Z3Vlc3Q6Z3Vlc3Q="} {
		s.rule("19 a registry without access rules ignores credentials: "+token, func(t *testing.T, s *site) {
			if a := s.get(path, "Authorization: "+token); a.StatusCode != http.StatusOK || a.body != raw.body {
				t.Errorf("got %d %q", a.StatusCode, a.body)
			}
		})
	}
	s.rule("20 21 there are warnings only where versions are deprecated", func(t *testing.T, s *site) {
		if strings.Contains(raw.body, "warnings") {
			t.Errorf("got %s", raw.body)
		}
	})
	s.rule("22 a version stays when others are added, valid or not", func(t *testing.T, s *site) {
		files.Provider("acme/demo", "2.0.0", "linux_amd64")
		files.Write("providers/acme/demo/terraform-provider-demo_3.0.0_linux_amd64.zip", "not a zip")
		if _, err := x.Rescan(context.Background()); err != nil {
			t.Fatal(err)
		}
		if now := s.versions("acme/demo").names(); !slices.Equal(now, append([]string{"2.0.0"}, demo.names()...)) {
			t.Errorf("got %v after %v", now, demo.names())
		}
	})
	now := s.get(path)
	s.rule("23 upper case gets the same answer", func(t *testing.T, s *site) {
		if a := s.get("/v1/providers/ACME/Demo/versions"); a.StatusCode != http.StatusOK || a.body != now.body {
			t.Errorf("got %d %q", a.StatusCode, a.body)
		}
	})
	for _, path := range []string{"m%C3%BCnchen/stra%C3%9Fe", "M%C3%9Cnchen/stra%c3%9fe", "acme/google%2Dbeta"} {
		s.rule("24 percent-encoded names are accepted: "+path, func(t *testing.T, s *site) {
			if l := s.versions(path); len(l.Versions) != 1 {
				t.Errorf("got %v", l)
			}
		})
	}
	s.rule("27 a permanent error is a 4xx", func(t *testing.T, s *site) {
		for _, path := range []string{"acme/none", "acme/demo/versions/", "acme/demo/9.9.9", "acme/demo/9.9.9/download/linux/amd64", "//versions"} {
			a := s.get("/v1/providers/" + path)
			if a.StatusCode < 400 || a.StatusCode > 499 {
				t.Errorf("%s: got %d", path, a.StatusCode)
			}
			checkError(t, a.Header, a.body)
		}
	})
	for _, headers := range [][]string{nil, {"Accept-Encoding: gzip"}, {"Accept-Encoding: identity"}, {"Accept: application/vnd.api+json"}, {"Accept: *;q=0.1"}} {
		s.rule("29 neither Accept nor Accept-Encoding matters: "+strings.Join(headers, ""), func(t *testing.T, s *site) {
			a := s.get(path, headers...)
			if a.StatusCode != http.StatusOK || a.body != now.body || a.Header.Get("Content-Encoding") != "" {
				t.Errorf("got %d %q", a.StatusCode, a.body)
			}
		})
	}
	s.rule("30 there is no redirect", func(t *testing.T, s *site) {
		if now.StatusCode != http.StatusOK || now.Header.Get("Location") != "" {
			t.Errorf("got %d to %q", now.StatusCode, now.Header.Get("Location"))
		}
	})
}

func TestManyVersions(t *testing.T) {
	t.Run("25 28 all versions are in one document, at once", func(t *testing.T) {
		files := indextest.New(t)
		for i := range 500 {
			files.Provider("acme/demo", "1."+strconv.Itoa(i)+".0", "linux_amd64")
		}
		s := serve(t, registry(scan(t, files))) // whose client gives up after 10 s
		l := s.versions("acme/demo")
		if len(l.Versions) != 500 || l.Versions[0].Version != "1.499.0" {
			t.Errorf("got %d, the first %v", len(l.Versions), l.names()[0])
		}
	})
}

func TestTemporaryErrors(t *testing.T) {
	for _, path := range []string{"/v1/providers/acme/demo/versions", "/v1/modules/acme/vpc/aws/versions", "/v1/mirror/registry.terraform.io/hashicorp/null/index.json"} {
		t.Run("26 503 has a small Retry-After: "+path, func(t *testing.T) {
			a := serve(t, registry((*index.Snapshot)(nil))).get(path)
			mustRefuse(t, a, http.StatusServiceUnavailable)
			if got := a.Header.Get("Retry-After"); got != "1" {
				t.Errorf("Retry-After is %q", got)
			}
		})
	}
}

// Without a key of the registry, a release that its publisher did not sign has no
// signature, and no client would accept it from a registry.
func TestUnsignedReleases(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	o := options(t, sampleTree(t, publisher))
	o.Signer = nil
	s := serve(t, registry(scanWith(t, o)))

	s.rule("the registry lists signed releases only", func(t *testing.T, s *site) {
		if got, want := s.versions("acme/demo").names(), []string{"1.0.0", "1.0.0+build.5"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		s.install("acme/demo/1.0.0/download/linux/amd64")
	})
	s.rule("an unsigned one has no download", func(t *testing.T, s *site) {
		mustRefuse(t, s.get("/v1/providers/acme/demo/1.9.0/download/linux/amd64"), http.StatusNotFound)
	})
	s.rule("a provider with unsigned releases only is 404", func(t *testing.T, s *site) {
		mustRefuse(t, s.get("/v1/providers/acme/google-beta/versions"), http.StatusNotFound)
	})
	s.rule("the mirror has them all", func(t *testing.T, s *site) {
		if got := s.mirrored(ownHost + "/acme/google-beta"); !slices.Equal(got, []string{"2.0.0"}) {
			t.Errorf("got %v", got)
		}
		s.installMirrored(ownHost+"/acme/google-beta", "2.0.0", "linux_amd64")
	})
}

// Checklist, group C.
func TestProviderDownload(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	key := newKey(t)
	snapshot := scanWith(t, optionsWith(t, sampleTree(t, publisher), key))
	s := serve(t, registry(snapshot))

	// Every release and platform, and the key that signed it.
	all := map[string]string{
		"acme/demo/1.0.0/download/linux/amd64":                publisher.ID(),
		"acme/demo/1.0.0/download/darwin/arm64":               publisher.ID(),
		"acme/demo/1.0.0/download/windows/amd64":              publisher.ID(),
		"acme/demo/1.0.0+build.5/download/linux/amd64":        publisher.ID(),
		"acme/demo/1.9.0/download/linux/amd64":                key.PublicKey().ID,
		"acme/demo/1.10.0/download/linux/amd64":               key.PublicKey().ID,
		"acme/demo/1.10.0/download/linux/arm64":               key.PublicKey().ID,
		"acme/demo/1.10.0-rc.1/download/linux/amd64":          key.PublicKey().ID,
		"acme/google-beta/2.0.0/download/linux/amd64":         key.PublicKey().ID,
		"m%C3%BCnchen/stra%C3%9Fe/1.0.0/download/linux/amd64": key.PublicKey().ID,
	}
	for path, signer := range all {
		s.rule("33 35 36 42 55 it installs: "+path, func(t *testing.T, s *site) {
			s.install(path)
		})
		s.rule("47 the keys have their IDs: "+path, func(t *testing.T, s *site) {
			var ids []string
			for _, k := range s.download(path).SigningKeys.Keys {
				if !regexp.MustCompile(`^[0-9A-F]{16}$`).MatchString(k.ID) {
					t.Errorf("got %q", k.ID)
				}
				ids = append(ids, k.ID)
			}
			if got := strings.Join(ids, " "); !strings.Contains(got, signer) {
				t.Errorf("got %s, want %s among them", got, signer)
			}
		})
	}
	for _, v := range []string{"1.0.0+build.5", "1.0.0%2Bbuild.5"} {
		s.rule("32 a plus is a plus: "+v, func(t *testing.T, s *site) {
			d := s.download("acme/demo/" + v + "/download/linux/amd64")
			if d.Filename != "terraform-provider-demo_1.0.0+build.5_linux_amd64.zip" {
				t.Errorf("got %s", d.Filename)
			}
		})
	}
	s.rule("32 a plus is not a space", func(t *testing.T, s *site) {
		mustRefuse(t, s.get("/v1/providers/acme/demo/1.0.0%20build.5/download/linux/amd64"), http.StatusNotFound)
	})
	for _, path := range []string{
		"1.0.0/download/linux/arm64", "1.0.0/download/plan9/mips", "1.0.0/download/Linux/amd64", "1.0.0/download/linux_amd64/",
		"1.2.3/download/linux/amd64", "v1.0.0/download/linux/amd64", "1.0/download/linux/amd64", "latest/download/linux/amd64",
	} {
		s.rule("34 what was not built is 404: "+path, func(t *testing.T, s *site) {
			mustRefuse(t, s.get("/v1/providers/acme/demo/"+path), http.StatusNotFound)
		})
	}
	for path := range all {
		d := s.download(path)
		s.rule("36 the digest is 64 lower-case digits: "+path, func(t *testing.T, s *site) {
			if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(d.SHA256) {
				t.Errorf("got %q", d.SHA256)
			}
		})
		s.rule("37 there are three URLs: "+path, func(t *testing.T, s *site) {
			for _, u := range []string{d.DownloadURL, d.SHA256SumsURL, d.SHA256SumsSignature} {
				if !strings.HasPrefix(u, "/v1/mirror/-/") {
					t.Errorf("got %q", u)
				}
			}
		})
		for _, authorization := range []string{"", "Basic bmV0cmM6cGFzc3dvcmQ=", "Bearer of-another-host"} {
			for _, u := range []string{d.DownloadURL, d.SHA256SumsURL, d.SHA256SumsSignature} {
				s.rule("39 40 a file needs no credentials and ignores them "+authorization+": "+u, func(t *testing.T, s *site) {
					if a := s.get(u, "Authorization: "+authorization); a.StatusCode != http.StatusOK {
						t.Errorf("got %d", a.StatusCode)
					}
				})
			}
		}
		s.rule("41 HEAD, then GET, then GET again: "+path, func(t *testing.T, s *site) {
			head := s.do(http.MethodHead, home+d.DownloadURL)
			first, second := s.get(d.DownloadURL), s.get(d.DownloadURL)
			if head.StatusCode != http.StatusOK || head.ContentLength != int64(len(first.body)) || first.body != second.body {
				t.Errorf("got %d with %d bytes, then %d and %d", head.StatusCode, head.ContentLength, len(first.body), len(second.body))
			}
		})
		s.rule("42 43 44 each key is one block that can be read, without a trust signature: "+path, func(t *testing.T, s *site) {
			if len(d.SigningKeys.Keys) == 0 {
				t.Error("there is none")
			}
			for _, k := range d.SigningKeys.Keys {
				if n := strings.Count(k.Armor, "-----BEGIN PGP"); n != 1 {
					t.Errorf("%s has %d blocks", k.ID, n)
				}
				if r, err := openpgp.ReadArmoredKeyRing(strings.NewReader(k.Armor)); err != nil || len(r) != 1 || r[0].PrimaryKey.KeyIdString() != k.ID {
					t.Errorf("%s is read as %v (%v)", k.ID, r, err)
				}
				if k.TrustSignature == nil || *k.TrustSignature != "" {
					t.Errorf("%s has the trust signature %v", k.ID, k.TrustSignature)
				}
			}
		})
		s.rule("45 a protocol is one that clients speak: "+path, func(t *testing.T, s *site) {
			spoken := version.MustConstraints(version.NewConstraint(">= 5.0, < 7.0"))
			ok := len(d.Protocols) == 0
			for _, p := range d.Protocols {
				ok = ok || spoken.Check(version.Must(version.NewVersion(p)))
			}
			if !ok {
				t.Errorf("got %v", d.Protocols)
			}
		})
	}
	s.rule("46 a provider of protocol 6 says so", func(t *testing.T, s *site) {
		if d := s.download("acme/demo/1.10.0/download/linux/amd64"); len(d.Protocols) != 1 || d.Protocols[0] != "6.0" {
			t.Errorf("got %v", d.Protocols)
		}
	})
	s.rule("48 packages has size, zh: and h1: of every platform", func(t *testing.T, s *site) {
		d := s.download("acme/demo/1.0.0/download/linux/amd64")
		if len(d.Packages) != 3 {
			t.Fatalf("got %v", d.Packages)
		}
		for platform, p := range d.Packages {
			other := s.download("acme/demo/1.0.0/download/" + strings.ReplaceAll(platform, "_", "/"))
			zip := s.fetch(other.url, other.DownloadURL)
			if p.Size != int64(len(zip)) || len(p.Hashes) != 2 || p.Hashes[0] != dirhashOf(t, zip) || p.Hashes[1] != "zh:"+other.SHA256 {
				t.Errorf("%s is %v", platform, p)
			}
		}
	})
	for rule, signed := range map[string]bool{
		"48 packages is left out when the publisher's SHA256SUMS lists more platforms":                  true,
		"48 packages is left out when the SHA256SUMS that the registry has signed lists more platforms": false,
	} {
		s.rule(rule, func(t *testing.T, _ *site) {
			files := indextest.New(t)
			r := files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Checksums()
			if signed {
				files.Keys("acme", publisher)
				r.Signed(publisher)
			}
			files.Remove("providers/acme/demo/terraform-provider-demo_1.0.0_darwin_arm64.zip")
			s := serve(t, registry(scan(t, files)))
			if d := s.download("acme/demo/1.0.0/download/linux/amd64"); d.Packages != nil {
				t.Errorf("got %v", d.Packages)
			}
			if _, locked := s.install("acme/demo/1.0.0/download/linux/amd64"); len(locked) != 2 {
				t.Errorf("it locks %v", locked)
			}
		})
	}
	s.rule("49 packages is left out when two platforms have the same bytes", func(t *testing.T, _ *site) {
		files := indextest.New(t)
		same := indextest.ProviderZip("demo", "1.0.0", "any")
		files.Write("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", same)
		files.Write("providers/acme/demo/terraform-provider-demo_1.0.0_linux_arm64.zip", same)
		s := serve(t, registry(scan(t, files)))
		if d := s.download("acme/demo/1.0.0/download/linux/amd64"); d.Packages != nil {
			t.Errorf("got %v", d.Packages)
		}
		s.install("acme/demo/1.0.0/download/linux/arm64")
	})
}

func TestPublicURL(t *testing.T) {
	g := registry(scan(t, sampleTree(t, indextest.NewPublisher(t))))
	g.PublicURL = home
	s := serve(t, g)
	s.rule("38 with a public URL all URLs are absolute", func(t *testing.T, s *site) {
		d := s.download("acme/demo/1.0.0/download/linux/amd64")
		for _, u := range []string{d.DownloadURL, d.SHA256SumsURL, d.SHA256SumsSignature} {
			if !strings.HasPrefix(u, home+"/v1/mirror/-/acme/demo/terraform-provider-demo_1.0.0_") {
				t.Errorf("got %q", u)
			}
		}
		s.install("acme/demo/1.0.0/download/linux/amd64")
	})
}
