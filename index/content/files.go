package content

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Bounds of a list of files.
const (
	maxListed   = 10_000 // files
	maxFilePath = 1 << 10
)

// Files are the files of a module's package.
type Files struct {
	List []ListedFile // by path

	// Partial: the package has more files, or more bytes, than are read.
	Partial bool
}

// A ListedFile is a file of a module's package.
type ListedFile struct {
	Path string // from the root module, with slashes
	Size int64
	Sum  wire.SHA256 // of the content
}

// Size estimates how many bytes of memory the list takes.
func (f *Files) Size() int {
	size := 100
	for i := range f.List {
		size += 64 + len(f.List[i].Path)
	}
	return size
}

// File returns the file at a path, or nil if there is none.
func (f *Files) File(name string) *ListedFile {
	at, found := slices.BinarySearchFunc(f.List, name, byPath)
	if !found {
		return nil
	}
	return &f.List[at]
}

func byPath(f ListedFile, name string) int { return cmp.Compare(f.Path, name) }

// Below returns the files in a folder and in the folders in it; all files for the root,
// whose path is empty.
func (f *Files) Below(folder string) []ListedFile {
	if folder == "" {
		return f.List
	}
	first, _ := slices.BinarySearchFunc(f.List, folder+"/", byPath)
	last, _ := slices.BinarySearchFunc(f.List, folder+"0", byPath) // the character after the slash
	return f.List[first:last]
}

// ListModule lists the files of a module's package, with what tells their contents apart.
// It reads the package unless that has been done: the list is kept by the digest of the
// package, as Describe keeps what it has read.
func (r *Reader) ListModule(ctx context.Context, m Module) (*Files, error) {
	return r.files.get(ctx, m.Digest, nil, func(ctx context.Context, _ *Files) (*Files, error) {
		l := lister{folder: m.Folder, left: MaxUnpacked, at: make(map[string]int)}
		complete, err := m.Walk(ctx, l.wants, l.add)
		if err != nil {
			return nil, err
		}
		l.found.Partial = l.found.Partial || !complete
		slices.SortFunc(l.found.List, func(a, b ListedFile) int { return cmp.Compare(a.Path, b.Path) })
		return &l.found, nil
	})
}

// A lister gathers the files of a package.
type lister struct {
	folder string
	found  Files
	at     map[string]int // the place of each path in the list
	left   int64          // how many bytes are still read
}

// pathOf returns the path of a member of the package from the root module. It is empty for
// a member outside of it, and for names that no page could have.
func (l *lister) pathOf(name string) string {
	name = path.Clean(name)
	if len(name) > maxFilePath || !fs.ValidPath(name) || !utf8.ValidString(name) || strings.ContainsRune(name, 0) || name == "." {
		return ""
	}
	if l.folder == "" {
		return name
	}
	rest, ok := strings.CutPrefix(name, l.folder+"/")
	if !ok {
		return ""
	}
	return rest
}

func (l *lister) wants(name string) bool {
	p := l.pathOf(name)
	if p == "" {
		return false
	}
	if _, known := l.at[p]; !known && len(l.found.List) == maxListed || l.left <= 0 {
		l.found.Partial = true
		return false
	}
	return true
}

// add lists a file. A later one of the same name replaces it, as when clients unpack the
// package.
func (l *lister) add(name string, content io.Reader) error {
	hash := sha256.New()
	size, err := tree.HashFile(hash, io.LimitReader(content, l.left))
	if err != nil {
		return err
	}
	if l.left -= size; l.left <= 0 {
		l.found.Partial = true // the size of this file is not known
		return nil
	}
	f := ListedFile{Path: strings.Clone(l.pathOf(name)), Size: size, Sum: wire.SHA256(hash.Sum(nil))}
	if at, twice := l.at[f.Path]; twice {
		l.found.List[at] = f
		return nil
	}
	l.at[f.Path] = len(l.found.List)
	l.found.List = append(l.found.List, f)
	return nil
}
