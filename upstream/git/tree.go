package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// A Mode is the kind of a file in a tree.
type Mode string

// The modes of special files.
const (
	Executable Mode = "100755"
	Symlink    Mode = "120000"
	Submodule  Mode = "160000" // the object is a commit of another repository
	Folder     Mode = "040000" // returned by Entry
)

// A File is an entry of a tree that is not a tree itself.
type File struct {
	Mode   Mode
	Object string
	Name   string // its path, with slashes
}

// A Tree is a folder at a commit.
type Tree struct {
	Object string

	// Files in the folder and in the folders below, including submodules. Empty if the
	// tree is refused.
	Files   []File
	Refused Refusals
}

// A Reason says why a file cannot be written.
type Reason int

// The reasons to refuse a file.
const (
	BadName      Reason = iota // it would be outside of the folder, is git's own file, or too long
	TooManyFiles               // in the folder; Name is empty
	SymlinkOut                 // to Target, which is outside of the folder
	LongSymlink                // to a name of more than MaxSymlink bytes
)

// A Refusal says why a file cannot be written.
type Refusal struct {
	Reason Reason
	Name   string // of the file
	Target string // of a symlink
}

// Refusals say why a tree cannot be written. There are only as many as its authors need
// to correct it.
type Refusals []Refusal

const maxRefusals = 10

func (l *Refusals) add(r Refusal) {
	if len(*l) < maxRefusals {
		*l = append(*l, r)
	}
}

// Tree reads the names in a tree, and refuses it if it has more than maxFiles.
func (r *Repository) Tree(ctx context.Context, object string, maxFiles int) (*Tree, error) {
	t := &Tree{Object: object}
	errTooMany := errors.New("too many files")
	n := 0
	take := func(record string) error {
		if n++; n > maxFiles {
			return errTooMany
		}
		// MODE TYPE OBJECT, a tab, and the name
		entry, name, _ := strings.Cut(record, "\t")
		fields := strings.Fields(entry)
		if len(fields) != 3 || name == "" {
			return r.damaged("git ls-tree printed %s, which is no entry of a tree", printable(record))
		}
		if isFileName(name) {
			t.Files = append(t.Files, File{Mode: Mode(fields[0]), Object: fields[2], Name: name})
		} else {
			t.Refused.add(Refusal{Reason: BadName, Name: name})
		}
		return nil
	}
	err := r.records(ctx, 0, nil, take, "ls-tree", "-r", "-z", "--full-tree", "--end-of-options", object)
	if errors.Is(err, errTooMany) {
		t.Refused.add(Refusal{Reason: TooManyFiles})
		err = nil
	}
	if len(t.Refused) > 0 {
		t.Files = nil
	}
	return t, err
}

// Entry returns the file or folder at a path of a commit. ok is false if there is none,
// or if its name is refused. f is then the symlink, file or submodule in place of a
// folder above it, if there is one. The caller closes the repository.
func (r *Repository) Entry(ctx context.Context, commit, name string) (f File, ok bool, err error) {
	if name != "" && !isFileName(name) {
		return f, false, nil
	}
	in, err := r.folder(ctx, commit+"^{tree}")
	if in == nil || err != nil {
		return f, false, err
	}
	if f = (File{Folder, in.id, ""}); name == "" {
		return f, true, nil
	}
	end := 0
	for segment := range strings.SplitSeq(name, "/") {
		if f.Mode != Folder {
			return f, false, nil
		}
		if in, err = r.folder(ctx, f.Object); err != nil {
			return f, false, err
		}
		if in == nil {
			return f, false, r.damaged("it lacks a folder: check it with git fsck")
		}
		if f, ok = in.entries[segment]; !ok {
			return f, false, nil
		}
		end += len(segment)
		f.Name = name[:end]
		end++ // the slash
	}
	return f, true, nil
}

