package handlers_test

import (
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

const wellKnown = "/.well-known/terraform.json"

// Checklist, group A. Item 1 needs a real name and certificate: see e2e.
func TestDiscovery(t *testing.T) {
	s := serve(t, registry(scan(t, indextest.New(t))))
	first := s.get(wellKnown)

	s.rule("2 the media type is application/json", func(t *testing.T, s *site) {
		media, _, err := mime.ParseMediaType(first.Header.Get("Content-Type"))
		if first.StatusCode != http.StatusOK || err != nil || media != "application/json" {
			t.Errorf("got %d with %q (%v)", first.StatusCode, media, err)
		}
	})
	services, isObject := decode(t, first.body).(map[string]any)
	s.rule("3 the body is a JSON object of at most 1 MiB in UTF-8", func(t *testing.T, s *site) {
		if !isObject || !utf8.ValidString(first.body) || len(first.body) > 1<<20 || first.ContentLength != int64(len(first.body)) {
			t.Errorf("got %q with Content-Length %d", first.body, first.ContentLength)
		}
	})
	for _, token := range []string{"Bearer valid", "Bearer expired", "Bearer ", "Bearer", "Basic garbage", "\tgarbage \xff"} {
		s.rule("4 the answer is the same with Authorization "+token, func(t *testing.T, s *site) {
			if a := s.get(wellKnown, "Authorization: "+token); a.StatusCode != http.StatusOK || a.body != first.body {
				t.Errorf("got %d %q", a.StatusCode, a.body)
			}
		})
	}
	s.rule("5 a burst of clients is answered", func(t *testing.T, s *site) {
		var clients sync.WaitGroup
		for range 100 {
			clients.Go(func() {
				response, err := s.client.Get(home + wellKnown)
				if err != nil {
					t.Error(err)
					return
				}
				response.Body.Close()
				if response.StatusCode != http.StatusOK {
					t.Errorf("got %d", response.StatusCode)
				}
			})
		}
		clients.Wait()
	})
	s.rule("6 there is no redirect", func(t *testing.T, s *site) {
		if first.StatusCode >= 300 || first.Header.Get("Location") != "" {
			t.Errorf("got %d to %q", first.StatusCode, first.Header.Get("Location"))
		}
	})
	s.rule("7 providers.v1 is a string that ends in a slash", func(t *testing.T, s *site) {
		if v, ok := services["providers.v1"].(string); !ok || !strings.HasSuffix(v, "/") {
			t.Errorf("got %v", services["providers.v1"])
		}
	})
	s.rule("8 modules.v1 is a string that ends in a slash", func(t *testing.T, s *site) {
		if v, ok := services["modules.v1"].(string); !ok || !strings.HasSuffix(v, "/") {
			t.Errorf("got %v", services["modules.v1"])
		}
	})
	s.rule("9 no service URL has a user, a fragment or a query", func(t *testing.T, s *site) {
		for id, v := range services {
			u, err := url.Parse(v.(string))
			if err != nil || u.User != nil || u.Fragment != "" || u.RawQuery != "" || u.ForceQuery {
				t.Errorf("%s is %v (%v)", id, v, err)
			}
		}
	})
	s.rule("10 services that are not offered are absent", func(t *testing.T, s *site) {
		if len(services) != 2 {
			t.Errorf("got %v, want modules.v1 and providers.v1 only", services)
		}
	})
	s.rule("11 service URLs are the absolute paths that other tools assume", func(t *testing.T, s *site) {
		if services["providers.v1"] != "/v1/providers/" || services["modules.v1"] != "/v1/modules/" {
			t.Errorf("got %v", services)
		}
	})
	s.rule("12 it is served under a name with a port", func(t *testing.T, s *site) {
		if a := s.get("https://" + ownHost + ":8443" + wellKnown); a.StatusCode != http.StatusOK || a.body != first.body {
			t.Errorf("got %d %q", a.StatusCode, a.body)
		}
	})
	s.rule("it is served while the first scan runs", func(t *testing.T, _ *site) {
		s := serve(t, registry((*index.Snapshot)(nil)))
		if a := s.get(wellKnown); a.StatusCode != http.StatusOK || a.body != first.body {
			t.Errorf("got %d %q", a.StatusCode, a.body)
		}
	})
	s.rule("its validator changes with the document", func(t *testing.T, s *site) {
		other := registry(nil)
		other.Prefix = "/registry"
		if a := serve(t, other).get(wellKnown); a.Header.Get("Etag") == first.Header.Get("Etag") {
			t.Errorf("%q and %q have the same ETag", a.body, first.body)
		}
	})
}
