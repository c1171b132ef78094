package handlers_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// Checklist §6.C.
func TestProviderDownload(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	key := newKey(t)
	snapshot := scanWith(t, optionsWith(t, sampleTree(t, publisher), key))
	s := serve(t, registry(snapshot))

	// Every release and platform, whoever signed it.
	all := map[string]string{ // to the key that signed
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
	s.rule("32 a plus is no space", func(t *testing.T, s *site) {
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
				s.rule("39 40 a file is open to all "+authorization+": "+u, func(t *testing.T, s *site) {
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
	s.rule("49 packages is left out when two platforms have the same bytes", func(t *testing.T, _ *site) {
		tree := indextest.New(t)
		same := indextest.ProviderZip("demo", "1.0.0", "any")
		tree.Write("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", same)
		tree.Write("providers/acme/demo/terraform-provider-demo_1.0.0_linux_arm64.zip", same)
		s := serve(t, registry(scan(t, tree)))
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