// Submodules returns the URLs of a commit's submodules, unchanged from .gitmodules, by
// path. The error is a DamagedError if the file is not in git's form, or if its size
// exceeds maxBytes.
func (r *Repository) Submodules(ctx context.Context, commit string, maxBytes int64) (map[string]string, error) {
	entry, ok, err := r.Entry(ctx, commit, ".gitmodules")
	if err != nil || !ok || entry.Mode == Folder || entry.Mode == Symlink || entry.Mode == Submodule {
		return nil, err
	}
	if err := r.FetchContents(ctx, []string{entry.Object}); err != nil {
		return nil, err
	}
	var content []byte
	if err := r.contents(ctx, []File{entry}, func(_ File, size int64, c io.Reader) (err error) {
		if size > maxBytes {
			return r.damaged("its .gitmodules has more than %d bytes", maxBytes)
		}
		content, err = io.ReadAll(c)
		return err
	}); err != nil {
		return nil, err
	}
	paths, urls := make(map[string]string), make(map[string]string) // by name
	take := func(record string) error {
		key, value, _ := strings.Cut(record, "\n")
		key = strings.TrimPrefix(key, "submodule.")
		if name, is := strings.CutSuffix(key, ".path"); is && isFileName(value) {
			paths[name] = value
		} else if name, is := strings.CutSuffix(key, ".url"); is {
			urls[name] = value
		}
		return nil
	}
	err = r.records(ctx, 0, bytes.NewReader(content), take, "config", "--file=-", "--no-includes", "-z", "--get-regexp", `^submodule\..*\.(path|url)$`)
	switch {
	case exitStatus(err) == 1: // no such keys
		return nil, nil
	case failedWith(err, "bad config"):
		return nil, r.damaged("git cannot read its .gitmodules")
	case err != nil:
		return nil, err
	}
	submodules := make(map[string]string)
	for name, at := range paths {
		if url, ok := urls[name]; ok {
			submodules[at] = url
		}
	}
	return submodules, nil
}

// The limits of a name in a tree. A longer name cannot be written on some systems, and
// each use of deeper folders takes long.
const (
	maxName    = 1 << 10 // bytes
	maxSegment = 255     // bytes
	maxDepth   = 100     // folders
)

// isFileName reports whether a name in a tree is the name of a file in its folder. Git
// itself does not make trees with other names, such as .git: the configuration in that
// folder would be run by everyone who uses git in it. Some file systems ignore case,
// and git~1 is the short name of .git on Windows.
func isFileName(name string) bool {
	if len(name) > maxName || strings.Count(name, "/") > maxDepth || !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if len(segment) > maxSegment || strings.EqualFold(segment, ".git") || strings.EqualFold(segment, "git~1") {
			return false
		}
	}
	return true
}

// A MissingError means that contents are not in a user's repository, as after a partial
// clone.
type MissingError struct{ Object string }

func (e *MissingError) Error() string {
	return "the content of " + e.Object + " is not in the repository"
}

// FetchContents fetches the missing contents of objects, which are trees and files, all
// at once, since git itself would fetch file by file. Nothing is fetched into a user's
// repository. The error is then a MissingError.
func (r *Repository) FetchContents(ctx context.Context, objects []string) error {
	objects = slices.DeleteFunc(slices.Clone(objects), func(object string) bool { return r.whole[object] })
	if len(objects) == 0 {
		return nil
	}
	if err := r.fetchMissing(ctx, objects); err != nil {
		return err
	}
	for _, object := range objects {
		r.whole[object] = true
	}
	return nil
}

func (r *Repository) fetchMissing(ctx context.Context, objects []string) error {
	var missing []string
	there := make(map[string]bool)
	take := func(line string) error {
		object, is := strings.CutPrefix(line, "?")
		if is {
			missing = append(missing, object)
		}
		object, _, _ = strings.Cut(object, " ")
		there[object] = true
		return nil
	}
	// Versions of git before 2.45 do not print that a named object is missing.
	if err := r.lines(ctx, list(objects), take, "rev-list", "--objects", "--missing=print", "--ignore-missing", "--stdin"); err != nil {
		return err
	}
	for _, object := range objects {
		if !there[object] {
			there[object] = true
			missing = append(missing, object)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if !r.fetches {
		return &MissingError{missing[0]}
	}
	err := r.fetch(ctx, missing, withoutContents)
	if failedWith(err, refusesIDs...) {
		// The server sends contents only together with all other contents of a commit.
		return r.fetch(ctx, r.thin, "--depth=1", "--no-filter", "--refetch")
	}
	return err
}
