package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
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

	mutex         sync.Mutex
	before, since watched // what the last scan watched, and what has been added since
}

// watched is what a scan has come by.
type watched struct {
	tree     map[string]bool            // the directories of the tree
	modules  map[string]bool            // those of them that are packed as a module, where dot files count
	passages map[string]map[string]bool // names in other directories, see pass
}

func newWatched() watched {
	return watched{make(map[string]bool), make(map[string]bool), make(map[string]map[string]bool)}
}

// has reports whether a directory is watched for something.
func (w *watched) has(dir string) bool { return w.tree[dir] || w.passages[dir] != nil }

// all are the directories that are watched for something, some of them twice.
func (w *watched) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		for dir := range w.tree {
			if !yield(dir) {
				return
			}
		}
		for dir := range w.passages {
			if !yield(dir) {
				return
			}
		}
	}
}

// newWatcher begins to watch nothing. It ends with ctx.
func newWatcher(ctx context.Context, warn func(error)) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, watchError(err)
	}
	w := &watcher{notify: notify, changes: make(chan struct{}, 1), warn: warn, since: newWatched()}
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
		w.addTree(p.disk) // the part itself may come and go
	}
	w.addTree(p.onDisk(dir))
}

// addModule watches a directory of a module folder.
func (w *watcher) addModule(p Part, dir string) {
	if w != nil && p.disk != "" {
		w.mutex.Lock()
		w.since.modules[p.onDisk(dir)] = true
		w.mutex.Unlock()
	}
	w.add(p, dir)
}

// onDisk is where a directory of a part lies on the local disk.
func (p Part) onDisk(dir string) string {
	return filepath.Join(p.disk, filepath.FromSlash(path.Join(p.Dir, dir)))
}

func (w *watcher) addTree(name string) {
	w.mutex.Lock()
	known := w.before.tree[name] || w.since.tree[name]
	w.since.tree[name] = true
	w.mutex.Unlock()
	if !known {
		if network := networkFileSystem(name); network != "" {
			// What this machine changes is still reported.
			w.warnOnce(fmt.Errorf("%s does not report changes made by others", network))
		}
	}
	// Also one that is known: another directory may have its name by now.
	w.addPath(name)
}

func (w *watcher) addPath(name string) {
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

// pass watches the way to a directory: each symlink on it may be pointed
// elsewhere, and its last name, or the first that is missing, may be given to
// another directory. Of the directories on the way only these names matter, as
// they may have any traffic: /srv or /tmp.
func (w *watcher) pass(name string) {
	if w == nil {
		return
	}
	root := filepath.VolumeName(name) + string(filepath.Separator)
	at, rest := root, split(strings.TrimPrefix(name, root))
	for links := 0; len(rest) > 0; {
		step := rest[0]
		rest = rest[1:]
		if step == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, step)
		info, err := os.Lstat(next)
		link := err == nil && info.Mode()&fs.ModeSymlink != 0
		if link || err != nil || len(rest) == 0 {
			w.passThrough(at, step)
		}
		switch {
		case err != nil:
			return
		case !link:
			at = next
			continue
		}
		if links++; links > maxLinks {
			return
		}
		target, err := os.Readlink(next)
		if err != nil {
			return
		}
		if filepath.IsAbs(target) {
			at = root
		}
		rest = append(split(target), rest...)
	}
}

// passThrough watches one name in a directory.
func (w *watcher) passThrough(dir, name string) {
	w.mutex.Lock()
	if w.since.passages[dir] == nil {
		w.since.passages[dir] = make(map[string]bool)
	}
	w.since.passages[dir][name] = true
	w.mutex.Unlock()
	w.addPath(dir)
}

// finish ends a scan that has seen the whole tree: what it did not come by is
// not watched any more.
func (w *watcher) finish() {
	if w == nil {
		return
	}
	w.mutex.Lock()
	before, now := w.before, w.since
	w.before, w.since = now, newWatched()
	w.mutex.Unlock()

	ended := false
	for dir := range before.all() {
		if !now.has(dir) {
			ended = w.notify.Remove(dir) == nil || ended // it fails for one that was removed
		}
	}
	if !ended {
		return
	}
	// A directory that was renamed, or is reached by two names, has one watch, and
	// that may be the one that has just ended.
	for dir := range now.all() {
		w.addPath(dir)
	}
	w.change() // what happened in between was not seen
}

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
			if w.concerns(event.Name) {
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

// concerns reports whether an event of that path can change what is offered.
func (w *watcher) concerns(name string) bool {
	if name == "" {
		return false // of a directory that is not watched any more
	}
	dir, base := filepath.Split(name)
	dir = filepath.Clean(dir)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.before.passages[dir][base] || w.since.passages[dir][base] {
		return true
	}
	if !w.before.tree[dir] && !w.since.tree[dir] && !w.before.tree[name] && !w.since.tree[name] {
		return false
	}
	// A file under a temporary name is skipped until it is renamed, which is an
	// event of its new name. But Kubernetes replaces a volume's content by
	// renaming ..data, through which everything else in it is reached.
	if strings.HasPrefix(base, "..") {
		return true
	}
	if w.before.modules[dir] || w.since.modules[dir] {
		return !isLeftOut(base) // .terraformignore and .terraform.lock.hcl count here
	}
	return !hiddenOrTemporary(base)
}

func (w *watcher) change() {
	select {
	case w.changes <- struct{}{}:
	default: // one is noticed already
	}
}

// settle waits after a change until the burst it began is over, or until a scan
// is asked for: a request that waits for one does not wait for others to finish.
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
