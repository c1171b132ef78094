package bucket

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A ListedTree opens a tree in a Bucket for scans. It takes directories from a flat listing
// that it keeps from one scan to the next. A scan of a hundred thousand packages sends a
// hundred requests to the store, and a scan after a change in one folder sends one. Files
// are opened from the Bucket.
//
// After Forget, everything is listed again; after Forget of some folders, only those
// folders. A ListedTree is safe for concurrent use.
type ListedTree struct {
	bucket Bucket
	direct tree.Tree // every read asks the store

	listing sync.Mutex // one at a time
	known   *listing   // nil before the first

	mutex sync.Mutex
	stale map[string]bool // directories in the bucket that have to be listed again
}

// NewListedTree returns the tree that files has in Folders of a Bucket. Nothing is listed before
// the first Open.
func NewListedTree(b Bucket, files tree.Tree) *ListedTree {
	l := &ListedTree{bucket: b, direct: files}
	l.Forget()
	return l
}

// Forget has the next Open list folders again: the folders of addresses, by their path in
// the report, such as providers/acme/demo, in every spelling that has been listed. Without
// folders, it is the whole tree.
func (l *ListedTree) Forget(folders ...string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.stale == nil {
		l.stale = make(map[string]bool)
	}
	if len(folders) == 0 {
		for _, part := range []tree.Part{l.direct.Providers, l.direct.Modules, l.direct.Keys} {
			l.stale[part.Storage.(Folder).dir] = true
		}
		return
	}
	for _, folder := range folders {
		if part, name, ok := l.direct.Reported(folder); ok {
			l.stale[part.Storage.(Folder).path(name)] = true
		}
	}
}

// Open lists the forgotten folders and returns the tree with the updated listing. If listing
// fails, the error is the store's, and the next Open tries again.
func (l *ListedTree) Open(ctx context.Context) (tree.Tree, error) {
	l.listing.Lock()
	defer l.listing.Unlock()
	stale := withoutNested(l.known.withSpellings(l.take()))
	known, err := l.known.refresh(ctx, l.bucket, stale)
	if err != nil {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		for _, dir := range stale {
			l.stale[dir] = true
		}
		return tree.Tree{}, fmt.Errorf("listing the bucket: %w", tree.WithoutPath(err))
	}
	l.known = known
	files := l.direct // files beside the parts are not listed
	for _, part := range []*tree.Part{&files.Providers, &files.Modules, &files.Keys} {
		part.Storage = listedFolder{part.Storage.(Folder), known}
	}
	return files, nil
}

// take returns the directories to list again.
func (l *ListedTree) take() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	stale := slices.Collect(maps.Keys(l.stale))
	l.stale = make(map[string]bool)
	return stale
}

// withoutNested returns the directories that lie in no other one, sorted.
func withoutNested(dirs []string) []string {
	all := slices.Compact(slices.Sorted(slices.Values(dirs)))
	return slices.DeleteFunc(slices.Clone(all), func(dir string) bool {
		return slices.ContainsFunc(all, func(other string) bool { return other != dir && tree.IsBelow(dir, other) })
	})
}

// withSpellings adds the directories whose names are other spellings of the given ones: the
// folder of acme/demo may be called ACME/demo.
func (l *listing) withSpellings(dirs []string) []string {
	if l == nil {
		return dirs
	}
	all := slices.Clone(dirs)
	for _, dir := range dirs {
		same := []string{"."}
		for name := range strings.SplitSeq(dir, "/") {
			var next []string
			for _, parent := range same {
				for _, e := range l.directories[parent] {
					if e.IsDir() && address.SameName(e.Name(), name) {
						next = append(next, path.Join(parent, e.Name()))
					}
				}
			}
			same = next
		}
		all = append(all, same...)
	}
	return all
}

// A listing has the entries of each directory of a Bucket, in the order of names. It is
// immutable. A store may have a file with the name of a directory: then the directory comes first,
// so that one stray file hides nothing.
type listing struct {
	directories map[string][]fs.FileInfo
}

