package index

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/afero"
)

// A Tree is what one scan reads. Its parts may lie on different file systems.
type Tree struct {
	Providers, Modules, Keys Part

	root Part // Fs is nil if there is none
}

// A Part is one directory of a tree: Dir on Fs, with slashes.
//
// It is not an afero.BasePathFs. That wraps every file, and net/http sends only an
// *os.File by sendfile; it wraps path errors in one another, so that the path on the
// server would reach reports; and it has no root ".".
type Part struct {
	Fs  afero.Fs
	Dir string

	disk string // where Fs begins on the local disk, if it is there
}

// newPart returns a directory of the local disk, which is at the path disk.
func newPart(root *os.Root, disk string) Part {
	return Part{Fs: newRootFs(root), Dir: ".", disk: disk}
}

// isOnDisk reports whether the part lies on the local disk.
func (p Part) isOnDisk() bool { return p.disk != "" }

// Staged returns a tree with these providers, no modules, and the keys of t: a scan of
// it verifies a release that lies elsewhere as if it were in t.
func (t Tree) Staged(providers Part) Tree {
	none := Part{Fs: afero.NewMemMapFs(), Dir: "modules"}
	return Tree{Providers: providers, Modules: none, Keys: t.Keys}
}

// Directories locate a tree. Relative ones lie under Root, empty ones are the
// directory of their own name there.
type Directories struct {
	Root, Providers, Modules, Keys string
}

// Open opens the tree on the local disk. Parts that lie under Root share its
// boundary, so a symlink may lead from one to another but not out of Root; a
// part elsewhere has its own. A missing root is an error, and so is a missing part
// elsewhere; a missing one under the root is empty.
func (d Directories) Open() (Tree, error) {
	root, err := os.OpenRoot(d.Root)
	if err != nil {
		return Tree{}, fmt.Errorf("opening the root: %w", withoutPath(err))
	}
	shared := newRootFs(root)
	return d.parts(Part{Fs: shared, Dir: ".", disk: d.Root}, func(dir, fallback string) (Part, error) {
		dir = cmp.Or(dir, fallback)
		if !filepath.IsAbs(dir) {
			return Part{Fs: shared, Dir: path.Clean(filepath.ToSlash(dir)), disk: d.Root}, nil
		}
		elsewhere, err := os.OpenRoot(dir)
		if err != nil { // also if it is missing: what is written to another place would be lost
			return Part{}, fmt.Errorf("opening %s: %w", fallback, withoutPath(err))
		}
		return Part{Fs: newRootFs(elsewhere), Dir: ".", disk: dir}, nil
	})
}

// Paths are where the tree begins on the local disk: the root, and its parts. They
// may be reached by symlinks, and need not exist yet.
func (d Directories) Paths() []string {
	paths := []string{d.Root}
	for _, dir := range []string{cmp.Or(d.Providers, "providers"), cmp.Or(d.Modules, "modules"), cmp.Or(d.Keys, "keys")} {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(d.Root, dir)
		}
		paths = append(paths, dir)
	}
	return paths
}

// OpenIn opens the tree on a file system that has slash-separated paths and no
// notion of an absolute one.
func (d Directories) OpenIn(fsys fs.FS) (Tree, error) {
	if b, ok := fsys.(Bucket); ok {
		return d.on(newBucketFs(b)), nil // an empty root does not exist there, and is no mistake
	}
	root := d.rootIn()
	info, err := fs.Stat(fsys, root)
	if err != nil {
		return Tree{}, fmt.Errorf("opening the root: %w", withoutPath(err))
	}
	if !info.IsDir() {
		return Tree{}, errors.New("opening the root: it is not a directory")
	}
	return d.on(afero.FromIOFS{FS: fsys}), nil
}

// rootIn is the root as a name of fs.FS.
func (d Directories) rootIn() string { return nameIn(d.Root) }

func nameIn(dir string) string { return path.Clean(strings.Trim(filepath.ToSlash(dir), "/")) }

