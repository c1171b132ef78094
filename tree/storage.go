package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/afero"
)

// A Storage is where a part lies. It has what a disk and an object store do in different ways:
// packages tree/disk and tree/bucket implement it. Names are paths in the part. Errors are
// errors of the file system or the store, unless the method of Part that calls it says
// otherwise.
type Storage interface {
	// Sub returns a folder of the part as a storage of its own.
	Sub(dir string) Storage

	// Path returns where the part lies: on the local disk, or else in its file system. No
	// answer and no report has it.
	Path() string

	// Stat returns the information about a name, symlinks followed.
	Stat(name string) (fs.FileInfo, error)

	// Open opens a regular file, symlinks followed. For anything else the error is
	// ErrNotRegular, without waiting as opening a named pipe would.
	Open(name string) (afero.File, fs.FileInfo, error)

	// List returns the entries of a directory for a scan, in any order; symlinks are not
	// followed. The directory may be as it was when the tree was opened.
	List(dir string) ([]fs.FileInfo, error)

	// ReadDir is List for the directory as it is now. If it is a file, the error is
	// ErrNoFolder. ReadNames is ReadDir for names only.
	ReadDir(dir string) ([]fs.FileInfo, error)
	ReadNames(dir string) ([]string, error)

	// Walk calls visit for every file below a directory, as Part.Walk says. WalkFolders does so
	// by ReadDir.
	Walk(ctx context.Context, dir string, visit func(name string, info fs.FileInfo)) error

	Writer
}

// A Writer has the methods of a Storage that change it. The methods of Part that call them say
// how: WriteFile calls Write, InstallFolder calls Install, and the others have the same names.
type Writer interface {
	Write(name string, content []byte) error
	NewTemporary(ctx context.Context, name string) (TemporaryFile, error)
	Move(from, to string) error
	Remove(name string) error // a file, a symlink itself, or an empty folder
	RemoveAll(name string) error
	Install(ctx context.Context, from, to, last string) (copied map[string]fs.FileInfo, err error)
	InstallDocuments(ctx context.Context, documents map[string][]byte, to, last string) error
	ReplaceFolder(ctx context.Context, documents Documents, dir, aside string) error
	RemoveFolder(ctx context.Context, dir, first string) error
	RemoveUnfinished(ctx context.Context, dir, last string, content []byte) error
	RemoveTemporaries(ctx context.Context, dir string, depth int) (removed int)
}

// A Local storage is a file system with folders, modes and perhaps symlinks, in which other
// programs write.
type Local interface {
	// Same reports whether the part is still the directory that was opened.
	Same() bool

	// LeadsNowhere returns ErrLeadsNowhere if a name that was found not to exist is a symlink,
	// or has one on its way that leads to nothing. Any other StorageError says that this cannot
	// be told at the moment.
	LeadsNowhere(name string) error

	// KeepsInodes reports whether a file's inode and change time are reliable, and
	// KeepsChanges whether the time of a folder tells when a name in it was added or removed.
	KeepsInodes(name string) bool
	KeepsChanges(dir string) bool

	// Lock is Part.Lock.
	Lock(ctx context.Context) (unlock func(), err error)
}

// A Signer is a storage from which others can get files without this process.
type Signer interface {
	SignedURL(ctx context.Context, name string, life time.Duration) (string, error)

	// StatNow is Stat for the file as it is now.
	StatNow(name string) (fs.FileInfo, error)
}

// The errors by which a Storage says what lies under a name.
var (
	// ErrNoDirectory and ErrNotRegular are the findings of a scan.
	ErrNoDirectory = Findingf(Unreadable, "it is not a directory")
	ErrNotRegular  = Findingf(Unreadable, "it is not a regular file")

	// ErrNoFolder means that a file lies where a folder should be.
	ErrNoFolder = fmt.Errorf("%w: a file in it lies where a folder should be", ErrNotWritable)

	// ErrLeadsNowhere means that a symlink on the way to a name leads to nothing.
	ErrLeadsNowhere = fmt.Errorf("%w: a symlink in it leads to nothing, mend or remove it", ErrNotWritable)
)

// ErrInTheWay means that the folder of a version has files already.
var ErrInTheWay = errors.New("there is something in the folder of the version")

// The methods below are for code that writes into a tree. They read the tree as it is now,
// which the snapshot or the listing of a scan may not have yet.

// Sub returns a folder of the part as a part of its own.
func (p Part) Sub(dir string) Part {
	p.Storage = p.storage().Sub(dir)
	return p
}

