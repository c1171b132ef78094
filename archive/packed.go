package archive

import (
	"bytes"
	"errors"
	"io"
	"path"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A module folder and an unpacked provider package are served as archives that are never
// written to disk: their bytes are computed from the files in the folder whenever they are
// read (modulepack.go, packagefolder.go). Finding the files, noticing that one has
// changed, and reading across them is the same for both.

// A File is a file of such a folder, with the information from the walk.
type File struct {
	Name    string // in the archive
	Path    string // in its part of the tree
	Size    int64
	modTime int64 // nanoseconds
	inode   uint64
	changed int64 // nanoseconds: when its inode was last changed

	byMode     bool // executable according to its mode
	executable bool // executable in a module package, by its mode or its content
}

// Stamp returns the stamp of the file at the time of the walk.
func (f *File) Stamp() tree.Stamp {
	return tree.Stamp{Size: f.Size, ModTime: f.modTime, Inode: f.inode, Changed: f.changed}
}

// Limits of a folder that is packed.
const (
	maxFolderFiles = 10_000 // and as many folders
	maxFolderDepth = 32
)

// packingRules decide which files of a folder are packed.
type packingRules interface {
	// begin takes the entries of the folder itself.
	begin(p tree.Part, entries []tree.Entry) *tree.Finding

	// leavesOut reports whether an entry is not packed. name is its path in the archive, in
	// is the match of the folder around it, and within is its own match if it is a folder.
	leavesOut(e tree.Entry, name string, in folderMatch) (leftOut bool, within folderMatch, bad *tree.Finding)
}

// walkPacked finds the files of a folder to pack, ordered by their path in the archive. It
// calls visit for each folder before reading it.
func walkPacked(p tree.Part, dir string, rules packingRules, visit func(dir string)) ([]File, *tree.Finding) {
	var files []File
	folders := 0
	var walk func(dir, prefix string, depth int, in folderMatch) *tree.Finding
	walk = func(dir, prefix string, depth int, in folderMatch) *tree.Finding {
		if depth > maxFolderDepth {
			return tree.Findingf(tree.TooLarge, "it is deeper than %d folders: is there a symlink to a parent?", maxFolderDepth)
		}
		if folders++; folders > maxFolderFiles { // two symlinks to a parent double them at every level
			return tree.Findingf(tree.TooLarge, "it has more than %d folders: is there a symlink to a parent?", maxFolderFiles)
		}
		visit(dir)
		entries, err := p.List(dir)
		if err != nil {
			return tree.AsFinding(err)
		}
		if depth == 0 {
			if f := rules.begin(p, entries); f != nil {
				return f
			}
		}
		for _, e := range entries {
			name := path.Join(prefix, e.Name)
			leftOut, within, f := rules.leavesOut(e, name, in)
			switch {
			case f != nil:
				return f
			case leftOut:
				continue
			case e.Bad != nil:
				return e.Bad.Inside(name)
			case e.Info.IsDir():
				if f := walk(e.Path(), name, depth+1, within); f != nil {
					return f
				}
				continue
			case !e.Info.Mode().IsRegular():
				return tree.Findingf(tree.Unreadable, "%q in it is not a regular file: remove it", name)
			}
			s := tree.StampOf(e.Info)
			files = append(files, File{
				Name: name, Path: e.Path(), Size: s.Size, modTime: s.ModTime, inode: s.Inode, changed: s.Changed,
				byMode: p.IsExecutable(e.Info),
			})
			if len(files) > maxFolderFiles {
				return tree.Findingf(tree.TooLarge, "it has more than %d files: is there a symlink to a parent?", maxFolderFiles)
			}
		}
		return nil
	}
	bad := walk(dir, "", 0, folderMatch{})
	return files, bad
}

// stampFolder returns the stamp of the files in a folder, and of how their modes are found.
func stampFolder(files []File) tree.Stamp {
	var s tree.FolderStamp
	for _, f := range files {
		name := f.Name
		if f.byMode {
			name += "\x00mode"
		}
		s.Add(name, f.Stamp())
	}
	return s.Stamp()
}

func firstFile(files []File) string {
	if len(files) == 0 {
		return ""
	}
	return files[0].Path
}

// filesUnchanged returns tree.ErrChanged if a file has changed since it was packed. Listing
// a folder costs a fraction of opening every file in it.
func filesUnchanged(p tree.Part, files []File) error {
	stamps := make(map[string]tree.Stamp, len(files)) // stamps of all entries in the listed folders
	listed := make(map[string]bool)
	for i := range files {
		file := &files[i]
		if dir := path.Dir(file.Path); !listed[dir] {
			listed[dir] = true
			entries, err := p.Entries(dir)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if e.Bad == nil {
					stamps[e.Path()] = tree.StampOf(e.Info)
				}
			}
		}
		if s, ok := stamps[file.Path]; ok && s == file.Stamp() {
			continue
		}
		f, err := p.OpenUnchanged(file.Path, file.Stamp()) // OpenUnchanged knows which fields of a stamp count
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

// A Packed is the archive computed from a folder.
type Packed interface {
	// Files returns the files in the archive.
	Files() []File

	// Open opens the archive of a folder in a part of the tree. Reading fails with
	// ErrChanged when a file that is read has changed.
	Open(part tree.Part) PackedReader
}

// OpenPacked opens the archive of a folder, which has a size in bytes, for a caller that
// reads all of it. The error is tree.ErrChanged if a file in the folder has changed.
func OpenPacked(p Packed, part tree.Part, size int64) (PackedReader, error) {
	if size <= maxBuffered {
		return bufferPacked(p, part, size)
	}
	if err := filesUnchanged(part, p.Files()); err != nil {
		return PackedReader{}, err
	}
	return p.Open(part), nil
}

// maxBuffered is the size in bytes up to which an archive is packed into memory before it is
// served. Nearly all modules are smaller, and a slow client does not cost much memory. If a
// file of the folder is removed meanwhile, the caller gets ErrChanged instead of an answer
// that breaks off.
const maxBuffered = 256 << 10

func bufferPacked(p Packed, part tree.Part, size int64) (PackedReader, error) {
	r := p.Open(part)
	defer r.Close()
	content := make([]byte, size)
	if _, err := io.ReadFull(r, content); err != nil {
		return PackedReader{}, err
	}
	if err := r.Unchanged(); err != nil {
		return PackedReader{}, err
	}
	return PackedReader{SectionReader: io.NewSectionReader(bytes.NewReader(content), 0, size)}, nil
}

// A PackedReader is the archive of a folder, opened for reading.
type PackedReader struct {
	*io.SectionReader
	folder *folderReader // nil if the archive is in memory
}

// Close closes the file of the folder that was read last.
func (r PackedReader) Close() error {
	if r.folder == nil {
		return nil
	}
	return r.folder.Close()
}

// Unchanged returns tree.ErrChanged if the bytes read may mix two contents of a file.
func (r PackedReader) Unchanged() error {
	if r.folder == nil {
		return nil
	}
	return r.folder.unchanged()
}

// A folderReader reads the files of a folder for the archive computed from it. It
// serves one reader at a time.
type folderReader struct {
	part     tree.Part
	current  afero.File // the file that was read last, kept open for the next read
	path     string     // of current
	verified tree.Stamp // of current
}

func (r *folderReader) Close() error {
	if r.current == nil {
		return nil
	}
	return r.current.Close()
}

func (r *folderReader) openFile(file *File) (err error) {
	if r.current != nil && r.path == file.Path {
		return nil
	}
	if err := r.unchanged(); err != nil {
		return err
	}
	r.Close()
	r.path, r.verified = file.Path, file.Stamp()
	r.current, err = r.part.OpenUnchanged(file.Path, r.verified)
	return err
}

// unchanged returns ErrChanged if the file that was read last has been written to since it
// was opened. The files before it were checked when the next file was opened.
func (r *folderReader) unchanged() error {
	if r.current == nil {
		return nil
	}
	info, err := r.current.Stat()
	if err != nil {
		return err
	}
	if !r.part.SameFile(r.path, tree.StampOf(info), r.verified) {
		return tree.ErrChanged
	}
	return nil
}

// readContent reads from the content of a file. The error is ErrChanged if the file has
// changed since it was packed.
func (r *folderReader) readContent(p []byte, file *File, offset int64) (int, error) {
	if err := r.openFile(file); err != nil {
		return 0, err
	}
	n, err := r.current.ReadAt(p[:min(int64(len(p)), file.Size-offset)], offset)
	if n <= 0 && err != nil {
		if errors.Is(err, io.EOF) {
			err = tree.ErrChanged // the file is shorter than before
		}
		return 0, err
	}
	return n, nil
}

// isExecutable reports whether a file with this beginning is a script, or a
// program for Linux, a BSD or macOS.
func isExecutable(start []byte) bool {
	if len(start) >= 2 && string(start[:2]) == "#!" {
		return true
	}
	if len(start) < 8 {
		return false
	}
	switch string(start[:4]) {
	case "\x7fELF", "\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe":
		return true
	case "\xca\xfe\xba\xbe", "\xca\xfe\xba\xbf":
		// A universal binary, followed by the number of its architectures. Java
		// classes begin with the same bytes, followed by a version of at least 45.
		return string(start[4:7]) == "\x00\x00\x00" && start[7] < 45
	}
	return false
}

// changedWhileRead turns ErrChanged into the finding for a folder that changed during the
// scan.
func changedWhileRead(err error) error {
	if errors.Is(err, tree.ErrChanged) {
		return tree.Findingf(tree.BeingWritten, "it is still being written")
	}
	return err
}
