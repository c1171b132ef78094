package module

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

func TestLinkKeysInCaddysStorage(t *testing.T) {
	c := newConfiguration(t)
	store := linkKeyStore{c.ctx.Storage()}
	load := func() (*access.RotatingLinkKeys, error) {
		keys := access.NewRotatingLinkKeys(t.Context(), store, c.ctx.Slogger(), time.Now)
		t.Cleanup(keys.Close)
		return keys, keys.Load()
	}
	var queries []string
	for range 2 {
		keys, err := load()
		if err != nil {
			t.Fatal(err)
		}
		links := access.Links{Keys: keys.Keys}
		query, err := links.AppendQuery(nil, "tree", "file", 1<<40)
		if err != nil {
			t.Fatal(err)
		}
		queries = append(queries, string(query))
	}
	if queries[0] != queries[1] {
		t.Error("the links differ after a restart")
	}
	if !c.ctx.Storage().Exists(t.Context(), linkKeysName) {
		t.Errorf("there is no %s", linkKeysName)
	}
}

// The configuration does not start with damaged keys, and the error names them.
func TestDamagedLinkKeysFailTheStart(t *testing.T) {
	c := newConfiguration(t)
	guest, _ := tokensGuest(t, "ci")
	if err := (linkKeyStore{c.ctx.Storage()}).Store(t.Context(), []byte("{")); err != nil {
		t.Fatal(err)
	}
	h := Handler{Root: sampleTree(t), AuthRaw: []json.RawMessage{guest}, Access: &Access{Rules: []AccessRule{allow("ci", "acme")}}}
	c.mustHandle(h)
	err := c.start()
	if err == nil || !strings.Contains(err.Error(), linkKeysName) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got error %v", err)
	}
}
