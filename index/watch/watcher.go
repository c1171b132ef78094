// Package watch notices changes in the directories of a tree on the local disk, and says which
// folders have changed.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
)

// Events come in bursts: copying five hundred files makes a single change. A scan follows when there
// was no event for quiet or, if events do not stop, latest after the first event.
const (
	quiet  = 250 * time.Millisecond
	latest = 5 * time.Second
)

// A Watcher notices that something may have changed in the directories that scans read. It
// makes changes appear fast; only the periodic scan guarantees that they appear. A nil
// Watcher watches nothing.
type Watcher struct {
	directories *directories
	changes     chan struct{}
	warn        func(error)

	mutex         sync.Mutex
	before, since watched         // watched by the last complete scan, and since then
	warned        bool            // one warning for everything that cannot be watched, until all can
	changed       map[string]bool // the changed paths in the report
}

// New returns a Watcher that watches nothing yet. It ends with ctx.
func New(ctx context.Context, warn func(error)) (*Watcher, error) {
	directories, err := newDirectories()
	if err != nil {
		return nil, systemError(err)
	}
	w := &Watcher{directories: directories, changes: make(chan struct{}, 1), warn: warn, since: newWatched(), changed: make(map[string]bool)}
	go w.run(ctx)
	return w, nil
}

// Add watches a directory of a part, which the report calls report or in which that folder
// lies. It is called before the directory is read, so that no change is missed.
func (w *Watcher) Add(p tree.Part, dir, report string) {
	if w == nil {
		return
	}
	name, ok := disk.PathOf(p, dir)
	if !ok {
		w.warnOnce(errors.New("it is not on the local disk"))
		return
	}
	if dir == "." {
		begin, _ := disk.BeginOf(p)
		w.addTree(begin, "") // the part itself may be created or removed
	}
	w.addTree(name, report)
}

// Watches reports whether directories of a part are watched. A nil Watcher watches none.
func (w *Watcher) Watches(p tree.Part) bool {
	_, ok := disk.PathOf(p, ".")
	return w != nil && ok
}

// AddModule watches a directory of a module folder.
func (w *Watcher) AddModule(p tree.Part, dir, report string) {
	if name, ok := disk.PathOf(p, dir); w != nil && ok {
		w.mutex.Lock()
		w.since.modules[name] = true
		w.mutex.Unlock()
	}
	w.Add(p, dir, report)
}

func (w *Watcher) addTree(name, report string) {
	w.mutex.Lock()
	earlier, again := w.since.tree[name]
	if again && earlier != report {
		report = "" // the root of one part is a folder of another
	}
	w.since.add(name, report)
	blind := w.since.blind
	w.mutex.Unlock()
	if !blind {
		if network := disk.NetworkFileSystem(name); network != "" {
			// Changes made by this machine are still reported.
			w.warnOnce(fmt.Errorf("%s does not report changes made by others", network))
		}
	}
	// Even if it is watched already: another directory may have its name by now.
	w.addWatch(name)
}

func (w *Watcher) addWatch(name string) {
	ended, err := w.directories.add(name)
	if ended {
		w.mutex.Lock()
		w.since.ended = true
		w.mutex.Unlock()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fsnotify.ErrClosed) { // a scan may end after the Watcher
		w.warnOnce(systemError(err))
	}
}

// systemError adds advice about a limit of inotify, whose own errors are about disks and open
// files.
func systemError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return errors.New("there are more folders than inotify may watch: raise fs.inotify.max_user_watches with sysctl")
	case errors.Is(err, syscall.EMFILE):
		return errors.New("inotify or open files are at their limit: raise fs.inotify.max_user_instances with sysctl, or the limit of open files")
	}
	return tree.WithoutPath(err)
}

func (w *Watcher) warnOnce(err error) {
	w.mutex.Lock()
	warned := w.warned
	w.since.blind, w.warned = true, true
	w.mutex.Unlock()
	if !warned {
		w.warn(err)
	}
}

// Where changes raise no events, the tree is scanned again and again: the scans take at most
// a fiftieth of the time.
const (
	pollPause = 50
	firstPoll = 2 * time.Second
)

// PollAfter returns the time until the next scan after a scan that took so long.
func PollAfter(took time.Duration) time.Duration { return max(pollPause*took, firstPoll) }

// IsBlind reports whether some changes raise no events, until a complete scan could watch all that
// it read. A nil Watcher is blind.
func (w *Watcher) IsBlind() bool {
	if w == nil {
		return true
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.before.blind || w.since.blind
}

// Changes receives a value when something has changed; nil for a nil Watcher.
func (w *Watcher) Changes() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.changes
}

// AddPathTo watches the path to a directory: each symlink on it may be changed to another
// target, and another directory may get its last name, or the first name that is missing.
// Only these names matter, since directories on the path, like /srv or /tmp, may have any
// number of other changes.
func (w *Watcher) AddPathTo(name string) {
	if w == nil {
		return
	}
	root := filepath.VolumeName(name) + string(filepath.Separator)
	at, rest := root, tree.SplitPath(strings.TrimPrefix(name, root))
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
			w.addName(at, step)
		}
		switch {
		case err != nil:
			return
		case !link:
			at = next
			continue
		}
		if links++; links > disk.MaxLinks {
			return
		}
		target, err := os.Readlink(next)
		if err != nil {
			return
		}
		if filepath.IsAbs(target) {
			at = root
		}
		rest = append(tree.SplitPath(target), rest...)
	}
}

