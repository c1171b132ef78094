package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
)

// What is handed out is where it can be fetched, whatever the registry is
// configured to hand out.
func TestURLs(t *testing.T) {
	tree, _ := everything(t)
	snapshot := scan(t, tree)
	tests := []struct {
		rule           string
		prefix, public string
		base           string // of every URL handed out
		prefixed       string // the path of the registry
	}{
		{"paths by default", "", "", "/v1", "/v1"},
		{"paths under a prefix", "/terraform", "", "/terraform", "/terraform"},
		{"paths under a prefix of two segments", "/a/v1", "", "/a/v1", "/a/v1"},
		{"absolute with a public URL", "", home, home + "/v1", "/v1"},
		{"absolute under a prefix", "/terraform", home, home + "/terraform", "/terraform"},
		{"absolute at a port", "", home + ":8443", home + ":8443/v1", "/v1"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			g := &handlers.Registry{Snapshot: registry(snapshot).Snapshot, Prefix: test.prefix, PublicURL: test.public}
			s := serve(t, g)
			for id, want := range map[string]string{"providers.v1": test.base + "/providers/", "modules.v1": test.base + "/modules/"} {
				if got := decode(t, s.get(wellKnown).body).(map[string]any)[id]; got != want {
					t.Errorf("%s is %v, want %s", id, got, want)
				}
			}
			d := s.download("acme/demo/1.0.0/download/linux/amd64")
			for _, u := range []string{d.DownloadURL, d.SHA256SumsURL, d.SHA256SumsSignature} {
				if !strings.HasPrefix(u, test.base+"/mirror/-/acme/demo/") {
					t.Errorf("got %s, want it hosted below %s", u, test.base)
				}
			}
			s.install("acme/demo/1.0.0/download/linux/amd64")

			location := s.get(s.service("modules.v1").String() + "acme/vpc/aws/1.2.0/download").Header.Get("X-Terraform-Get")
			if want := test.base + "/modules/acme/vpc/aws/1.2.0/archive.zip"; location != want {
				t.Errorf("the module is at %q, want %s", location, want)
			}
			s.unpack(s.moduleLocation("acme/vpc/aws/1.2.0"))

			document := home + test.prefixed + "/mirror/registry.terraform.io/hashicorp/null/3.2.0.json"
			var l archives
			s.json(document, &l)
			archive := l.Archives["linux_amd64"]
			want := "terraform-provider-null_3.2.0_linux_amd64.zip"
			if test.public != "" {
				want = test.base + "/mirror/registry.terraform.io/hashicorp/null/" + want
			}
			if archive.URL != want {
				t.Errorf("the archive is at %s, want %s", archive.URL, want)
			}
			if err := packageHash(t, archive.Hashes, s.fetch(document, archive.URL)); err != nil {
				t.Error(err)
			}
			if test.prefixed != "/v1" {
				if a := s.get("/v1/providers/acme/demo/versions"); a.StatusCode != fallenThrough {
					t.Errorf("the default prefix is answered too: %d", a.StatusCode)
				}
			}
		})
	}
}

// A document names files by the name the registry was asked by, and a public
// URL has them asked for by its own.
func TestPublicURLOfAnotherName(t *testing.T) {
	tree := hostTree(t)
	snapshot := scan(t, tree)
	for _, host := range []string{"a.example.com", "b.example.com", "internal.example.com"} {
		t.Run("asked as "+host, func(t *testing.T) {
			g := registry(snapshot)
			g.PublicURL = home
			s := serve(t, g)
			for _, v := range versionsIn(s.get("https://" + host + "/v1/providers/acme/demo/versions").body) {
				var d download
				s.json("https://"+host+"/v1/providers/acme/demo/"+v+"/download/linux/amd64", &d)
				if err := archiveChecksum(s.fetch("", d.DownloadURL), d.SHA256); err != nil {
					t.Errorf("%s: %v", d.DownloadURL, err)
				}
				var l archives
				s.json("https://"+host+"/v1/mirror/"+host+"/acme/demo/"+v+".json", &l)
				archive := l.Archives["linux_amd64"]
				if err := packageHash(t, archive.Hashes, s.fetch("", archive.URL)); err != nil {
					t.Errorf("%s: %v", archive.URL, err)
				}
			}
		})
	}
	t.Run("a mirrored name is not the registry's for that", func(t *testing.T) {
		g := registry(snapshot)
		g.PublicURL = home
		s := serve(t, g)
		if a := s.get("/v1/mirror/c.example.com/acme/demo/index.json"); a.StatusCode != http.StatusNotFound {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
	})
}

// Two sites that hand out different URLs never answer with the same validator.
func TestValidatorsOfOtherURLs(t *testing.T) {
	tree, _ := everything(t)
	snapshot := scan(t, tree)
	seen := make(map[string]string)
	for _, base := range []string{"", home, "https://other.example.com", home + ":8443"} {
		g := registry(snapshot)
		g.PublicURL = base
		s := serve(t, g)
		for _, path := range []string{wellKnown, "/v1/providers/acme/demo/1.0.0/download/linux/amd64", "/v1/mirror/registry.terraform.io/hashicorp/null/3.2.0.json"} {
			a := s.get(path)
			if other, twice := seen[a.Header.Get("Etag")]; twice {
				t.Errorf("%s has the ETag of %s", a.body, other)
			}
			seen[a.Header.Get("Etag")] = a.body
		}
	}
}
