package tree

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

// A Tree has all parts that a scan reads. They may lie on different file systems.
type Tree struct {
	Providers, Modules, Keys Part

	Root Part // Fs is nil if there is no root
}

// A Part is one directory of a tree: Dir on Fs, with slashes.
//
// It is not an afero.BasePathFs. That wraps every file, and net/http sends only an
// *os.File by sendfile; it wraps path errors in one another, so that the path on the
// server would reach reports; and it has no root ".".
type Part struct {
	Fs  afero.Fs
	Dir string

	Disk string // where Fs begins on the local disk, if it is there
}

// NewPart returns a part that is a directory of the local disk, whose path is disk.
func NewPart(root *os.Root, disk string) Part {
	return Part{Fs: newRootFs(root), Dir: ".", Disk: disk}
}

// IsOnDisk reports whether the part lies on the local disk.
func (p Part) IsOnDisk() bool { return p.Disk != "" }

// Staged returns a tree with these providers, no modules, and the keys of t. A scan of it
// verifies a release that lies elsewhere as if it were in t.
func (t Tree) Staged(providers Part) Tree {
	return Tree{Providers: providers, Modules: EmptyPart(), Keys: t.Keys}
}

// EmptyPart returns a part without files, which cannot be written to.
func EmptyPart() Part { return Part{Fs: afero.NewReadOnlyFs(afero.NewMemMapFs()), Dir: "."} }

// Directories locate a tree. Relative directories lie under Root, and an empty directory has
// its default name there.
type Directories struct {
	Root, Providers, Modules, Keys string
}

// Open opens the tree on the local disk. Parts that lie under Root share its boundary, so a
// symlink may lead from one part to another but not out of Root; a part elsewhere has its
// own boundary. A missing root is an error, and so is a missing part elsewhere; a missing
// part under the root is empty.
func (d Directories) Open() (Tree, error) { return d.open(openPart) }

// OpenReadOnly is Open for a tree that is not written to. Nothing written would be lost: all
// that is missing is empty.
func (d Directories) OpenReadOnly() (Tree, error) {
	return d.open(func(dir string) (Part, error) {
		p, err := openPart(dir)
		if errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) { // it is no symlink to nothing
				return EmptyPart(), nil
			}
		}
		p.Fs = afero.NewReadOnlyFs(p.Fs)
		return p, err
	})
}

// open opens the tree by open, which opens a directory of the local disk.
func (d Directories) open(open func(dir string) (Part, error)) (t Tree, err error) {
	if t.Root, err = open(d.Root); err != nil {
		return Tree{}, fmt.Errorf("opening the root: %w", WithoutPath(err))
	}
	part := func(dir, fallback string) (Part, error) {
		dir = cmp.Or(dir, fallback)
		if !filepath.IsAbs(dir) {
			return t.Root.Sub(filepath.ToSlash(dir)), nil
		}
		elsewhere, err := open(dir)
		if err != nil { // even if it is missing: files written elsewhere would be lost
			return Part{}, fmt.Errorf("opening %s: %w", fallback, WithoutPath(err))
		}
		return elsewhere, nil
	}
	var errs [3]error
	t.Providers, errs[0] = part(d.Providers, "providers")
	t.Modules, errs[1] = part(d.Modules, "modules")
	t.Keys, errs[2] = part(d.Keys, "keys")
	if err := cmp.Or(errs[:]...); err != nil {
		return Tree{}, err
	}
	return t, nil
}

func openPart(dir string) (Part, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Part{}, err
	}
	return NewPart(root, dir), nil
}

// Paths returns where the tree begins on the local disk: the root, and its parts. Symlinks
// may lead to them, and they need not exist yet.
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

// OpenIn opens the tree on a file system that has slash-separated paths and no absolute
// paths.
func (d Directories) OpenIn(fsys fs.FS) (Tree, error) {
	if b, ok := fsys.(Bucket); ok {
		return d.on(newBucketFs(b)), nil // an empty root does not exist there, which is no mistake
	}
	root := d.rootIn()
	info, err := fs.Stat(fsys, root)
	if err != nil {
		return Tree{}, fmt.Errorf("opening the root: %w", WithoutPath(err))
	}
	if !info.IsDir() {
		return Tree{}, errors.New("opening the root: it is not a directory")
	}
	return d.on(afero.FromIOFS{FS: fsys}), nil
}

