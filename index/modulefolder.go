package index

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// packedFile is a file of a module folder as the walk found it.
type packedFile struct {
	name    string // in the archive
	path    string // in its part of the tree
	size    int64
	modTime int64 // nanoseconds
	inode   uint64
	changed int64 // nanoseconds: when its inode was last changed

	byMode     bool // its mode says it can be executed
	executable bool // in the package, by its mode or its content
}

func (f *packedFile) stamp() stamp {
	return stamp{size: f.size, modTime: f.modTime, inode: f.inode, changed: f.changed}
}

const (
	maxFolderFiles = 10_000 // and folders
	maxFolderDepth = 32
)

// walkFolder finds the files of a module folder that are packed, ordered by
// their path in the archive, and what is left out of it. It calls visit for each
// folder before it reads it.
func (p Part) walkFolder(dir string, visit func(dir string)) (files []packedFile, left *nameList, f *finding) {
	var rules *ignoreRules
	var folders int
	left = &nameList{}
	ignoring := func(err error) *finding {
		f := asFinding(err)
		return found(f.reason, "%q in it: %s", ignoreName, f.detail)
	}
	var walk func(dir, prefix string, depth int, in folderMatch) *finding
	walk = func(dir, prefix string, depth int, in folderMatch) *finding {
		if depth > maxFolderDepth {
			return found(TooLarge, "it is deeper than %d folders: is there a symlink to a parent?", maxFolderDepth)
		}
		if folders++; folders > maxFolderFiles { // two symlinks to a parent double them at every level
			return found(TooLarge, "it has more than %d folders: is there a symlink to a parent?", maxFolderFiles)
		}
		visit(dir)
		entries, err := p.list(dir)
		if err != nil {
			return asFinding(err)
		}
		if depth == 0 {
			if rules, err = p.findIgnoreRules(entries); err != nil {
				return ignoring(err)
			}
		}
		for _, e := range entries {
			name := path.Join(prefix, e.name)
			isFolder := e.bad == nil && e.info.IsDir()
			ignored := isLeftOut(e.name) // whatever it is, also a symlink to nothing
			var within folderMatch
			switch {
			case ignored:
			case isFolder:
				ignored, within, err = rules.ignoresFolder(name, in)
			default:
				ignored, err = rules.ignoresFile(name, in)
			}
			if err != nil {
				return ignoring(err)
			}
			switch {
			case ignored:
				left.add(name)
				continue
			case e.bad != nil:
				return found(e.bad.reason, "%q in it: %s", name, e.bad.detail)
			case isFolder:
				if f := walk(e.path, name, depth+1, within); f != nil {
					return f
				}
				continue
			case !e.info.Mode().IsRegular():
				return found(Unreadable, "%q in it is not a regular file: remove it", name)
			}
			is := stampOf(e.info)
			if files = append(files, packedFile{
				name: name, path: e.path, size: is.size, modTime: is.modTime, inode: is.inode, changed: is.changed,
				byMode: !p.named() && e.info.Mode()&0o111 != 0,
			}); len(files) > maxFolderFiles {
				return found(TooLarge, "it has more than %d files: is there a symlink to a parent?", maxFolderFiles)
			}
		}
		return nil
	}
	f = walk(dir, "", 0, folderMatch{})
	trustModes(files)
	return files, left, f
}

// findIgnoreRules reads the .terraformignore among the entries of a folder's root.
func (p Part) findIgnoreRules(entries []entry) (*ignoreRules, error) {
	for _, e := range entries {
		switch {
		case e.name != ignoreName:
		case e.bad != nil:
			return nil, e.bad
		default:
			return p.readIgnoreRules(e.path)
		}
	}
	return nil, nil
}

// trustModes takes the bits of modes for nothing if all files have them: that is
// how file systems without modes look, as of Windows or of a memory stick.
//
// So whether a file is executable in the package depends on its content alone
// where file systems or version control keep no modes, and on its mode too where
// they do. A folder has the same package on all machines of one kind, and on
// machines of both kinds if what is executable begins like a script or a program.
func trustModes(files []packedFile) {
	for i := range files {
		if !files[i].byMode {
			return
		}
	}
	for i := range files {
		files[i].byMode = false
	}
}

// stampFolder tells whether anything in a folder can have changed. Its time is
// the newest of its files.
func stampFolder(files []packedFile) stamp {
	var s stamp
	h := sha256.New()
	for _, f := range files {
		s.size += f.size
		s.modTime, s.changed = max(s.modTime, f.modTime), max(s.changed, f.changed)
		fmt.Fprintf(h, "%s\x00%d %d %d %d %t\n", f.name, f.size, f.modTime, f.inode, f.changed, f.byMode)
	}
	s.files = wire.SHA256(h.Sum(nil))
	return s
}

// readFolder reads the beginning of each file of a folder, and then its packing
// to the end.
func readFolder(ctx context.Context, a *archive) (digest, error) {
	if err := a.part.inspectFiles(ctx, a.folder); err != nil {
		return digest{}, changedWhileRead(err)
	}
	k, err := packFolder(a.folder)
	if err != nil {
		return digest{}, err
	}
	r := &packingReader{packing: k, folderReader: folderReader{part: a.part}, crc: true}
	defer r.Close()
	sum, err := digestFile(ctx, io.NewSectionReader(pacedReaderAt{r, a}, 0, k.size()))
	if err != nil {
		return digest{}, changedWhileRead(err)
	}
	a.packing = k
	return digest{sha256: sum, size: k.size(), checksum: k.checksum, content: executables(a.folder)}, nil
}

// inspectFiles finds out which files are executable, and refuses a folder with a
// secret in it.
func (p Part) inspectFiles(ctx context.Context, files []packedFile) error {
	buffer := make([]byte, inspectSize)
	for i := range files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading ended: %w", err)
		}
		start, err := p.startOf(&files[i], buffer)
		if err != nil {
			return err
		}
		if kind := secretByContent(start, files[i].size); kind != "" {
			return found(Secret, "%q in it holds %s, which everyone who downloads the module would get: remove it, or name it in the folder's %s", files[i].name, kind, ignoreName)
		}
		files[i].executable = files[i].byMode || isExecutable(start)
	}
	return nil
}

func (p Part) startOf(file *packedFile, buffer []byte) ([]byte, error) {
	f, err := p.openUnchanged(file.path, file.stamp())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readStart(f, buffer)
}

// isExecutable reports whether a file that begins like this is a script, or a
// program of Linux, of a BSD or of macOS.
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
		// For several machines, whose number follows. Java's classes begin with
		// the same bytes and then have a version, of 45 or more.
		return string(start[4:7]) == "\x00\x00\x00" && start[7] < 45
	}
	return false
}

// executables is one bit for each file, which the memo remembers: the first bytes
// of files need not be read again to pack them.
func executables(files []packedFile) []byte {
	bits := make([]byte, (len(files)+7)/8)
	for i, f := range files {
		if f.executable {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return bits
}

// recallExecutables is the reverse.
func recallExecutables(files []packedFile, bits []byte) {
	for i := range files {
		files[i].executable = i/8 < len(bits) && bits[i/8]&(1<<(i%8)) != 0
	}
}

// changedWhileRead tells a folder that changed during the scan from one that
// cannot be read.
func changedWhileRead(err error) error {
	if errors.Is(err, ErrChanged) {
		return found(BeingWritten, "it is still being written")
	}
	return err
}
