package tree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/afero"
)

// A Tree has all parts that a scan reads. They may lie on different file systems.
type Tree struct {
	Providers, Modules, Keys Part

	Root Part // the zero Part if there is no root

	guard Guard // see Guarded; nil: what is missing is absent
}

// A Part is one directory of a tree. The zero Part has no files, and cannot be written to.
type Part struct {
	Storage Storage

	noted func(name string, err error) // see Observed; nil: nothing is noted
}

// storage returns where the part lies.
func (p Part) storage() Storage {
	if p.Storage == nil {
		return nowhere{}
	}
	return p.Storage
}

// local returns where the part lies if that is a Local storage.
func (p Part) local() (l Local, ok bool) {
	l, ok = p.Storage.(Local)
	return l, ok
}

// Path returns where the part lies: on the local disk, or else in its file system. No answer
// and no report has it.
func (p Part) Path() string { return p.storage().Path() }

// Lock waits until no other process has the lock of the part, or for the end of ctx. Where locks
// do not work, as on some network file systems, and in a storage without other programs, there is
// none: callers have to compare what they replace all the same.
func (p Part) Lock(ctx context.Context) (unlock func(), err error) {
	if l, ok := p.local(); ok {
		return l.Lock(ctx)
	}
	return func() {}, nil
}

// Staged returns a tree with these providers, no modules, and the keys of t. A scan of it
// verifies a release that lies elsewhere as if it were in t.
func (t Tree) Staged(providers Part) Tree {
	return Tree{Providers: providers, Keys: t.Keys}
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
func (p Part) Lookup(name string) (fs.FileInfo, error) {
	info, err := p.storage().Stat(name)
	p.note(name, err)
	return info, err
}

// Same reports whether the part is still the directory that was opened. It is not if another
// one has taken its place, as when a root is exchanged by a rename or a symlink.
func (p Part) Same() bool {
	l, ok := p.local()
	return !ok || l.Same()
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
		return ErrLeadsNowhere
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

// List reads a directory by name. A missing one is empty, but not one behind a symlink that
// leads to nothing. The names in it may share memory.
func (p Part) List(dir string) ([]Entry, error) {
	infos, err := p.storage().List(dir)
	p.note(dir, err)
	if errors.Is(err, fs.ErrNotExist) {
		nowhere := p.leadsNowhere(dir)
		if dir == "." && errors.Is(nowhere, ErrLeadsNowhere) {
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

// OpenRegular opens a regular file, symlinks followed, and returns its information.
func (p Part) OpenRegular(name string) (afero.File, fs.FileInfo, error) {
	f, info, err := p.storage().Open(name)
	p.note(name, err)
	if err == nil && p.noted != nil {
		f = observedFile{f, p.noted, name}
	}
	return f, info, err
}

// IsExecutable reports whether the mode of a file says that it is a program. A storage that is
// not Local makes modes up.
func (p Part) IsExecutable(info fs.FileInfo) bool {
	_, ok := p.local()
	return ok && info.Mode()&0o111 != 0
}

// CheckSeeking returns an error if a file can be opened and cannot seek, which serving it
// needs. ok reports whether it could tell.
func (p Part) CheckSeeking(name string) (ok bool, err error) {
	s, unsure := p.Storage.(interface {
		CheckSeeking(name string) (ok bool, err error)
	})
	if !unsure {
		return true, nil
	}
	return s.CheckSeeking(name)
}

// ErrChanged means that a file is no longer the file that was verified. The next scan reads
// the new file.
var ErrChanged = errors.New("the file has changed since it was verified")

// ErrEncoded means that a store sends a file with a Content-Encoding, so that clients decode
// it and get other bytes than those that were verified.
var ErrEncoded = errors.New("the store sends the file with a Content-Encoding, which clients undo")

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
	return now == verified || now.SameContent(verified) && !p.keepsInodes(name)
}

// keepsInodes reports whether a file's inode and change time are reliable. Network file
// systems make them up, and may later make up others.
func (p Part) keepsInodes(name string) bool {
	l, ok := p.local()
	return !ok || l.KeepsInodes(name)
}

// keepsChanges reports whether the time of a folder tells when a name in it was added or removed.
func (p Part) keepsChanges(dir string) bool {
	l, ok := p.local()
	return ok && l.KeepsChanges(dir)
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
