package module

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// live runs a configuration as the configuration of the process, which the admin API
// describes.
func live(t *testing.T, handlers ...Handler) {
	t.Helper()
	liveIn(t, t.TempDir(), nil, handlers...)
}

// liveIn is live with the given storage and further apps. It returns the handlers.
func liveIn(t *testing.T, storage string, apps map[string]any, handlers ...Handler) []*Handler {
	t.Helper()
	return liveWith(t, map[string]any{"module": "file_system", "root": storage}, apps, handlers...)
}

// liveWith is liveIn with a storage of any kind.
func liveWith(t *testing.T, storage, apps map[string]any, handlers ...Handler) []*Handler {
	t.Helper()
	routes := []any{}
	for _, h := range handlers {
		raw := map[string]any{"handler": "terraform_registry"}
		encoded, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(encoded, &raw); err != nil {
			t.Fatal(err)
		}
		routes = append(routes, map[string]any{"handle": []any{raw}})
	}
	all := map[string]any{"http": map[string]any{"servers": map[string]any{"registry": map[string]any{
		"listen":          []string{"unix/" + t.TempDir() + "/socket"},
		"automatic_https": map[string]any{"disable": true},
		"routes":          routes,
	}}}}
	maps.Copy(all, apps)
	config, err := json.Marshal(map[string]any{
		"admin":   map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
		"storage": storage,
		"apps":    all,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	if len(handlers) == 0 {
		return nil
	}
	app, err := ConfiguredApp(caddy.ActiveContext())
	if err != nil {
		t.Fatal(err)
	}
	return app.handlers
}

// administer calls the admin API as Caddy does: the handler returns errors and does not
// write them.
func administer(t *testing.T, method, target string, answer any) (int, http.Header) {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for _, route := range (Admin{}).Routes() {
		if route.Pattern != r.URL.Path {
			continue
		}
		w := httptest.NewRecorder()
		err := route.Handler.ServeHTTP(w, r)
		var failed caddy.APIError
		switch {
		case errors.As(err, &failed):
			return failed.HTTPStatus, w.Header()
		case err != nil:
			t.Fatal(err)
		}
		if answer == nil {
			t.Fatalf("%s %s failed, but wrote %s", method, target, w.Body)
		}
		if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
			t.Fatalf("%v in %s", err, w.Body)
		}
		return w.Code, w.Header()
	}
	t.Fatalf("there is no route %s", r.URL.Path)
	return 0, nil
}

func TestAdmin(t *testing.T) {
	root, other := archivesTree(t), t.TempDir()
	live(t,
		Handler{Root: root, Rescan: -1, SigningKey: &SigningKey{Off: true}},
		Handler{Root: other, Rescan: -1, SigningKey: &SigningKey{Off: true}})
	only := "?root=" + url.QueryEscape(root)

	t.Run("a rescan answers with the new state", func(t *testing.T) {
		indextest.OnDisk(t, root).Provider("acme/demo", "1.3.0", "linux_amd64")
		var states map[string]indexState
		if status, _ := administer(t, http.MethodPost, "/terraform_registry/rescan"+only, &states); status != 200 {
			t.Errorf("status %d", status)
		}
		if len(states) != 1 || states[root].Offered[index.KindProvider] != 2 || states[root].Offered[index.KindModule] != 1 {
			t.Errorf("got %+v", states)
		}
	})
	t.Run("all trees are listed", func(t *testing.T) {
		var states map[string]indexState
		administer(t, http.MethodPost, "/terraform_registry/rescan", &states)
		status, header := administer(t, http.MethodGet, "/terraform_registry/indexes", &states)
		for states[root].Progress != nil { // of the second look at new files, which ends
			status, header = administer(t, http.MethodGet, "/terraform_registry/indexes", &states)
		}
		if status != 200 || header.Get("Content-Type") != "application/json" {
			t.Errorf("status %d, header %v", status, header)
		}
		if s := states[root]; len(states) != 2 || s.Pending != 0 || s.Scans < 2 || s.Failed != 0 || s.Taken.IsZero() || s.Progress != nil {
			t.Errorf("got %+v", states)
		}
	})
	t.Run("a report is that of the index", func(t *testing.T) {
		var reports map[string]*index.Report
		administer(t, http.MethodGet, "/terraform_registry/report"+only, &reports)
		if len(reports) != 1 || len(reports[root].Offered) != 3 {
			t.Errorf("got %+v", reports)
		}
	})
	t.Run("the decisions of the rules of each registry", func(t *testing.T) {
		var decisions []AccessDecision
		administer(t, http.MethodGet, "/terraform_registry/access?right=read&address=acme/demo", &decisions)
		if len(decisions) != 2 || decisions[0].Root != root || decisions[1].Root != other || !decisions[0].Allowed || !decisions[0].Hosted {
			t.Errorf("got %+v", decisions)
		}
	})
	t.Run("unknown roots and methods", func(t *testing.T) {
		for _, test := range []struct {
			method, target string
			status         int
			allow          string
		}{
			{http.MethodGet, "/terraform_registry/indexes?root=/nowhere", 404, ""},
			{http.MethodPost, "/terraform_registry/rescan?root=/nowhere", 404, ""},
			{http.MethodGet, "/terraform_registry/access?right=write&address=acme/demo", 400, ""},
			{http.MethodGet, "/terraform_registry/access?right=read&address=acme", 400, ""},
			{http.MethodGet, "/terraform_registry/rescan", 405, "POST"},
			{http.MethodPost, "/terraform_registry/indexes", 405, "GET"},
			{http.MethodHead, "/terraform_registry/report", 405, "GET"},
		} {
			status, header := administer(t, test.method, test.target, nil)
			if status != test.status || header.Get("Allow") != test.allow {
				t.Errorf("%s %s: %d, Allow %q", test.method, test.target, status, header.Get("Allow"))
			}
		}
	})
	t.Run("a failed scan is an error", func(t *testing.T) {
		if err := os.Rename(other, other+".away"); err != nil {
			t.Fatal(err)
		}
		if status, _ := administer(t, http.MethodPost, "/terraform_registry/rescan", nil); status != 503 {
			t.Errorf("status %d", status)
		}
		var states map[string]indexState
		administer(t, http.MethodGet, "/terraform_registry/indexes", &states)
		if states[other].Failed == 0 || states[root].Failed != 0 {
			t.Errorf("got %+v", states)
		}
	})
}

// A configuration without a registry has no indexes. This is not an error.
func TestAdminWithoutARegistry(t *testing.T) {
	live(t)
	var states map[string]indexState
	if status, _ := administer(t, http.MethodGet, "/terraform_registry/indexes", &states); status != 200 || len(states) > 0 {
		t.Errorf("status %d, %v", status, states)
	}
	if status, _ := administer(t, http.MethodPost, "/terraform_registry/rescan?root=/nowhere", nil); status != 404 {
		t.Errorf("with a root: status %d", status)
	}
	var decisions []AccessDecision
	if status, _ := administer(t, http.MethodGet, "/terraform_registry/access?right=read&address=acme/demo", &decisions); status != 200 || decisions == nil || len(decisions) > 0 {
		t.Errorf("the rules: status %d, %v", status, decisions)
	}
}

// While a request waits for packages to be read, the snapshot from before must not stay in
// memory: with a million packages, it is as large as the tree.
func TestARescanThatWaitsKeepsNoEarlierSnapshot(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	read := make(chan struct{})
	x := index.New(index.Options{Open: indextest.On(t, indextest.Gate{Fs: files.Fs, Opened: read}).Open})
	defer x.Close()
	release := sync.OnceFunc(func() { close(read) })
	defer release()
	x.Start()
	<-x.Ready()
	first := x.Snapshot()
	answered := make(chan error, 1)
	go func() {
		app := &App{indexes: map[indexKey]*pooledIndex{{}: {Index: x}}}
		_, err := rescanIndexes(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil), app)
		answered <- err
	}()
	if x.Next(t.Context(), first) == nil {
		t.Fatal("the tree is not scanned")
	}
	earlier := weak.Make(first)
	first = nil
	for deadline := time.Now().Add(10 * time.Second); earlier.Value() != nil; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("the snapshot from before is still in memory")
		}
	}
	select {
	case err := <-answered:
		t.Fatalf("it has not waited: %v", err)
	default:
	}
	release()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// A tree that cannot be scanned keeps no other tree from being scanned.
func TestARescanOfSeveralTrees(t *testing.T) {
	gone, root := archivesTree(t), archivesTree(t) // trees are scanned in the order of their names
	live(t, Handler{Root: gone, Rescan: -1, SigningKey: &SigningKey{Off: true}}, Handler{Root: root, Rescan: -1, SigningKey: &SigningKey{Off: true}})
	awaitLive(t)
	var before, after map[string]indexState
	administer(t, http.MethodGet, "/terraform_registry/indexes", &before)
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	status, _ := administer(t, http.MethodPost, "/terraform_registry/rescan", nil)
	administer(t, http.MethodGet, "/terraform_registry/indexes", &after)
	if status != http.StatusServiceUnavailable || after[root].Taken.Equal(before[root].Taken) {
		t.Errorf("the status is %d, and the other tree was scanned at %v", status, after[root].Taken)
	}
}
