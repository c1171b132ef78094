package disk

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/afero"
	"golang.org/x/sys/unix"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// openBeneath opens a file or directory below dir for reading, with the rules of os.Root:
// symlinks are followed inside dir, and symlinks that leave it or are absolute are refused.
// It takes a single system call, where os.Root needs two for each directory in the name. It
// returns nil whenever that fails, even because the kernel is older than 5.6 or a sandbox
// forbids the call. os.Root then says why.
func openBeneath(dir *os.File, name string) *os.File {
	if dir == nil {
		return nil
	}
	fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	runtime.KeepAlive(dir)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), name)
}

// A fileInfo describes a file in a directory on the local disk. All of a directory are
// allocated at once: trees have hundreds of thousands of files.
type fileInfo struct {
	name             string
	mode             fs.FileMode
	size             int64
	inode            uint64
	modTime, changed int64 // nanoseconds
}

func (i *fileInfo) Name() string       { return i.name }
func (i *fileInfo) Size() int64        { return i.size }
func (i *fileInfo) Mode() fs.FileMode  { return i.mode }
func (i *fileInfo) ModTime() time.Time { return time.Unix(0, i.modTime) }
func (i *fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i *fileInfo) Sys() any           { return nil }

// Stamp returns the stamp of the file, for tree.StampOf.
func (i *fileInfo) Stamp() tree.Stamp {
	return tree.Stamp{Size: i.size, ModTime: i.modTime, Inode: i.inode, Changed: i.changed}
}

// readEntries is Readdir for all entries of a directory. Their names may share memory.
func readEntries(f afero.File) ([]fs.FileInfo, error) {
	disk, ok := f.(*os.File)
	if !ok {
		return f.Readdir(-1)
	}
	dir := int(disk.Fd())
	names, count, err := readNames(dir)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: disk.Name(), Err: err}
	}
	files := make([]fileInfo, 0, count)
	infos := make([]fs.FileInfo, 0, count)
	for start := 0; start < len(names); {
		end := start
		for names[end] != 0 {
			end++
		}
		name := names[start:end]
		start = end + 1
		var s unix.Stat_t
		err := retried(func() error { return unix.Fstatat(dir, name, &s, unix.AT_SYMLINK_NOFOLLOW) })
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has been removed meanwhile
		}
		if err != nil {
			return nil, &fs.PathError{Op: "lstat", Path: strings.Clone(name), Err: err}
		}
		files = append(files, fileInfo{
			name: name, mode: modeOfFile(s.Mode), size: s.Size, inode: s.Ino,
			modTime: unix.TimespecToNsec(s.Mtim), changed: unix.TimespecToNsec(s.Ctim),
		})
		infos = append(infos, &files[len(files)-1])
	}
	return infos, nil
}

// Offsets in an entry that getdents returns: its length, and its name, which ends with a
// zero.
const (
	entryLength = 16
	entryName   = 19
)

// readNames returns the names in a directory, each followed by a zero, and their number.
func readNames(dir int) (names string, count int, err error) {
	var buffer, space [8 << 10]byte // on the stack
	all := space[:0]
	for {
		var n int
		err := retried(func() (err error) {
			n, err = unix.Getdents(dir, buffer[:])
			return err
		})
		if err != nil || n <= 0 {
			return string(all), count, err
		}
		for rest := buffer[:n]; len(rest) > entryName; {
			length := int(binary.NativeEndian.Uint16(rest[entryLength:]))
			name := rest[entryName:length]
			rest = rest[length:]
			for i, c := range name {
				if c == 0 {
					name = name[:i+1]
					break
				}
			}
			if string(name) != ".\x00" && string(name) != "..\x00" {
				all = append(all, name...)
				count++
			}
		}
	}
}

// retried repeats a system call as long as a signal interrupts it.
func retried(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// modeOfFile converts a mode to package fs. It does not tell apart the kinds of devices,
// which do not matter here.
func modeOfFile(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	default:
		m |= fs.ModeIrregular
	}
	return m
}
