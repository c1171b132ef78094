package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"
)

// A loadClient requests everything in turn, over persistent connections.
type loadClient struct {
	*load
	t      *testing.T
	http   *http.Client
	round  int
	always map[string]string // bodies that must never change
}

func (l *load) newClient(t *testing.T) *loadClient {
	client, err := l.registry.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return &loadClient{load: l, t: t, http: client, always: map[string]string{}}
}

const host = "https://registry.example.com"

func (c *loadClient) run() {
	c.same("/.well-known/terraform.json")
	c.same("/v1/providers/acme/stable/versions")
	c.same("/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz")
	c.same("/v1/modules/acme/net/aws/1.0.0/archive.tar.gz")
	c.provider("acme", "stable", never)
	c.provider("acme", "demo", func(version, platform string) bool { return version == "2.0.0" || platform == "freebsd_386" })
	c.mirror("registry.terraform.io", "example", "hello", never)
	c.mirror("registry.example.com", "acme", "demo", func(version, platform string) bool { return version == "2.0.0" || platform == "freebsd_386" })
	c.rebuilt()
	for _, path := range []string{
		"/v1/modules/acme/vpc/aws/versions", "/v1/modules/acme/net/aws/versions",
	} {
		if answer := c.get("document", path, false); !strings.Contains(answer.Body, `"1.0.0"`) {
			c.t.Errorf("%s: %s", path, answer.Body)
		}
	}
	for _, path := range []string{
		"/v1/modules/acme/vpc/aws/1.1.0/archive.tar.gz", "/v1/modules/acme/net/aws/1.1.0/archive.tar.gz",
	} {
		if answer := c.get("archive", path, true); answer.Status == 200 {
			c.compare(path, answer, strings.Trim(answer.Header.Get("ETag"), `"`))
		}
	}
}

func never(string, string) bool { return false }

// get sends a request and checks the answer against the rules.
func (c *loadClient) get(kind, path string, comesAndGoes bool) Response {
	answer, err := fetch(c.http, host+path)
	// Each connection of the client may have been idle when its server ended.
	for tries := 0; tries < 3 && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)); tries++ {
		c.count("connections closed unanswered")
		answer, err = fetch(c.http, host+path)
	}
	switch {
	case err != nil:
		c.t.Errorf("%s: %v", path, err)
	case answer.Status == 200:
	case comesAndGoes && answer.Status == 404:
	case comesAndGoes && answer.Status == 503 && answer.Header.Get("Retry-After") != "":
	default:
		c.t.Errorf("%s: %d %s", path, answer.Status, answer.Body)
	}
	if comesAndGoes {
		kind += " comes and goes"
	}
	c.count(fmt.Sprintf("%s %d", kind, answer.Status))
	return answer
}

func (c *loadClient) same(path string) {
	answer := c.get("document", path, false)
	if before, known := c.always[path]; known && before != answer.Body {
		c.t.Errorf("%s has changed: %s", path, answer.Body)
	}
	c.always[path] = answer.Body
}

func (c *loadClient) compare(path string, packed Response, digest string) {
	sum := sha256.Sum256([]byte(packed.Body))
	if got := hex.EncodeToString(sum[:]); got != digest {
		c.t.Errorf("%s has sha256 %s, but %s was advertised", path, got, digest)
	}
}

// provider sends the requests of a client of the registry.
func (c *loadClient) provider(namespace, name string, comesAndGoes func(version, platform string) bool) {
	base := "/v1/providers/" + namespace + "/" + name
	var list struct {
		Versions []struct {
			Version   string
			Platforms []struct{ OS, Arch string }
		}
	}
	c.decode(c.get("document", base+"/versions", false), &list)
	stable := 0
	for _, v := range list.Versions {
		for _, p := range v.Platforms {
			goes := comesAndGoes(v.Version, p.OS+"_"+p.Arch)
			if !goes {
				stable++
			}
			answer := c.get("document", base+"/"+v.Version+"/download/"+p.OS+"/"+p.Arch, goes)
			if answer.Status != 200 {
				continue
			}
			var download struct {
				Shasum string
				URL    string `json:"download_url"`
			}
			c.decode(answer, &download)
			if packed := c.get("archive", strings.TrimPrefix(download.URL, host), goes); packed.Status == 200 {
				c.compare(download.URL, packed, download.Shasum)
			}
		}
	}
	if stable == 0 {
		c.t.Errorf("a version that is always present is not listed: %+v", list)
	}
}

// mirror sends the requests of a client of the mirror.
func (c *loadClient) mirror(hostname, namespace, name string, comesAndGoes func(version, platform string) bool) {
	base := "/v1/mirror/" + hostname + "/" + namespace + "/" + name + "/"
	var list struct{ Versions map[string]struct{} }
	c.decode(c.get("document", base+"index.json", false), &list)
	if _, there := list.Versions["1.0.0"]; !there {
		c.t.Errorf("a version that is always present is not listed: %+v", list)
	}
	for version := range list.Versions {
		var answer struct {
			Archives map[string]struct {
				URL    string
				Hashes []string
			}
		}
		document := c.get("document", base+version+".json", comesAndGoes(version, ""))
		if document.Status != 200 {
			continue
		}
		c.decode(document, &answer)
		if len(answer.Archives) == 0 && !comesAndGoes(version, "") {
			c.t.Errorf("%s has no archives", version)
		}
		for platform, a := range answer.Archives {
			path := base + url.PathEscape(a.URL)
			packed := c.get("archive", path, comesAndGoes(version, platform))
			if packed.Status != 200 {
				continue
			}
			for _, hash := range a.Hashes {
				if sum, ok := strings.CutPrefix(hash, "zh:"); ok {
					c.compare(path, packed, sum)
				} else if c.round%10 == 0 {
					c.compareH1(path, packed, hash)
				}
			}
		}
	}
}

func (c *loadClient) compareH1(path string, packed Response, want string) {
	file := filepath.Join(c.t.TempDir(), "archive.zip")
	defer os.Remove(file)
	if err := os.WriteFile(file, []byte(packed.Body), 0o600); err != nil {
		c.t.Error(err)
		return
	}
	if got, err := dirhash.HashZip(file, dirhash.Hash1); err != nil || got != want {
		c.t.Errorf("%s has h1 %s (%v), but %s was advertised", path, got, err, want)
	}
	c.count("h1 compared")
}

// rebuilt requests the package whose bytes change under the same name. A client
// may get another build than the one advertised before, but it must match the
// headers of its own response.
func (c *loadClient) rebuilt() {
	const path = "/v1/mirror/registry.example.com/acme/replaced/terraform-provider-replaced_1.0.0_plan9_386.zip"
	if answer := c.get("archive", path, true); answer.Status == 200 {
		c.compare(path, answer, strings.Trim(answer.Header.Get("ETag"), `"`))
	}
}

func (c *loadClient) decode(answer Response, into any) {
	if err := json.Unmarshal([]byte(answer.Body), into); err != nil && !c.t.Failed() {
		c.t.Errorf("%v in %s", err, answer.Body)
	}
}