// on returns the tree on a file system with names of fs.FS.
func (d Directories) on(fsys afero.Fs) Tree {
	root := d.rootIn()
	part := func(dir, fallback string) Part {
		dir = filepath.ToSlash(cmp.Or(dir, fallback))
		if strings.HasPrefix(dir, "/") {
			return Part{Fs: fsys, Dir: nameIn(dir)}
		}
		return Part{Fs: fsys, Dir: path.Join(root, dir)}
	}
	return Tree{
		Providers: part(d.Providers, "providers"), Modules: part(d.Modules, "modules"), Keys: part(d.Keys, "keys"),
		root: Part{Fs: fsys, Dir: root},
	}
}

// reported returns the part that a path in a report is in, and the path there. ok is
// false if it is in none.
func (t Tree) reported(report string) (part Part, name string, ok bool) {
	first, name, _ := strings.Cut(report, "/")
	switch first {
	case "providers":
		return t.Providers, name, true
	case "modules":
		return t.Modules, name, true
	case "keys":
		return t.Keys, name, true
	}
	return Part{}, "", false
}

func (d Directories) parts(root Part, open func(dir, fallback string) (Part, error)) (t Tree, err error) {
	t.root = root
	if t.Providers, err = open(d.Providers, "providers"); err != nil {
		return Tree{}, err
	}
	if t.Modules, err = open(d.Modules, "modules"); err != nil {
		return Tree{}, err
	}
	if t.Keys, err = open(d.Keys, "keys"); err != nil {
		return Tree{}, err
	}
	return t, nil
}

// withoutPath drops the path from a file system error. Errors of the index
// reach answers and reports, where no path of the server belongs.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// stat returns what a name in the part is, symlinks followed.
func (p Part) stat(name string) (fs.FileInfo, error) { return p.Fs.Stat(path.Join(p.Dir, name)) }

// Replaced reports whether another directory has come to the place of the part on the
// local disk since its tree was opened, as when a root is exchanged by a rename or a
// symlink.
func (p Part) Replaced() bool {
	if p.disk == "" {
		return false
	}
	opened, err := p.stat(".")
	now, nowErr := os.Stat(p.onDisk("."))
	if err != nil || nowErr != nil {
		return !errors.Is(err, fs.ErrNotExist) || !errors.Is(nowErr, fs.ErrNotExist)
	}
	return !os.SameFile(opened, now)
}

// An entry is one name in a directory, symlinks followed.
type entry struct {
	dir  string // it is in, by its path in the part
	name string
	info fs.FileInfo
	bad  *finding // why info is nil
	link bool     // it is a symlink
	gone bool     // what the symlink leads to does not exist
}

// path is the entry's path in its part, with slashes.
func (e entry) path() string { return inFolder(e.dir, e.name) }

