package module

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth" // http_basic
	"golang.org/x/crypto/bcrypt"
)

// basicAuth is Caddy's provider for user names and passwords.
func basicAuth(t *testing.T, user, password string) json.RawMessage {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(fmt.Sprintf(`{"provider":"http_basic","realm":"registry","hash":{"algorithm":"bcrypt"},"accounts":[{"username":%q,"password":%q}]}`, user, hash))
}

// browse opens a page with a password, if there is one. The next handler answers 418.
func browse(t *testing.T, h *Handler, path, user, password string) *httptest.ResponseRecorder {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "https://registry.example.com"+path, nil)
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return nil
	})
	if err := h.ServeHTTP(w, r, next); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestPages(t *testing.T) {
	c, root := newConfiguration(t), sampleTree(t)
	tokens, _ := tokensProvider(t, "ci")
	without := c.mustHandle(Handler{Root: root})
	open := c.mustHandle(Handler{Root: root, UI: new(UI)})
	below := c.mustHandle(Handler{Root: root, UI: &UI{Path: "/registry/"}})
	private := c.mustHandle(Handler{Root: root, UI: new(UI), AuthRaw: []json.RawMessage{tokens, basicAuth(t, "bob", "secret")}})
	c.mustStart()
	snapshot(t, open)

	const page = "/modules/acme/vpc/aws/1.0.0"
	tests := []struct {
		rule    string
		handler *Handler
		path    string
		status  int
		has     string
	}{
		{"there are none by default", without, "/", http.StatusTeapot, ""},
		{"the first page", open, "/", http.StatusOK, "<h1"},
		{"a module's page", open, page, http.StatusOK, "acme/vpc/aws"},
		{"the protocols come first", open, versionsOfDemo, http.StatusOK, `"versions"`},
		{"other paths are for the next handler", open, "/favicon.ico", http.StatusTeapot, ""},
		{"below a path", below, "/registry" + page, http.StatusOK, "acme/vpc/aws"},
		{"outside that path", below, page, http.StatusTeapot, ""},
		{"a private registry", private, page, http.StatusUnauthorized, "<h1"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			w := browse(t, test.handler, test.path, "", "")
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.has) {
				t.Errorf("got %d %s, want %d with %q", w.Code, w.Body, test.status, test.has)
			}
		})
	}
	for _, path := range []string{"/", page} {
		t.Run("a browser is asked for a password at "+path, func(t *testing.T) {
			w := browse(t, private, path, "", "")
			if got := w.Header().Values("WWW-Authenticate"); !slices.Contains(got, `Basic realm="registry"`) {
				t.Errorf("got %d with %q", w.Code, got)
			}
			if w := browse(t, private, path, "bob", "wrong"); w.Code != http.StatusUnauthorized {
				t.Errorf("a wrong password: got %d", w.Code)
			}
			w = browse(t, private, path, "bob", "secret")
			if w.Code != http.StatusOK || w.Header().Get("WWW-Authenticate") != "" || !strings.HasPrefix(w.Header().Get("Cache-Control"), "private") {
				t.Errorf("the right one: got %d with %v", w.Code, w.Header())
			}
		})
	}
}
