package module

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
)

// Each configuration decides again whether instances share.
func TestPollIsSwitchedByAReload(t *testing.T) {
	root, storage := sampleTree(t), t.TempDir()
	begin := func(poll caddy.Duration) (c *configuration, x *index.Index) {
		c = newConfigurationIn(t, storage)
		h := c.mustHandle(Handler{Root: root, Poll: poll, SigningKey: &SigningKey{Off: true}})
		c.mustStart()
		snapshot(t, h)
		return c, h.source.index.Load()
	}
	alone, first := begin(-1)
	sharing, second := begin(caddy.Duration(time.Hour))
	alone.cancel()
	if first == second {
		t.Error("an index that shares nothing is used by a configuration with other instances")
	}
	_, third := begin(caddy.Duration(time.Minute))
	sharing.cancel()
	if second != third {
		t.Error("another interval takes another index")
	}
}

// What was published is told to other instances although the storage failed then, and although it is closed
// before the registry is cleaned up.
func TestPublicationIsToldBeforeTheStorageIsClosed(t *testing.T) {
	for _, test := range []struct {
		rule string
		ends bool
		do   func(t *testing.T, storage map[string]any, options Handler)
	}{
		{"the process ends", true, func(t *testing.T, _ map[string]any, _ Handler) {
			if err := caddy.Stop(); err != nil {
				t.Fatal(err)
			}
		}},
		{"a reload", false, func(t *testing.T, storage map[string]any, options Handler) {
			liveWith(t, storage, nil, options)
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			options, token := publishingHandler(t)
			options.Poll = caddy.Duration(time.Hour)
			dir := t.TempDir()
			h := liveWith(t, closingIn(dir), nil, options)[0]
			awaitLive(t)
			failed := make(chan string, 100)
			before(h.app, func(method, key string) error {
				if method == "Store" && (strings.Contains(key, "/changes/") || strings.Contains(key, "/digests/")) {
					failed <- key
					return errors.New("connection refused")
				}
				return nil
			})
			if w, _ := put(t, h, "/v1/modules/acme/vpc/aws/1.0.0.tar.gz", token, indextest.TarGz("main.tf", "# a module\n")); w.Code != http.StatusCreated {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			for key := ""; !strings.Contains(key, "/changes/"); { // which are told of last
				key = <-failed
			}
			before(h.app, func(string, string) error { return nil })
			test.do(t, closingIn(dir), options)
			files, identity := &certmagic.FileStorage{Path: dir}, h.source.tree.identity()
			told, err := files.Load(t.Context(), storage.Folder("changes", identity)+".json")
			if !strings.Contains(string(told), `"modules/acme/vpc/aws"`) {
				t.Errorf("told is %s (%v)", told, err)
			}
			digests, err := files.List(t.Context(), storage.Folder("digests", identity), false)
			if test.ends && len(digests) == 0 { // else the next configuration shares them
				t.Errorf("no digests are shared (%v)", err)
			}
		})
	}
}
