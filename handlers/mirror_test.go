package handlers_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// mirrorURL is the URL that users configure. Clients resolve paths against it.
const mirrorURL = home + "/v1/mirror/"

// mirrored lists the versions of "host/ns/type" that the mirror has.
func (s *site) mirrored(address string) []string {
	s.t.Helper()
	var l struct {
		Versions map[string]*struct{} `json:"versions"`
	}
	s.json(s.resolve(mirrorURL, address+"/index.json").String(), &l)
	return slices.Sorted(maps.Keys(l.Versions))
}

type archives struct {
	url      string
	Archives map[string]struct {
		URL    string   `json:"url"`
		Hashes []string `json:"hashes"`
	} `json:"archives"`
}

func (s *site) archives(address, version string) (l archives) {
	s.t.Helper()
	l.url = s.resolve(mirrorURL, address+"/"+version+".json").String()
	a := s.json(l.url, &l)
	if got := a.Header.Get("Content-Type"); got != "application/json" {
		s.t.Errorf("response has invalid Content-Type %q: must be application/json", got)
	}
	return l
}

// installMirrored takes a client's steps, and returns the package.
func (s *site) installMirrored(address, version, platform string) string {
	s.t.Helper()
	if !slices.Contains(s.mirrored(address), version) {
		s.t.Fatalf("the mirror does not list %s %s", address, version)
	}
	l := s.archives(address, version)
	packed, ok := l.Archives[platform]
	if !ok {
		s.t.Fatalf("%s %s has no package for %s", address, version, platform)
	}
	zip := s.fetch(l.url, packed.URL)
	if err := packageHash(s.t, packed.Hashes, zip); err != nil {
		s.t.Fatal(err)
	}
	return zip
}

