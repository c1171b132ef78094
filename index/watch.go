package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Events come in bursts: a copy of five hundred files is one change. A scan
// follows when nothing has happened for quiet, or, when something always
// happens, latest after the first event.
const (
	quiet  = 250 * time.Millisecond
	latest = 5 * time.Second
)

// A watcher notices that something may have changed below the directories
// that scans read. It makes changes fast to appear; that they appear at all is
// what the periodic scan guarantees.
type watcher struct {
	notify  *fsnotify.Watcher
	changes chan struct{}
	warn    func(error)

	once sync.Once // one warning for all that cannot be watched
}

// newWatcher begins to watch nothing. It ends with ctx.
func newWatcher(ctx context.Context, warn func(error)) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, watchError(err)
	}
	w := &watcher{notify: notify, changes: make(chan struct{}, 1), warn: warn}
	go w.run(ctx)
	return w, nil
}

// add watches a directory of a part. It is called before the directory is read,
// so that nothing can come into it unseen.
func (w *watcher) add(p Part, dir string) {
	if w == nil {
		return
	}
	if p.disk == "" {
		w.warnOnce(errors.New("it is not on the local disk"))
		return
	}
	if dir == "." {
		w.addPath(p.disk) // the part itself may come and go
	}
	w.addPath(filepath.Join(p.disk, filepath.FromSlash(path.Join(p.Dir, dir))))
}

func (w *watcher) addPath(name string) {
	if network := networkFileSystem(name); network != "" {
		w.warnOnce(fmt.Errorf("%s does not report changes made by others", network))
		return
	}
	if err := w.notify.Add(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.warnOnce(watchError(err))
	}
}

// watchError says what to do about a limit of inotify. Its own errors speak of
// disks and of open files.
func watchError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return errors.New("there are more folders than inotify may watch: raise fs.inotify.max_user_watches with sysctl")
	case errors.Is(err, syscall.EMFILE):
		return errors.New("inotify or open files are at their limit: raise fs.inotify.max_user_instances with sysctl, or the limit of open files")
	}
	return withoutPath(err)
}

func (w *watcher) warnOnce(err error) { w.once.Do(func() { w.warn(err) }) }

// run turns events into changes.
func (w *watcher) run(ctx context.Context) {
	defer w.notify.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-w.notify.Events:
			if !open {
				return
			}
			// A file under a temporary name is not there yet; when it gets its
			// own, that is an event of that name.
			if !hiddenOrTemporary(filepath.Base(event.Name)) {
				w.change()
			}
		case _, open := <-w.notify.Errors:
			if !open {
				return
			}
			w.change() // events were lost: anything may have changed
		}
	}
}

func (w *watcher) change() {
	select {
	case w.changes <- struct{}{}:
	default: // one is noticed already
	}
}

// settle waits after a change until the burst it began is over, or until
// somebody asks for a scan: who is told to try again in a second does not wait
// for others to finish.
func (w *watcher) settle(ctx context.Context, asked <-chan struct{}) {
	deadline := time.NewTimer(latest)
	defer deadline.Stop()
	silence := time.NewTimer(quiet)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-deadline.C:
			return
		case <-silence.C:
			return
		case <-asked:
			return
		case <-w.changes:
			silence.Reset(quiet)
		}
	}
}