// refresh returns the listing after listing some directories again. A nil listing is empty.
func (l *listing) refresh(ctx context.Context, b Bucket, stale []string) (*listing, error) {
	if l != nil && len(stale) == 0 {
		return l, nil
	}
	next := &listing{directories: make(map[string][]fs.FileInfo)}
	if l != nil {
		for dir, entries := range l.directories {
			if !slices.ContainsFunc(stale, func(s string) bool { return tree.IsBelow(dir, s) }) {
				next.directories[dir] = entries
			}
		}
	}
	changed := make(map[string]bool)
	for _, dir := range stale {
		// Adding a file of the directory adds the directory again.
		next.removeDirectory(dir)
		err := b.Files(ctx, dir, func(name string, info fs.FileInfo) error {
			next.add(name, info, changed)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for dir := range changed {
		slices.SortFunc(next.directories[dir], compareEntries)
	}
	return next, nil
}

// add adds a file and the directories around it. It notes in changed the directories that
// have more entries now.
func (l *listing) add(name string, info fs.FileInfo, changed map[string]bool) {
	for entry := info; ; entry = directoryInfo(name) {
		dir := path.Dir(name)
		entries, known := l.directories[dir]
		if !changed[dir] {
			entries = slices.Clip(entries) // the previous listing shares it
			changed[dir] = true
		}
		l.directories[dir] = append(entries, entry)
		if known || dir == "." {
			return
		}
		name = dir
	}
}

// removeDirectory removes the entry of a directory, and the entries of its parents that
// become empty.
func (l *listing) removeDirectory(dir string) {
	for dir != "." {
		parent := path.Dir(dir)
		entries := slices.DeleteFunc(slices.Clone(l.directories[parent]), func(e fs.FileInfo) bool {
			return e.IsDir() && e.Name() == path.Base(dir)
		})
		if l.directories[parent] = entries; len(entries) > 0 || parent == "." {
			return
		}
		delete(l.directories, parent)
		dir = parent
	}
}

// compareEntries orders the entries of a directory.
func compareEntries(a, b fs.FileInfo) int {
	switch c := strings.Compare(a.Name(), b.Name()); {
	case c != 0 || a.IsDir() == b.IsDir():
		return c
	case a.IsDir():
		return -1
	}
	return 1
}

// stat returns the information about a name, of the directory if a file has the same name.
func (l *listing) stat(name string) (fs.FileInfo, bool) {
	if name == "." {
		return directoryInfo("."), true
	}
	entries := l.directories[path.Dir(name)]
	base := path.Base(name)
	i, ok := slices.BinarySearchFunc(entries, base, func(e fs.FileInfo, base string) int { return strings.Compare(e.Name(), base) })
	if !ok {
		return nil, false
	}
	return entries[i], true
}

// directoryInfo describes a directory of a listing, by its path.
type directoryInfo string

func (d directoryInfo) Name() string     { return path.Base(string(d)) }
func (directoryInfo) Size() int64        { return 0 }
func (directoryInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o755 }
func (directoryInfo) ModTime() time.Time { return time.Time{} }
func (directoryInfo) IsDir() bool        { return true }
func (directoryInfo) Sys() any           { return nil }

// A listedFolder is a Folder whose directories are read from a listing. Methods for writers
// read the store.
type listedFolder struct {
	Folder
	listing *listing
}

// Sub implements tree.Storage.
func (l listedFolder) Sub(dir string) tree.Storage {
	l.dir = l.path(dir)
	return l
}

// Stat implements tree.Storage without a request.
func (l listedFolder) Stat(name string) (fs.FileInfo, error) {
	if info, ok := l.listing.stat(l.path(name)); ok {
		return info, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: l.path(name), Err: fs.ErrNotExist}
}

// Open implements tree.Storage. A file of the listing is opened from the store.
func (l listedFolder) Open(name string) (afero.File, fs.FileInfo, error) {
	info, err := l.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return nil, nil, tree.ErrNotRegular
	}
	return l.Folder.Open(name)
}

// List implements tree.Storage without a request.
func (l listedFolder) List(dir string) ([]fs.FileInfo, error) {
	info, err := l.Stat(dir)
	if err == nil && !info.IsDir() {
		err = tree.ErrNoDirectory
	}
	if err != nil {
		return nil, err
	}
	return l.listing.directories[l.path(dir)], nil
}
