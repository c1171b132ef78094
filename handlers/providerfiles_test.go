package handlers_test

import (
	"archive/zip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// Checklist, group D. The message that 57 asks for is part of the report: see package
// index.
func TestProviderFiles(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	files := sampleTree(t, publisher)
	s := serve(t, registry(scan(t, files)))
	const folder = "providers/acme/demo/"

	for _, v := range []string{"1.0.0", "1.9.0", "1.10.0", "1.10.0-rc.1", "1.0.0+build.5"} {
		d := s.download("acme/demo/" + v + "/download/linux/amd64")
		sums := s.fetch(d.url, d.SHA256SumsURL)
		lines := strings.Split(strings.TrimSuffix(sums, "\n"), "\n")

		s.rule("50 51 52 every line is a digest and a bare file name: "+v, func(t *testing.T, s *site) {
			if len(acceptableHashes([]byte(sums))) != len(lines) {
				t.Errorf("clients would drop the list %q", sums)
			}
			for _, line := range lines {
				if _, name, _ := strings.Cut(line, "  "); name != path.Base(name) || strings.HasPrefix(name, "*") {
					t.Errorf("got %q", line)
				}
			}
		})
		s.rule("53 every platform is listed: "+v, func(t *testing.T, s *site) {
			for _, p := range s.platforms("acme/demo", v) {
				other := s.download("acme/demo/" + v + "/download/" + p)
				if err := matchingChecksum([]byte(sums), other.Filename, other.SHA256); err != nil {
					t.Error(err)
				}
			}
		})
		s.rule("54 55 the signature is of these bytes, binary and detached: "+v, func(t *testing.T, s *site) {
			signature := s.fetch(d.url, d.SHA256SumsSignature)
			var armors []string
			for _, k := range d.SigningKeys.Keys {
				armors = append(armors, k.Armor)
			}
			if err := checkSignature(armors, sums, signature); err != nil {
				t.Error(err)
			}
			if signature[0]&0x80 == 0 {
				t.Errorf("it is not a binary packet: %q", signature)
			}
		})
		s.rule("58 the zip has the provider at its root: "+v, func(t *testing.T, s *site) {
			content := s.fetch(d.url, d.DownloadURL)
			z, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(z.File, func(f *zip.File) bool {
				rest, ok := strings.CutPrefix(f.Name, "terraform-provider-demo")
				return ok && (rest == "" || rest[0] == '_' || rest[0] == '.') && f.Mode()&0o111 != 0
			}) {
				t.Errorf("got %v", z.File)
			}
		})
		s.rule("59 60 files are 200 with an exact Content-Length, as they are on the disk: "+v, func(t *testing.T, s *site) {
			for _, u := range []string{d.DownloadURL, d.SHA256SumsURL, d.SHA256SumsSignature} {
				a := s.get(u)
				if a.StatusCode != http.StatusOK || a.ContentLength != int64(len(a.body)) || a.Header.Get("Content-Encoding") != "" {
					t.Errorf("%s: got %d with %d for %d bytes", u, a.StatusCode, a.ContentLength, len(a.body))
				}
			}
			if s.fetch(d.url, d.DownloadURL) != files.Read(folder+d.Filename) {
				t.Error("the zip differs")
			}
		})
	}
	s.rule("54 a publisher's documents are served as published", func(t *testing.T, s *site) {
		d := s.download("acme/demo/1.0.0/download/linux/amd64")
		for u, name := range map[string]string{
			d.SHA256SumsURL:       folder + "terraform-provider-demo_1.0.0_SHA256SUMS",
			d.SHA256SumsSignature: folder + "terraform-provider-demo_1.0.0_SHA256SUMS.sig",
		} {
			if s.fetch(d.url, u) != files.Read(name) {
				t.Errorf("%s differs", name)
			}
		}
	})
	s.rule("60 a replaced file is not served under its old digest", func(t *testing.T, s *site) {
		d := s.download("acme/demo/1.9.0/download/linux/amd64")
		files.Write(folder+d.Filename, indextest.ProviderZip("demo", "1.9.0", "another_platform"))
		a := s.get(d.DownloadURL)
		mustRefuse(t, a, http.StatusServiceUnavailable)
	})
}

func (s *site) platforms(address, version string) (platforms []string) {
	s.t.Helper()
	for _, v := range s.versions(address).Versions {
		if v.Version == version {
			for _, p := range v.Platforms {
				platforms = append(platforms, p.OS+"/"+p.Arch)
			}
		}
	}
	return platforms
}

// Each row breaks the release 1.0.0 beside a good one.
func TestBadReleases(t *testing.T) {
	const (
		base = "providers/acme/demo/terraform-provider-demo_1.0.0"
		zip  = base + "_linux_amd64.zip"
		sums = base + "_SHA256SUMS"
	)
	publisher := indextest.NewPublisher(t)
	resign := func(files *indextest.Tree, document string) {
		files.Write(sums, document)
		files.Write(sums+".sig", publisher.Sign(document))
	}
	tests := []struct {
		rule string
		do   func(*testing.T, *indextest.Tree)
	}{
		{"50 a blank line", func(t *testing.T, files *indextest.Tree) { resign(files, files.Read(sums)+"\n") }},
		{"50 a blank line at the start", func(t *testing.T, files *indextest.Tree) { resign(files, "\n"+files.Read(sums)) }},
		{"51 a comment", func(t *testing.T, files *indextest.Tree) { resign(files, "# released\n"+files.Read(sums)) }},
		{"51 a line of one word", func(t *testing.T, files *indextest.Tree) { resign(files, files.Read(sums)+"word\n") }},
		{"52 a name with an asterisk", func(t *testing.T, files *indextest.Tree) {
			resign(files, strings.ReplaceAll(files.Read(sums), "  ", " *"))
		}},
		{"52 a name with a dot and a slash", func(t *testing.T, files *indextest.Tree) {
			resign(files, strings.ReplaceAll(files.Read(sums), "  ", "  ./"))
		}},
		{"53 a package that is not listed", func(t *testing.T, files *indextest.Tree) {
			resign(files, fmt.Sprintf("%x  terraform-provider-demo_1.0.0_plan9_arm.zip\n", sha256.Sum256(nil)))
		}},
		{"54 another document than was signed", func(t *testing.T, files *indextest.Tree) {
			files.Write(sums, strings.ToUpper(files.Read(sums)[:64])+files.Read(sums)[64:])
		}},
		{"55 a signature in ASCII armor", func(t *testing.T, files *indextest.Tree) { files.Write(sums+".sig", "-----BEGIN PGP SIGNATURE-----\n") }},
		{"56 a signature of a key that had expired", func(t *testing.T, files *indextest.Tree) {
			p := indextest.NewExpiringPublisher(t, time.Hour, 2*time.Hour)
			files.Keys("acme", p)
			files.Write(sums+".sig", p.Sign(files.Read(sums)))
		}},
		{"56 a signature of the future", func(t *testing.T, files *indextest.Tree) {
			p := indextest.NewExpiringPublisher(t, 0, 200*365*24*time.Hour)
			files.Keys("acme", p)
			files.Write(sums+".sig", p.Sign(files.Read(sums)))
		}},
		{"58 a zip without the provider", func(t *testing.T, files *indextest.Tree) {
			content := indextest.Zip("README.md", "hello")
			files.Write(zip, content)
			resign(files, fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), path.Base(zip)))
		}},
		{"60 a zip of other bytes than were released", func(t *testing.T, files *indextest.Tree) {
			files.Write(zip, indextest.ProviderZip("demo", "1.0.0", "x"))
		}},
	}
	for _, test := range tests {
		t.Run("57 is not offered, and the rest is: "+test.rule, func(t *testing.T) {
			files := indextest.New(t)
			files.Keys("acme", publisher)
			files.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(publisher)
			files.Provider("acme/demo", "1.1.0", "linux_amd64")
			test.do(t, files)
			s := serve(t, registry(scan(t, files)))

			if got := s.versions("acme/demo").names(); !slices.Equal(got, []string{"1.1.0"}) {
				t.Errorf("got %v", got)
			}
			if got := s.mirrored(ownHost + "/acme/demo"); !slices.Equal(got, []string{"1.1.0"}) {
				t.Errorf("the mirror has %v", got)
			}
			mustRefuse(t, s.get("/v1/providers/acme/demo/1.0.0/download/linux/amd64"), http.StatusNotFound)
			for _, name := range []string{zip, sums, sums + ".sig"} {
				mustRefuse(t, s.get("/v1/mirror/"+ownHost+"/acme/demo/"+path.Base(name)), http.StatusNotFound)
			}
			s.install("acme/demo/1.1.0/download/linux/amd64")
		})
	}
}

// The registry's signature depends only on its key and the document, so that all
// instances of a cluster serve the same bytes.
func TestSignatureIsDeterministic(t *testing.T) {
	key := newKey(t)
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	var before string
	for range 3 {
		s := serve(t, registry(scanWith(t, optionsWith(t, files, key))))
		d := s.download("acme/demo/1.0.0/download/linux/amd64")
		a := s.get(d.SHA256SumsSignature)
		now := a.Header.Get("Etag") + a.body
		if before != "" && before != now {
			t.Errorf("got %q after %q", now, before)
		}
		before = now
	}
}
