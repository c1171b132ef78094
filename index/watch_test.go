package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// The system's limits may be exceeded only for a while: each scan tries again, and
// the log says so once.
func TestStartingTheWatcherIsRetried(t *testing.T) {
	part := tree.Part{Fs: afero.NewMemMapFs(), Dir: "."}
	x := New(Options{Watch: true, Open: func() (tree.Tree, error) { return tree.Tree{Providers: part, Modules: part, Keys: part}, nil }})
	defer x.Close()
	var log bytes.Buffer
	x.Observe(&Observer{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	tries := 0
	x.watch = func(ctx context.Context, warn func(error)) (*watcher, error) {
		if tries++; tries < 4 {
			return nil, watchError(syscall.EMFILE)
		}
		return newWatcher(ctx, func(error) {})
	}
	for range 6 {
		if _, err := x.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if tries != 4 || x.watcher() == nil {
		t.Errorf("it was tried %d times", tries)
	}
	if n := strings.Count(log.String(), "fs.inotify.max_user_instances"); n != 1 {
		t.Errorf("%d warnings say what to do:\n%s", n, &log)
	}
}

// Every published file is staged first. Staging does not start a scan.
func TestTheStagingFolderIsNotWatched(t *testing.T) {
	root := t.TempDir()
	staging := filepath.Join(root, "providers", tree.StagingName)
	if err := os.MkdirAll(filepath.Join(staging, "acme@demo@1.0.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	x := New(Options{Watch: true, Open: tree.Directories{Root: root}.Open})
	defer x.Close()
	if _, err := x.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := x.watcher()
	w.mutex.Lock()
	watched := w.before.all()
	w.mutex.Unlock()
	if !watched[filepath.Dir(staging)] || watched[staging] {
		t.Errorf("it watches %v", watched)
	}
	for _, name := range []string{staging, filepath.Join(staging, "acme@demo@1.0.0")} {
		if _, ok := w.concerns(name); ok {
			t.Error("its events count")
		}
	}
}

// The system reports a limit that can be raised as "no space left on device".
func TestInotifyLimitsSayWhatToDo(t *testing.T) {
	for err, says := range map[error]string{
		syscall.ENOSPC: "raise fs.inotify.max_user_watches",
		syscall.EMFILE: "raise fs.inotify.max_user_instances",
		&fs.PathError{Op: "inotify_add_watch", Path: "/srv/providers", Err: syscall.ENOSPC}: "raise fs.inotify.max_user_watches",
		fmt.Errorf("watching: %w", syscall.ENOSPC):                                          "raise fs.inotify.max_user_watches",
		&fs.PathError{Op: "stat", Path: "/srv/providers", Err: errors.New("it failed")}:     "it failed",
	} {
		if got := watchError(err).Error(); !strings.Contains(got, says) || strings.Contains(got, "/srv") || strings.Contains(got, "no space") {
			t.Errorf("of %q it says %q", err, got)
		}
	}
}

// Without events, the tree is scanned again as often as its size allows.
func TestPollingTakesLittleTime(t *testing.T) {
	seeing, blind := new(watcher), new(watcher)
	blind.blind.Store(true)
	for _, test := range []struct {
		rule    string
		watches bool
		watcher *watcher
		took    time.Duration
		rescan  time.Duration
		until   time.Duration
	}{
		{"a tree that is watched is scanned after the time that is set", true, seeing, time.Second, 5 * time.Minute, 5 * time.Minute},
		{"a small tree that cannot be watched is scanned every two seconds", true, nil, 10 * time.Millisecond, 5 * time.Minute, 2 * time.Second},
		{"so is one of which some folders cannot be watched", true, blind, 10 * time.Millisecond, 5 * time.Minute, 2 * time.Second},
		{"a larger one is scanned after fifty times the duration of a scan", true, blind, time.Second, 5 * time.Minute, 50 * time.Second},
		{"but not later than the time that is set", true, blind, time.Minute, 5 * time.Minute, 5 * time.Minute},
		{"which may be shorter", true, blind, time.Second, time.Second, time.Second},
		{"a bucket, whose requests cost money, is scanned after the time that is set", false, nil, time.Second, 5 * time.Minute, 5 * time.Minute},
	} {
		x := New(Options{Watch: test.watches, Rescan: test.rescan})
		x.took.Store(int64(test.took))
		if until := x.untilRescan(test.watcher); until != test.until {
			t.Errorf("%s: it is scanned after %v", test.rule, until)
		}
		x.Close()
	}
}