// Entries returns the entries of a folder in the order of their names. A folder that does
// not exist has none. Symlinks are followed as List does; Entry.Err is why the target of one
// is not known. The error is a StorageError.
func (p Part) Entries(dir string) ([]Entry, error) {
	infos, err := p.storage().ReadDir(dir)
	if err = p.wrapUnlessAbsent(dir, err); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(p.follow(dir, infos), func(e Entry) bool {
		return e.Gone && p.leadsNowhere(e.Path()) == nil // it has been removed meanwhile
	}), nil
}

// Names is Entries for names only.
func (p Part) Names(dir string) ([]string, error) {
	names, err := p.storage().ReadNames(dir)
	slices.Sort(names)
	if err = p.wrapUnlessAbsent(dir, err); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// Walk calls visit for every file below a folder, with its path in the part. It does not
// follow the symlinks in the folder, but visits them as such; dir itself may be a symlink. It
// skips files and folders that cannot be read, and returns the error at the end, as a
// StorageError.
func (p Part) Walk(ctx context.Context, dir string, visit func(name string, info fs.FileInfo)) error {
	return StorageError(p.storage().Walk(ctx, dir, visit))
}

// WalkFolders is the Walk of a storage that has folders to read. It has nothing to visit in a
// file, or in a folder that is removed meanwhile.
func WalkFolders(ctx context.Context, s Storage, dir string, visit func(name string, info fs.FileInfo)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	infos, err := s.ReadDir(dir)
	switch {
	case errors.Is(err, ErrNoFolder):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return Part{Storage: s}.leadsNowhere(dir)
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	for _, info := range infos {
		name := path.Join(dir, info.Name())
		if !info.IsDir() {
			visit(name, info)
		} else if failed := WalkFolders(ctx, s, name, visit); err == nil {
			err = failed
		}
	}
	return err
}

// WalkNames calls visit for every file below a folder, under each name that it has there,
// following symlinks through folders down to depth. It skips names without a file
// (HasNoFile), such as a symlink to nothing, and folders that no scan enters and that may not
// be read, such as lost+found. Any other failure is an error, which names the file.
func (p Part) WalkNames(dir string, depth int, visit func(name string, info fs.FileInfo)) error {
	skips := func(name string, err error) bool {
		return HasNoFile(err) || errors.Is(err, fs.ErrPermission) && isOfNoAddress(path.Base(name))
	}
	entries, err := p.List(dir)
	if err != nil && !skips(dir, err) {
		return fmt.Errorf("%s: %w", dir, AsFinding(err))
	}
	for _, e := range entries {
		name := e.Path()
		info, err := p.Lookup(name) // os.SameFile cannot compare the info of a listing
		switch {
		case err != nil && !skips(name, err):
			return fmt.Errorf("%s: %w", name, AsFinding(err))
		case err != nil:
		case !info.IsDir():
			visit(name, info)
		case depth > 0:
			if err := p.WalkNames(name, depth-1, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteFile creates or replaces a small file, as a whole or not at all. A replacement keeps
// the mode of the file. The error is a StorageError.
func (p Part) WriteFile(name string, content []byte) error {
	return StorageError(p.storage().Write(name, content))
}

// CreateFile writes a small file that does not exist. If it exists meanwhile, it stays, and
// the error is as of TemporaryFile.Create.
func (p Part) CreateFile(ctx context.Context, name string, content []byte) error {
	t, err := p.NewTemporary(ctx, name)
	if err != nil {
		return err
	}
	defer t.Discard()
	if _, err := t.Write(content); err != nil {
		return err
	}
	_, err = t.Create(ctx, name)
	return err
}

// NewTemporary begins a file that will have the given name, a path in the part, and makes
// the folders that are missing. On the local disk a lock tells other instances that the file
// is no leftover, however slowly it arrives. The error is ErrReplaced, a StorageError, or
// the error of ctx.
func (p Part) NewTemporary(ctx context.Context, name string) (TemporaryFile, error) {
	return p.storage().NewTemporary(ctx, name)
}

// Move gives a file another name, and makes the folder of that name. It replaces a file of
// that name. The error is a StorageError.
func (p Part) Move(from, to string) error { return StorageError(p.storage().Move(from, to)) }

// Remove removes a file, or a symlink itself. A file that does not exist is no error. The
// error has no path, and StorageError says what to do about it.
func (p Part) Remove(name string) error {
	if err := p.storage().Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return WithoutPath(err)
	}
	return nil
}

// RemoveAll removes a file or a folder that no scan reads, with all files below it. The error
// is a StorageError.
func (p Part) RemoveAll(name string) error { return StorageError(p.storage().RemoveAll(name)) }

// RemoveIfEmpty removes a folder if it is empty, and reports whether it did. In a storage that is
// not Local a folder without files does not exist, and no request has to find that out.
func (p Part) RemoveIfEmpty(dir string) (removed bool) {
	if _, ok := p.local(); !ok {
		return false
	}
	names, err := p.storage().ReadNames(dir)
	return err == nil && len(names) == 0 && p.storage().Remove(dir) == nil
}

// InstallFolder moves a complete folder to the folder of a version, both paths in the part,
// so that readers of the tree see all of it or nothing. from has the whole release, with a
// SHA256SUMS of the name last, and to must not exist. Where files cannot be moved, from is
// still there afterwards, and copied has the files in to, by name. If that is interrupted, the
// folder is an incomplete upload (IsIncompleteUpload), which the same call completes. The error
// is ErrInTheWay, or a StorageError, such as ErrReserved for a folder that another process may
// be about to fill.
func (p Part) InstallFolder(ctx context.Context, from, to, last string) (copied map[string]fs.FileInfo, err error) {
	return p.storage().Install(ctx, from, to, last)
}

// InstallDocuments is InstallFolder for small documents by name, the last one among them.
// Only registries write such a folder, so an incomplete upload of others is replaced.
func (p Part) InstallDocuments(ctx context.Context, documents map[string][]byte, to, last string) error {
	return p.storage().InstallDocuments(ctx, documents, to, last)
}

// ReplaceFolder makes documents the content of a folder.
// On a disk readers see either content whole, and for a moment between two renames no folder.
// aside is a path in the part for files on their way: removing what begins with it cleans up
// after a crash. In a Bucket readers may see files of both contents for a moment, and always
// see files that both have. If it is interrupted, the same call completes it. The error is a
// StorageError.
func (p Part) ReplaceFolder(ctx context.Context, documents Documents, dir, aside string) error {
	return StorageError(p.storage().ReplaceFolder(ctx, documents, dir, aside))
}

// RemoveFolder removes a version's folder, at once for all readers of the tree. first is the
// name of its SHA256SUMS. Neither need exist. The error is a StorageError.
func (p Part) RemoveFolder(ctx context.Context, dir, first string) error {
	return StorageError(p.storage().RemoveFolder(ctx, dir, first))
}

// RemoveUnfinished removes the files that an interrupted InstallFolder has left. If they are
// of the release with this SHA256SUMS, it removes them immediately. It removes the files of
// another release only if no file has been added to the folder for as long as an upload
// takes between two files. Until then the error is ErrReserved, since an operator may be
// copying the folder of another Bucket. If the release is whole, the error is ErrInTheWay.
// last is the name of its SHA256SUMS, and content is nil if it is not known.
func (p Part) RemoveUnfinished(ctx context.Context, dir, last string, content []byte) error {
	return p.storage().RemoveUnfinished(ctx, dir, last, content)
}

// RemoveTemporaries removes the temporary files that killed instances have left in a folder
// and in its subfolders down to depth, and returns their number. It keeps files that are
// locked or were written to recently.
func (p Part) RemoveTemporaries(ctx context.Context, dir string, depth int) (removed int) {
	return p.storage().RemoveTemporaries(ctx, dir, depth)
}

// SignsURLs reports whether the files lie in a store that can serve them.
func (p Part) SignsURLs() bool {
	_, ok := p.Storage.(Signer)
	return ok
}

// CheckObject returns ErrChanged if a file in a store does not have the stamp any more, and
// ErrEncoded if clients would not get its bytes from the store.
func (p Part) CheckObject(name string, s Stamp) error {
	info, err := p.Storage.(Signer).StatNow(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrChanged
	case err != nil:
		return err
	case StampOf(info) != s:
		return ErrChanged
	case isEncoded(info):
		return ErrEncoded
	}
	return nil
}

// isEncoded reports whether clients that get a file from its store decode it on the way, as
// Go's do with gzip. No client decodes aws-chunked, the form of an upload, which some stores
// keep.
func isEncoded(info fs.FileInfo) bool {
	encoded, ok := info.(interface{ ContentEncoding() string })
	if !ok {
		return false
	}
	for coding := range strings.SplitSeq(encoded.ContentEncoding(), ",") {
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "", "identity", "aws-chunked":
		default:
			return true
		}
	}
	return false
}

// SignedURL returns a URL at which the store gives a file to anyone during its life.
func (p Part) SignedURL(ctx context.Context, name string, life time.Duration) (string, error) {
	return p.Storage.(Signer).SignedURL(ctx, name, life)
}