// list reads a directory by name. A missing one is empty. The names in it may share memory.
func (p Part) list(dir string) ([]entry, error) {
	if dir == "." && !p.named() { // all others are known from a list to be directories
		info, err := p.stat(dir)
		if err == nil && !info.IsDir() {
			return nil, found(Unreadable, "it is not a directory")
		}
	}
	infos, err := p.readDirectory(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if dir == "." && p.leadsNowhere(dir) {
			return nil, err
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(infos))
	for _, info := range infos {
		e := entry{dir: dir, name: info.Name(), info: info}
		if info.Mode()&fs.ModeSymlink != 0 {
			e.link = true
			if e.info, err = p.stat(e.path()); err != nil {
				e.info, e.bad, e.gone = nil, asFinding(err), errors.Is(err, fs.ErrNotExist)
			}
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries, nil
}

// readDirectory returns what is in a directory, in no order.
func (p Part) readDirectory(dir string) ([]fs.FileInfo, error) {
	if b, ok := p.Fs.(bucketFs); ok { // in a single request
		return b.readDirectory(path.Join(p.Dir, dir))
	}
	f, err := p.Fs.Open(path.Join(p.Dir, dir))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if dir == "." && p.named() {
		if info, err := f.Stat(); err == nil && !info.IsDir() {
			return nil, found(Unreadable, "it is not a directory")
		}
	}
	infos, err := readEntries(f)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return infos, err
}

// open opens a regular file. On the disk anything else is refused unopened: opening
// a named pipe would wait for its writer. On other file systems Stat opens the file.
func (p Part) open(name string) (afero.File, fs.FileInfo, error) {
	notRegular := found(Unreadable, "it is not a regular file")
	if !p.named() {
		info, err := p.stat(name)
		if err != nil {
			return nil, nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, nil, notRegular
		}
	}
	f, err := p.Fs.Open(path.Join(p.Dir, name))
	if err != nil {
		return nil, nil, err
	}
	// The file may have been replaced since the first Stat.
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		f.Close()
		return nil, nil, notRegular
	}
	switch {
	case p.bucket() != nil:
		f = &object{File: f, rest: info.Size()}
	case p.named():
		f = withReadAt(f, info.Size())
	}
	return f, info, nil
}

// named reports whether the part lies on a file system of Caddy's, which is known
// by its name, and not on the local disk.
func (p Part) named() bool {
	switch p.Fs.(type) {
	case afero.FromIOFS, bucketFs, listedFs:
		return true
	}
	return false
}

// errNotSeekable is why a scan fails on a file system that the registry cannot
// serve from: clients resume downloads, and a zip is read from its end.
var errNotSeekable = errors.New("the files of this file system cannot seek, which serving packages needs: " +
	"use a file system whose files can, as Caddy's file_server needs it too, or copy the tree to the local disk")

// checkSeeking returns errNotSeekable if a file that can be opened cannot seek. ok
// reports whether there is an answer.
func (p Part) checkSeeking(name string) (ok bool, err error) {
	if !p.named() || p.bucket() != nil {
		return true, nil // files on the disk and in a Bucket can
	}
	f, _, err := p.open(name)
	if err != nil {
		return false, nil // reading it will tell why
	}
	defer f.Close()
	if _, err := f.Seek(0, io.SeekCurrent); err != nil {
		return true, errNotSeekable
	}
	return true, nil
}

// ErrChanged: a file is no longer the one that was verified. The next scan finds out
// what it is now.
var ErrChanged = errors.New("the file has changed since it was verified")

// openUnchanged opens a file if it is the one that was verified, and else returns
// ErrChanged. A file that replaces another may have the same size and time, as when
// both were built reproducibly: then its inode differs. If it was rewritten in place
// and given its old time, its change time differs.
func (p Part) openUnchanged(name string, verified stamp) (afero.File, error) {
	f, info, err := p.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrChanged
	}
	if err != nil {
		return nil, err
	}
	if !p.sameFile(name, stampOf(info), verified) {
		f.Close()
		return nil, ErrChanged
	}
	return f, nil
}

// sameFile reports whether a file is the one that was verified, by their stamps.
func (p Part) sameFile(name string, now, verified stamp) bool {
	return now == verified || now.sameContent(verified) && !p.keepsInodes(name)
}

// sameContent reports whether a file has not been written to between two stamps of it.
func (p Part) sameContent(a, b stamp) bool {
	if p.bucket() != nil {
		return a == b
	}
	return a.sameContent(b)
}

// keepsInodes reports whether a file's inode and change time can be relied on.
// Network file systems make them up, and may make up others later.
func (p Part) keepsInodes(name string) bool {
	return p.disk == "" || networkFileSystem(p.onDisk(name)) == ""
}

// read returns a small document whole.
func (p Part) read(name string) ([]byte, error) {
	f, info, err := p.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() == 0 {
		return nil, found(Empty, "it is empty: copy it again")
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxDocument {
		return nil, found(TooLarge, "it is larger than %d bytes, which no such document is", MaxDocument)
	}
	return content, nil
}

// onDisk returns the path of a directory of a part on the local disk.
func (p Part) onDisk(dir string) string {
	return filepath.Join(p.disk, filepath.FromSlash(path.Join(p.Dir, dir)))
}
