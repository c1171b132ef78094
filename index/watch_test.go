package index

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index/watch"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// The system's limits may be exceeded only for a while: each scan tries again, and
// the log says so once.
func TestStartingTheWatcherIsRetried(t *testing.T) {
	part := treetest.On(afero.NewMemMapFs(), ".")
	x := New(Options{Watch: true, Open: func() (tree.Tree, error) { return tree.Tree{Providers: part, Modules: part, Keys: part}, nil }})
	defer x.Close()
	var log bytes.Buffer
	x.Observe(&Observer{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	tries := 0
	x.watch = func(ctx context.Context, warn func(error)) (*watch.Watcher, error) {
		if tries++; tries < 4 {
			return nil, errors.New("inotify is at its limit")
		}
		return watch.New(ctx, func(error) {})
	}
	for range 6 {
		if _, err := x.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if w, _ := x.watcher(); tries != 4 || w == nil {
		t.Errorf("it was tried %d times", tries)
	}
	if n := strings.Count(log.String(), "inotify is at its limit"); n != 1 {
		t.Errorf("%d warnings say why:\n%s", n, &log)
	}
}

// The client that has requested the scan in which watching begins may give up. The next scan, which
// follows at once, has the tree watched.
func TestATreeIsWatchedAlthoughTheScanWasGivenUp(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "providers/acme")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	d := source.Directories{Root: root}
	asked, giveUp := context.WithCancel(t.Context())
	begun := false
	x := New(Options{Watch: true, Paths: d.Paths(), Now: func() time.Time { return time.Now().Add(time.Hour) }, Open: func() (tree.Tree, error) {
		if begun {
			giveUp()
			<-asked.Done()
		}
		return d.Open()
	}})
	defer x.Close()
	x.watch = func(context.Context, func(error)) (*watch.Watcher, error) {
		return nil, errors.New("inotify is at its limit")
	}
	if _, err := x.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.watch = func(ctx context.Context, warn func(error)) (*watch.Watcher, error) {
		begun = true
		return watch.New(ctx, warn)
	}
	if _, err := x.Rescan(asked); !errors.Is(err, context.Canceled) {
		t.Fatalf("the scan is not given up: %v", err)
	}
	if _, err := x.scan(t.Context(), nil, false); err != nil {
		t.Fatal(err)
	}
	w, _ := x.watcher()
	if err := os.Mkdir(filepath.Join(folder, "demo"), 0o755); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.Changes():
	case <-time.After(10 * time.Second):
		t.Error("a change is not noticed")
	}
}

// Without events, the tree is scanned again as often as its size allows.
func TestPollingTakesLittleTime(t *testing.T) {
	for _, test := range []struct {
		rule    string
		watches bool
		blind   bool
		took    time.Duration
		rescan  time.Duration
		until   time.Duration
	}{
		{"a tree that is watched is scanned after the time that is set", true, false, time.Second, 5 * time.Minute, 5 * time.Minute},
		{"a small tree that cannot be watched is scanned every two seconds", true, true, 10 * time.Millisecond, 5 * time.Minute, 2 * time.Second},
		{"a larger one is scanned after fifty times the duration of a scan", true, true, time.Second, 5 * time.Minute, 50 * time.Second},
		{"but not later than the time that is set", true, true, time.Minute, 5 * time.Minute, 5 * time.Minute},
		{"which may be shorter", true, true, time.Second, time.Second, time.Second},
		{"a bucket, whose requests cost money, is scanned after the time that is set", false, true, time.Second, 5 * time.Minute, 5 * time.Minute},
	} {
		x := New(Options{Watch: test.watches, Rescan: test.rescan})
		x.took.Store(int64(test.took))
		if until := x.untilRescan(test.blind); until != test.until {
			t.Errorf("%s: it is scanned after %v", test.rule, until)
		}
		x.Close()
	}
}

// A volume that is mounted over the root after the start raises no event. Until then the root is empty.
func TestAnEmptyTreeIsScannedSoonAgain(t *testing.T) {
	root := t.TempDir()
	d := source.Directories{Root: root}
	x := New(Options{Watch: true, Paths: d.Paths(), Rescan: 5 * time.Minute, Open: d.Open})
	defer x.Close()
	var log bytes.Buffer
	x.Observe(&Observer{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	scan := func() time.Duration {
		t.Helper()
		if _, err := x.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		w, _ := x.watcher()
		return x.untilRescan(w.IsBlind())
	}
	for range 3 {
		if until := scan(); until != 2*time.Second {
			t.Errorf("an empty tree is scanned after %v", until)
		}
	}
	if n := strings.Count(log.String(), "msg=scanned"); n != 1 {
		t.Errorf("%d lines say that nothing was found:\n%s", n, &log)
	}
	module := filepath.Join(root, "modules/acme/vpc/aws")
	if err := errors.Join(os.MkdirAll(module, 0o755), os.WriteFile(filepath.Join(module, "registry.hcl"), []byte(`owner = "x"`), 0o600)); err != nil {
		t.Fatal(err)
	}
	if until := scan(); until != 5*time.Minute {
		t.Errorf("a tree with something in it is scanned after %v", until)
	}
}