// rootIn returns the root as a name of fs.FS.
func (d Directories) rootIn() string { return nameIn(d.Root) }

func nameIn(dir string) string { return path.Clean(strings.Trim(filepath.ToSlash(dir), "/")) }

// on returns the tree on a file system whose names are names of fs.FS.
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
		Root: Part{Fs: fsys, Dir: root},
	}
}

// Reported returns the part of a path in a report, and the path there. ok is false if it is
// in no part.
func (t Tree) Reported(report string) (part Part, name string, ok bool) {
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

// WithoutPath removes the path from a file system error. Errors of the index reach answers
// and reports, which must not contain paths of the server.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Lookup returns the information about a name in the part, symlinks followed.
func (p Part) Lookup(name string) (fs.FileInfo, error) { return p.Fs.Stat(path.Join(p.Dir, name)) }

// Same reports whether the part is still the directory that was opened. It is not if another
// one has taken its place, as when a root is exchanged by a rename or a symlink.
func (p Part) Same() bool {
	if p.Disk == "" {
		return true
	}
	opened, err := p.Lookup(".")
	now, nowErr := os.Stat(p.DiskPath("."))
	if err != nil || nowErr != nil {
		// What is done in a part that cannot be looked at fails with an error that tells why.
		return err != nil && nowErr != nil && errors.Is(err, fs.ErrNotExist) == errors.Is(nowErr, fs.ErrNotExist)
	}
	return os.SameFile(opened, now)
}

// Same reports whether no other directory has taken the place of a part.
func (t Tree) Same() bool {
	return t.Root.Same() && t.Providers.Same() && t.Modules.Same() && t.Keys.Same()
}

// An Entry is a name in a directory, symlinks followed.
type Entry struct {
	Dir  string // the directory, by its path in the part
	Name string
	Info fs.FileInfo
	Bad  *Finding // why info is nil
	Link bool     // it is a symlink
	Gone bool     // the target of the symlink does not exist

	failed error // why info is nil
}

// Err returns why the target of a symlink is not known, as a StorageError. Another target
// may be there a moment later, so the entry does not count as absent.
func (e Entry) Err() error {
	if e.Gone {
		return errLeadsNowhere
	}
	return StorageError(e.failed)
}

// IsDir reports whether the entry is a folder.
func (e Entry) IsDir() bool { return e.Info != nil && e.Info.IsDir() }

// IsFile reports whether the entry is a regular file.
func (e Entry) IsFile() bool { return e.Info != nil && e.Info.Mode().IsRegular() }

// Location returns where the entry lies. report is the path of its folder in a report.
func (e Entry) Location(report string) Location { return Location{e.Dir, e.Name, report} }

// Path returns the entry's path in its part, with slashes.
func (e Entry) Path() string { return InFolder(e.Dir, e.Name) }

// List reads a directory by name. A missing one is empty. The names in it may share memory.
func (p Part) List(dir string) ([]Entry, error) {
	if dir == "." && !p.named() { // all others come from a listing that says they are directories
		info, err := p.Lookup(dir)
		if err == nil && !info.IsDir() {
			return nil, errNoDirectory
		}
	}
	infos, err := p.listDirectory(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if dir != "." {
			return nil, nil
		}
		nowhere := p.leadsNowhere(dir)
		if errors.Is(nowhere, errLeadsNowhere) {
			return nil, err
		}
		return nil, nowhere
	}
	if err != nil {
		return nil, err
	}
	return p.follow(dir, infos), nil
}

// follow makes the entries of a directory, in the order of their names. Every reader of
// directories follows symlinks like this.
func (p Part) follow(dir string, infos []fs.FileInfo) []Entry {
	entries := make([]Entry, 0, len(infos))
	for _, info := range infos {
		e := Entry{Dir: dir, Name: info.Name(), Info: info}
		if info.Mode()&fs.ModeSymlink != 0 {
			e.Link = true
			if e.Info, e.failed = p.Lookup(e.Path()); e.failed != nil {
				e.Info, e.Bad, e.Gone = nil, AsFinding(e.failed), errors.Is(e.failed, fs.ErrNotExist)
			}
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// listDirectory returns the entries of a directory for a scan, in no particular order.
func (p Part) listDirectory(dir string) ([]fs.FileInfo, error) {
	if b, ok := p.Fs.(interface {
		readDirectory(dir string) ([]fs.FileInfo, error)
	}); ok {
		return b.readDirectory(path.Join(p.Dir, dir))
	}
	f, err := p.Fs.Open(path.Join(p.Dir, dir))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if dir == "." && p.named() {
		if info, err := f.Stat(); err == nil && !info.IsDir() {
			return nil, errNoDirectory
		}
	}
	infos, err := readEntries(f)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return infos, err
}

var (
	errNoDirectory = Findingf(Unreadable, "it is not a directory")
	errNotRegular  = Findingf(Unreadable, "it is not a regular file")
)

// OpenRegular opens a regular file. On the disk it refuses anything else without opening it,
// since opening a named pipe would wait for its writer. On other file systems Stat opens the
// file.
func (p Part) OpenRegular(name string) (afero.File, fs.FileInfo, error) {
	if !p.named() {
		info, err := p.Lookup(name)
		if err != nil {
			return nil, nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, nil, errNotRegular
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
		return nil, nil, errNotRegular
	}
	switch {
	case p.Bucket() != nil:
		f = &object{File: f, rest: info.Size()}
	case p.named():
		f = withReadAt(f, info.Size())
	}
	return f, info, nil
}

// IsExecutable reports whether the mode of a file says that it is a program. File systems of
// Caddy's make modes up.
func (p Part) IsExecutable(info fs.FileInfo) bool {
	return !p.named() && info.Mode()&0o111 != 0
}

// named reports whether the part lies on a file system of Caddy's, which has a name, and not
// on the local disk.
func (p Part) named() bool {
	switch p.Fs.(type) {
	case afero.FromIOFS, bucketFs, listedFs:
		return true
	}
	return false
}

// errNotSeekable is the error of a scan on a file system that the registry cannot serve
// from: clients resume downloads, and a zip is read from its end.
var errNotSeekable = errors.New("the files of this file system cannot seek, which serving packages needs: " +
	"use a file system whose files can, as Caddy's file_server needs it too, or copy the tree to the local disk")

// CheckSeeking returns errNotSeekable if a file can be opened and cannot seek. ok reports
// whether it could tell.
func (p Part) CheckSeeking(name string) (ok bool, err error) {
	if !p.named() || p.Bucket() != nil {
		return true, nil // files on the disk and in a Bucket can
	}
	f, _, err := p.OpenRegular(name)
	if err != nil {
		return false, nil // reading the file will report why
	}
	defer f.Close()
	if _, err := f.Seek(0, io.SeekCurrent); err != nil {
		return true, errNotSeekable
	}
	return true, nil
}

// ErrChanged means that a file is no longer the file that was verified. The next scan reads
// the new file.
var ErrChanged = errors.New("the file has changed since it was verified")

// OpenUnchanged opens a file if it is still the file that was verified, and otherwise
// returns ErrChanged. A file that replaces another may have the same size and time, as when
// both were built reproducibly: then its inode differs. If a file was rewritten in place and
// given its old time, its change time differs.
func (p Part) OpenUnchanged(name string, verified Stamp) (afero.File, error) {
	f, info, err := p.OpenRegular(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrChanged
	}
	if err != nil {
		return nil, err
	}
	if !p.SameFile(name, StampOf(info), verified) {
		f.Close()
		return nil, ErrChanged
	}
	return f, nil
}

// SameFile reports whether a file is still the verified file, by their stamps.
func (p Part) SameFile(name string, now, verified Stamp) bool {
	return now == verified || now.SameContent(verified) && !p.KeepsInodes(name)
}

// KeepsInodes reports whether a file's inode and change time are reliable. Network file
// systems make them up, and may later make up others.
func (p Part) KeepsInodes(name string) bool {
	return p.Disk == "" || NetworkFileSystem(p.DiskPath(name)) == ""
}

// ReadDocument returns the content of a small document.
func (p Part) ReadDocument(name string) ([]byte, error) {
	f, info, err := p.OpenRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() == 0 {
		return nil, Findingf(Empty, "it is empty: copy it again")
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxDocument {
		return nil, Findingf(TooLarge, "it is larger than %d bytes, which no such document is", MaxDocument)
	}
	return content, nil
}

// DiskPath returns the path on the local disk of a directory in the part.
func (p Part) DiskPath(dir string) string {
	return filepath.Join(p.Disk, filepath.FromSlash(path.Join(p.Dir, dir)))
}