// addName watches one name in a directory.
func (w *Watcher) addName(dir, name string) {
	w.mutex.Lock()
	if w.since.onPath[dir] == nil {
		w.since.onPath[dir] = make(map[string]bool)
	}
	w.since.onPath[dir][name] = true
	w.mutex.Unlock()
	w.addWatch(dir)
}

// Finish ends a scan of the whole tree: directories that the scan did not read are no longer
// watched.
func (w *Watcher) Finish() {
	if w == nil {
		return
	}
	w.mutex.Lock()
	before, now := w.before.all(), w.since.all()
	ended := w.since.ended && (w.before.linked || w.since.linked)
	w.before, w.since = w.since, newWatched()
	w.warned = w.before.blind
	w.mutex.Unlock()

	for dir := range before {
		if !now[dir] {
			ended = w.directories.remove(dir) || ended
		}
	}
	if !ended {
		return
	}
	// A directory that was renamed, or has two names, has one watch, which may be the watch
	// that has just ended.
	for dir := range now {
		w.addWatch(dir)
	}
	w.change("") // events in between were missed
}

// run handles events, in their order. They are received aside: fsnotify holds its lock while
// it reports an error, and dropping a watch waits for that lock.
func (w *Watcher) run(ctx context.Context) {
	notify := w.directories.notify
	defer notify.Close()
	received := newInbox()
	go received.fill(ctx, notify.Events, notify.Errors)
	for {
		select {
		case <-ctx.Done():
			return
		case <-received.some:
		}
		events, lost, ended := received.take()
		for _, event := range events {
			reports, ok := w.concerns(event.Name)
			if event.Has(fsnotify.Rename) || event.Has(fsnotify.Remove) {
				w.drop(event.Name)
			}
			if ok {
				w.change(reports...)
			}
		}
		if lost {
			w.change("")
		}
		if ended {
			return
		}
	}
}

// drop ends watching a directory that has been renamed or removed, and the directories in it.
// Otherwise their events would have the old names even when they are watched under the new
// ones: a directory has only one watch. The event of the new name comes later, and has them
// watched again.
func (w *Watcher) drop(name string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !w.before.has(name) && !w.since.has(name) {
		return
	}
	for _, known := range []*watched{&w.before, &w.since} {
		known.remove(name, func(dir string) { w.directories.remove(dir) })
	}
}

// concerns reports whether an event of that path can change the offers, and where: by paths
// in the report. An empty path is the whole tree.
func (w *Watcher) concerns(name string) (reports []string, ok bool) {
	if name == "" {
		return nil, false // the event is of a directory that is no longer watched
	}
	dir, base := filepath.Split(name)
	dir = filepath.Clean(dir)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	inModule := false
	for _, known := range []*watched{&w.before, &w.since} {
		if known.onPath[dir][base] {
			return []string{""}, true
		}
		if above, ok := known.tree[dir]; ok {
			reports = append(reports, inReport(above, base))
		}
		if itself, ok := known.tree[name]; ok {
			reports = append(reports, itself)
		}
		if known.linked {
			reports = append(reports, "")
		}
		inModule = inModule || known.modules[dir]
	}
	switch {
	case !slices.ContainsFunc([]*watched{&w.before, &w.since}, func(known *watched) bool { return known.has(dir) || known.has(name) }):
		return nil, false
	case strings.HasPrefix(base, ".."): // Kubernetes replaces a volume's content by renaming ..data, to which its files are symlinks
		return []string{""}, true
	case inModule: // .terraformignore and .terraform.lock.hcl count here
		return reports, !archive.IsLeftOut(base)
	}
	return reports, !tree.IsHiddenOrTemporary(base) // renaming the file raises an event of its new name
}

// inReport returns the path in the report of a name in a folder; empty for the whole tree.
func inReport(folder, name string) string {
	if folder == "" {
		return ""
	}
	return tree.InFolder(folder, name)
}

// change notes changed paths in the report. An empty path is the whole tree.
func (w *Watcher) change(reports ...string) {
	w.mutex.Lock()
	for _, report := range reports {
		w.changed[report] = true
	}
	w.mutex.Unlock()
	select {
	case w.changes <- struct{}{}:
	default: // a change is pending already
	}
}

// Take returns what has changed.
func (w *Watcher) Take() map[string]bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	changed := w.changed
	w.changed = make(map[string]bool)
	return changed
}

// AddLink watches the path of a symlink, by its name in a part: of one to a directory, which has two
// names then, or of one to nothing, whose target may come back.
func (w *Watcher) AddLink(p tree.Part, link string, toDirectory bool) {
	name, ok := disk.PathOf(p, link)
	if w == nil || !ok {
		return
	}
	w.mutex.Lock()
	w.since.linked = w.since.linked || toDirectory
	w.mutex.Unlock()
	w.AddPathTo(name)
}

// Settle waits after a change until the burst of events is over, or until a scan is
// requested: a request that waits for the scan must not wait for the burst.
func (w *Watcher) Settle(ctx context.Context, asked <-chan struct{}) {
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
