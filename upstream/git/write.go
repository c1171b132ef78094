package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// The files of a commit are read from git's objects. A checkout and `git archive` have
// other contents: they convert line ends and keywords, apply configured filters, and
// leave files out according to .gitattributes. So the package of a commit would depend
// on the machine that makes it.

// ErrTooLarge means that files have more bytes than may be written.
var ErrTooLarge = errors.New("too many bytes")

// A Writer writes files of repositories to folders.
type Writer struct {
	Left int64 // number of bytes that may still be written
}

// Write writes files to a folder, or returns why they are refused. The written files
// must then be discarded. Submodules become empty folders, as in git. A symlink to a
// file in the folder is kept. A symlink that leads out is refused, since its target may
// be another module or a file of this machine. The error is ErrTooLarge if more than
// w.Left bytes would be written.
func (w *Writer) Write(ctx context.Context, from *Repository, files []File, folder string) (Refusals, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Nothing is written through a symlink: symlinks come last, and a symlink that is
	// there already does not count as a folder.
	made := map[string]bool{".": true}
	var symlinks []File
	var targets []string
	var refused Refusals
	take := func(f File, size int64, content io.Reader) error {
		if w.Left -= size; w.Left < 0 {
			return ErrTooLarge
		}
		if f.Mode != Symlink {
			return from.writeFile(root, made, f, content, size)
		}
		target, refusal, err := readSymlink(f, content, size)
		if refusal != nil {
			refused.add(*refusal)
		}
		symlinks, targets = append(symlinks, f), append(targets, target)
		return err
	}
	if err := from.contents(ctx, files, take); err != nil || len(refused) > 0 {
		return refused, err
	}
	for _, f := range files {
		if f.Mode == Submodule {
			if err := makeFolder(root, made, f.Name); err != nil {
				return nil, from.notWritten(f.Name, err)
			}
		}
	}
	for i, f := range symlinks {
		if err := makeFolder(root, made, path.Dir(f.Name)); err != nil {
			return nil, from.notWritten(f.Name, err)
		}
		if err := root.Symlink(targets[i], f.Name); err != nil {
			return nil, from.notWritten(f.Name, err)
		}
	}
	return nil, nil
}

// contents passes the content of each file to take, with its size in bytes. Bytes that
// take does not read are skipped. Submodules are skipped, too, since they have no
// content.
func (r *Repository) contents(ctx context.Context, files []File, take func(f File, size int64, content io.Reader) error) error {
	var with []File
	var objects []string
	for _, f := range files {
		if f.Mode != Submodule {
			with, objects = append(with, f), append(objects, f.Object)
		}
	}
	if len(objects) == 0 {
		return nil
	}
	split := func(output *bufio.Reader) error {
		for _, f := range with {
			size, err := r.size(output, f)
			if err != nil {
				return err
			}
			content := io.LimitReader(output, size)
			if err := take(f, size, content); err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, content); err != nil {
				return err
			}
			if _, err := output.Discard(1); err != nil { // the line break after it
				return noEOF(err)
			}
		}
		return nil
	}
	return r.read(ctx, list(objects), split, "cat-file", "--batch")
}

// size reads the line before the content of a file: OBJECT blob SIZE.
func (r *Repository) size(output *bufio.Reader, f File) (int64, error) {
	line, err := output.ReadString('\n')
	if err != nil {
		return 0, noEOF(err)
	}
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[1] != "blob" {
		return 0, r.damaged("%s is not a file in it: check it with git fsck", printable(f.Name))
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size < 0 {
		return 0, r.damaged("git says that %s has %s bytes", printable(f.Name), printable(fields[2]))
	}
	return size, nil
}

// MaxSymlink is the maximum length of a symlink's target, in bytes, as in systems.
const MaxSymlink = 4 << 10

// readSymlink reads the target of a symlink as it is written, or returns a refusal if
// the target is outside of the folder.
func readSymlink(f File, content io.Reader, size int64) (written string, refused *Refusal, err error) {
	if size > MaxSymlink {
		return "", &Refusal{Reason: LongSymlink, Name: f.Name}, nil
	}
	b, err := io.ReadAll(content)
	if err != nil {
		return "", nil, err
	}
	written = string(b)
	if at := path.Join(path.Dir(f.Name), written); written == "" || path.IsAbs(written) || !fs.ValidPath(at) {
		return "", &Refusal{Reason: SymlinkOut, Name: f.Name, Target: written}, nil
	}
	return written, nil, nil
}

// makeFolder makes a folder and the folders above it, which must not be symlinks.
func makeFolder(root *os.Root, made map[string]bool, name string) error {
	if made[name] {
		return nil
	}
	if err := makeFolder(root, made, path.Dir(name)); err != nil {
		return err
	}
	if err := root.Mkdir(name, 0o700); err != nil {
		if info, known := root.Lstat(name); known != nil || !info.IsDir() {
			return err
		}
	}
	made[name] = true
	return nil
}

// writeFile writes a file. Git's modes only say whether a file is executable.
func (r *Repository) writeFile(root *os.Root, made map[string]bool, f File, content io.Reader, size int64) error {
	if err := makeFolder(root, made, path.Dir(f.Name)); err != nil {
		return r.notWritten(f.Name, err)
	}
	mode := fs.FileMode(0o644)
	if f.Mode == Executable {
		mode = 0o755
	}
	w, err := root.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return r.notWritten(f.Name, err)
	}
	n, err := io.Copy(w, content)
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	return errors.Join(err, w.Close())
}

// notWritten returns the error for a file that could not be written. Two files of one
// name are the fault of the repository, all other errors are the disk's.
func (r *Repository) notWritten(name string, err error) error {
	for _, taken := range []error{fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR} {
		if errors.Is(err, taken) {
			return r.damaged("%s cannot be written: there is a file of that name, or in place of its folder, already: the names are the same, or differ only in case, which this file system ignores", printable(name))
		}
	}
	return fmt.Errorf("%s cannot be written: %w", printable(name), reason(err))
}

// A DamagedError means that a repository has objects that git itself does not make, or
// files that cannot be written.
type DamagedError struct{ repository, detail string }

func (e *DamagedError) Error() string { return e.repository + ": " + e.detail }

func (r *Repository) damaged(format string, args ...any) error {
	return &DamagedError{r.name, fmt.Sprintf(format, args...)}
}

// reason returns the reason why a file could not be written, without its path: names in
// a repository may have any characters.
func reason(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	return err
}

// noEOF turns the end of git's output into an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
