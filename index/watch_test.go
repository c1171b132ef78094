package index

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/afero"
)

// The system's limits may be reached for a while: the next scan tries again, and
// says so once.
func TestAWatcherThatCannotStartIsTriedAgain(t *testing.T) {
	fs := afero.NewMemMapFs()
	part := Part{Fs: fs, Dir: "."}
	x := New(Options{Watch: true, Open: func() (Tree, error) { return Tree{part, part, part}, nil }})
	defer x.Close()
	var log bytes.Buffer
	x.Observe(&Observer{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	tries := 0
	x.watch = func(ctx context.Context, warn func(error)) (*watcher, error) {
		if tries++; tries < 4 {
			return nil, syscall.EMFILE
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