// Checklist, group E. e2e tests the certificate of 61. Every client here proves 72,
// since it asks once. 74 is about the documentation.
func TestMirror(t *testing.T) {
	files := sampleTree(t, indextest.NewPublisher(t))
	files.Provider("bücher.example/acme/demo", "1.0.0", "linux_amd64")
	files.Provider("xn--mnchen-3ya.example/acme/demo", "2.0.0", "linux_amd64")
	s := serve(t, registry(scan(t, files)))
	const null = "registry.terraform.io/hashicorp/null"

	s.rule("61 it installs below a URL that ends in a slash", func(t *testing.T, s *site) {
		for address, v := range map[string]string{
			null: "3.2.0", ownHost + "/acme/demo": "1.10.0-rc.1", ownHost + "/acme/google-beta": "2.0.0",
			ownHost + "/m%C3%BCnchen/stra%C3%9Fe": "1.0.0",
		} {
			s.installMirrored(address, v, "linux_amd64")
		}
		s.installMirrored(ownHost+"/acme/demo", "1.0.0+build.5", "linux_amd64")
	})
	for _, host := range []string{"xn--bcher-kva.example", "XN--BCHER-KVA.example", "b%C3%BCcher.example"} {
		s.rule("62 a hostname is found in punycode and in every other form: "+host, func(t *testing.T, s *site) {
			s.installMirrored(host+"/acme/demo", "1.0.0", "linux_amd64")
		})
	}
	s.rule("62 the default port is not part of a hostname", func(t *testing.T, s *site) {
		if a := s.get("/v1/mirror/xn--bcher-kva.example:443/acme/demo/index.json"); a.StatusCode != http.StatusOK {
			t.Errorf("got %d", a.StatusCode)
		}
	})
	s.rule("62 so is a folder named in punycode", func(t *testing.T, s *site) {
		s.installMirrored("xn--mnchen-3ya.example/acme/demo", "2.0.0", "linux_amd64")
	})
	list, release := s.get("/v1/mirror/"+null+"/index.json"), s.get("/v1/mirror/"+null+"/3.2.0.json")
	s.rule("63 the Content-Type is application/json", func(t *testing.T, s *site) {
		for _, a := range []answer{list, release} {
			if got := a.Header.Get("Content-Type"); a.StatusCode != http.StatusOK || got != "application/json" {
				t.Errorf("got %d with %q", a.StatusCode, got)
			}
		}
	})
	s.rule("64 index.json has objects", func(t *testing.T, s *site) {
		if want := `{"versions":{"3.2.0":{}}}`; list.body != want {
			t.Errorf("got %s, want %s", list.body, want)
		}
	})
	for _, address := range []string{"registry.terraform.io/hashicorp/none", "elsewhere.example/hashicorp/null", ownHost + "/hashicorp/null", "acme/demo/x", "localhost/a/b"} {
		s.rule("65 the index.json of an unknown provider is 404: "+address, func(t *testing.T, s *site) {
			mustRefuse(t, s.get("/v1/mirror/"+address+"/index.json"), http.StatusNotFound)
		})
	}
	for _, path := range []string{
		null + "/9.9.9.json", null + "/1.0.0-rc.1+b.json", null + "/1.0.0%2Bb.json", "registry.terraform.io/hashicorp/none/1.0.0.json",
		"elsewhere.example:8443/a/b/1.0.0.json", "REGISTRY.terraform.io/HashiCorp/none/1.0.0.json", ownHost + "/acme/demo/7.0.0.json",
	} {
		s.rule("66 a version that the mirror lacks has no archives: "+path, func(t *testing.T, s *site) {
			if a := s.get("/v1/mirror/" + path); a.StatusCode != http.StatusOK || a.body != `{"archives":{}}` || a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("got %d %q", a.StatusCode, a.body)
			}
		})
	}
	for _, path := range []string{
		null + "/latest.json", null + "/v3.2.0.json", null + "/3.2.json", null + "/.json", "a b/c/d/1.0.0.json", "x/y_/z/1.0.0.json",
		"registry.terraform.io/hashicorp/terraform-null/1.0.0.json", "a..b/c/d/1.0.0.json",
	} {
		s.rule("66 a malformed address or version is 404: "+path, func(t *testing.T, s *site) {
			mustRefuse(t, s.get("/v1/mirror/"+strings.ReplaceAll(path, " ", "%20")), http.StatusNotFound)
		})
	}
	l := s.archives(null, "3.2.0")
	for platform, packed := range l.Archives {
		s.rule("67 the URL is relative to the document: "+platform, func(t *testing.T, s *site) {
			if packed.URL != "terraform-provider-null_3.2.0_"+platform+".zip" {
				t.Errorf("got %q", packed.URL)
			}
			s.fetch(l.url, packed.URL)
		})
		s.rule("68 69 there is an h1: and a zh:, and both are the zip's: "+platform, func(t *testing.T, s *site) {
			zip := s.fetch(l.url, packed.URL)
			if len(packed.Hashes) != 2 || packed.Hashes[0][:3] != "h1:" || packed.Hashes[1][:3] != "zh:" {
				t.Fatalf("got %q", packed.Hashes)
			}
			for _, hash := range packed.Hashes {
				if err := packageHash(t, []string{hash}, zip); err != nil {
					t.Errorf("%s: %v", hash, err)
				}
			}
		})
		s.rule("70 the zip is the publisher's: "+platform, func(t *testing.T, s *site) {
			if s.fetch(l.url, packed.URL) != files.Read("providers/"+null+"/"+packed.URL) {
				t.Error("the zip differs")
			}
		})
	}
	s.rule("70 the zip is the one the registry serves", func(t *testing.T, s *site) {
		zip, _ := s.install("acme/demo/1.0.0/download/darwin/arm64")
		if s.installMirrored(ownHost+"/acme/demo", "1.0.0", "darwin_arm64") != zip {
			t.Error("the zip differs")
		}
	})
	for _, path := range []string{"/index.json", "/3.2.0.json", "/9.9.9.json", "/terraform-provider-null_3.2.0_linux_amd64.zip"} {
		for _, authorization := range []string{"", "Bearer garbage", "Basic bmV0cmM6cGFzc3dvcmQ="} {
			s.rule("71 73 no request is refused or redirected "+authorization+": "+path, func(t *testing.T, s *site) {
				if a := s.get("/v1/mirror/"+null+path, "Authorization: "+authorization); a.StatusCode != http.StatusOK {
					t.Errorf("got %d", a.StatusCode)
				}
			})
		}
	}
	s.rule("a version with a plus is a relative URL that resolves", func(t *testing.T, s *site) {
		l := s.archives(ownHost+"/acme/demo", "1.0.0+build.5")
		u, err := url.Parse(l.Archives["linux_amd64"].URL)
		if err != nil || u.IsAbs() || !strings.Contains(u.Path, "+build.5") {
			t.Errorf("got %v (%v)", u, err)
		}
	})
	s.rule("the mirror has no file but a release's", func(t *testing.T, s *site) {
		for _, name := range []string{"terraform-provider-null_3.2.0_plan9_arm.zip", "terraform-provider-null_3.2.0_manifest.json", "index.html", "x"} {
			mustRefuse(t, s.get("/v1/mirror/"+null+"/"+name), http.StatusNotFound)
		}
	})
	s.rule("what `terraform providers mirror` wrote beside the zips is not served", func(t *testing.T, _ *site) {
		files.Write("providers/"+null+"/index.json", `{"versions":{"6.6.6":{}}}`)
		files.Write("providers/"+null+"/3.2.0.json", `{"archives":{}}`)
		s := serve(t, registry(scan(t, files)))
		s.installMirrored(null, "3.2.0", "linux_amd64")
	})
	if !regexp.MustCompile(`^"[^"]+"$`).MatchString(list.Header.Get("Etag")) {
		t.Errorf("ETag is %q", list.Header.Get("Etag"))
	}
}
