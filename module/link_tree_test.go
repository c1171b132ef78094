package module

import (
	"encoding/json"
	"net/http"
	"testing"
)

// A link is good at whatever serves the tree it was made for: another handler, the
// same after a restart, another instance that shares Caddy's storage. At another
// tree it is not, though all have the same keys.
func TestLinksAreOfTheTree(t *testing.T) {
	root, other, storage := sampleTree(t), sampleTree(t), t.TempDir()
	guest, tokens := tokensGuest(t, "ci")
	of := func(root string) Handler {
		return Handler{Root: root, AuthRaw: []json.RawMessage{guest}, Access: &Access{Rules: []AccessRule{allow("ci", "acme")}}}
	}
	c := newConfigurationIn(t, storage)
	h, named, elsewhere := c.mustHandle(of(root)), of(root), c.mustHandle(of(other))
	named.Hostnames = []string{"other.example.com"}
	alias := c.mustHandle(named)
	c.mustStart()
	for _, h := range []*Handler{h, elsewhere} {
		snapshot(t, h)
	}
	link := ask(t, h, "/v1/modules/acme/vpc/aws/1.0.0/download", tokens["ci"], nil).Header().Get("X-Terraform-Get")

	again := newConfigurationIn(t, storage)
	restarted := again.mustHandle(of(root))
	again.mustStart()
	snapshot(t, restarted)
	for _, test := range []struct {
		rule string
		h    *Handler
		want int
	}{
		{"where it was given", h, http.StatusOK},
		{"the same tree under another name", alias, http.StatusOK},
		{"after a restart", restarted, http.StatusOK},
		{"another tree", elsewhere, http.StatusForbidden},
	} {
		if w := ask(t, test.h, link, "", nil); w.Code != test.want {
			t.Errorf("%s: got %d %s, want %d", test.rule, w.Code, w.Body, test.want)
		}
	}
}
