package index

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"time"

	"github.com/spf13/afero"
)

// A packing is a module folder as a .tar.gz that exists nowhere: its bytes are
// computed from the folder's files whenever they are read. The same folder
// gives the same bytes on every machine and after every restart: files are
// ordered by path, times, owners and mode bits are fixed, and deflate's blocks
// are stored, not compressed, since what a compressor makes of the same bytes
// may change with its next version. Stored blocks also make every byte's place
// known in advance, so a packing has a size and can seek without ever being
// written anywhere.
type packing struct {
	parts    []packingPart // the tar, in order
	tar      int64         // its size
	checksum uint32        // its CRC-32, known once it has been read through
}

// packingPart is a run of the tar: headers and padding, or a file's content.
type packingPart struct {
	offset, size int64
	fixed        []byte
	file         packedFile
}

// packedFile is a file of a module folder as the walk found it.
type packedFile struct {
	name    string // in the archive
	path    string // in its part of the tree
	size    int64
	modTime int64 // nanoseconds
	inode   uint64
	changed int64 // nanoseconds: when its inode was last changed
	script  bool
}

func (f packedFile) stamp() stamp {
	return stamp{size: f.size, modTime: f.modTime, inode: f.inode, changed: f.changed}
}

const (
	maxFolderFiles = 10_000 // and folders
	maxFolderDepth = 32
)

// walkFolder finds the files of a module folder, ordered by their path in the
// archive. Version control and the clients' own caches are no part of a module.
// It calls visit for each folder before it reads it.
func (p Part) walkFolder(dir string, visit func(dir string)) ([]packedFile, *finding) {
	var files []packedFile
	var folders int
	var walk func(dir, prefix string, depth int) *finding
	walk = func(dir, prefix string, depth int) *finding {
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
		for _, e := range entries {
			name := path.Join(prefix, e.name)
			switch {
			case e.name == ".git" || e.name == ".terraform" || temporary(e.name):
				continue
			case e.bad != nil:
				return found(e.bad.reason, "%q in it: %s", name, e.bad.detail)
			case e.info.IsDir():
				if f := walk(e.path, name, depth+1); f != nil {
					return f
				}
				continue
			case !e.info.Mode().IsRegular():
				return found(Unreadable, "%q in it is not a regular file: remove it", name)
			}
			is := stampOf(e.info)
			if files = append(files, packedFile{name: name, path: e.path, size: is.size, modTime: is.modTime, inode: is.inode, changed: is.changed}); len(files) > maxFolderFiles {
				return found(TooLarge, "it has more than %d files: is there a symlink to a parent?", maxFolderFiles)
			}
		}
		return nil
	}
	return files, walk(dir, "", 0)
}

// packFolder lays out the archive of files. It reads the first bytes of each:
// a file that begins with #! is executable, everything else is not. A file's
// own mode bits differ between checkouts and mounts.
func (p Part) packFolder(files []packedFile) (*packing, error) {
	k := &packing{}
	var fixed bytes.Buffer
	flush := func() {
		k.add(packingPart{size: int64(fixed.Len()), fixed: bytes.Clone(fixed.Bytes())})
		fixed.Reset()
	}
	for _, file := range files {
		var err error
		if file.script, err = p.isScript(file); err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if file.script {
			mode = 0o755
		}
		header := tar.Header{Typeflag: tar.TypeReg, Name: file.name, Size: file.size, Mode: mode, ModTime: time.Unix(0, 0)}
		if err := tar.NewWriter(&fixed).WriteHeader(&header); err != nil {
			return nil, found(BadName, "%q in it cannot be packed: %v", file.name, err)
		}
		flush()
		k.add(packingPart{size: file.size, file: file})
		fixed.Write(make([]byte, -file.size&511)) // a tar's blocks have 512 bytes
	}
	fixed.Write(make([]byte, 1024)) // and two empty ones end it
	flush()
	return k, nil
}

func (k *packing) add(part packingPart) {
	part.offset = k.tar
	k.tar += part.size
	k.parts = append(k.parts, part)
}

func (p Part) isScript(file packedFile) (bool, error) {
	f, err := p.openUnchanged(file.path, file.stamp())
	if err != nil {
		return false, err
	}
	defer f.Close()
	start := make([]byte, 2)
	_, err = io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return string(start) == "#!", nil
}

// The frame around the tar: a gzip header without a name or a time, deflate
// blocks of up to 65535 stored bytes, each behind five bytes of its own, and a
// trailer of CRC-32 and size.
const (
	gzipHeaderSize  = 10
	blockHeaderSize = 5
	blockSize       = 65535
	gzipTrailerSize = 8
)

var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// size is the archive's.
func (k *packing) size() int64 {
	blocks := (k.tar + blockSize - 1) / blockSize
	return gzipHeaderSize + blocks*blockHeaderSize + k.tar + gzipTrailerSize
}

// packingReader reads a packing's bytes from the files of a part of the tree.
type packingReader struct {
	*packing
	part    Part
	current afero.File // the one read last, kept open for the next read
	path    string
	crc     bool // the first reading through, which makes the checksum
}

func (r *packingReader) Close() error {
	if r.current == nil {
		return nil
	}
	return r.current.Close()
}

// ReadAt implements io.ReaderAt for one reader at a time.
func (r *packingReader) ReadAt(p []byte, offset int64) (n int, err error) {
	for n < len(p) {
		m, err := r.readSome(p[n:], offset+int64(n))
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// readSome reads what lies at offset up to the next seam.
func (r *packingReader) readSome(p []byte, offset int64) (int, error) {
	if offset < gzipHeaderSize {
		return copy(p, gzipHeader[offset:]), nil
	}
	trailer := r.size() - gzipTrailerSize
	if offset >= trailer {
		var b [gzipTrailerSize]byte
		binary.LittleEndian.PutUint32(b[0:], r.checksum)
		binary.LittleEndian.PutUint32(b[4:], uint32(r.tar))
		if offset -= trailer; offset >= gzipTrailerSize {
			return 0, io.EOF
		}
		return copy(p, b[offset:]), nil
	}
	block := (offset - gzipHeaderSize) / (blockHeaderSize + blockSize)
	within := (offset - gzipHeaderSize) % (blockHeaderSize + blockSize)
	length := min(blockSize, r.tar-block*blockSize)
	if within < blockHeaderSize {
		var b [blockHeaderSize]byte
		if (block+1)*blockSize >= r.tar {
			b[0] = 1 // the last one
		}
		binary.LittleEndian.PutUint16(b[1:], uint16(length))
		binary.LittleEndian.PutUint16(b[3:], ^uint16(length))
		return copy(p, b[within:]), nil
	}
	within -= blockHeaderSize
	return r.readTar(p[:min(int64(len(p)), length-within)], block*blockSize+within)
}

func (r *packingReader) readTar(p []byte, offset int64) (int, error) {
	part := r.find(offset)
	offset -= part.offset
	p = p[:min(int64(len(p)), part.size-offset)]
	var n int
	if part.fixed != nil {
		n = copy(p, part.fixed[offset:])
	} else {
		if err := r.openFile(part.file); err != nil {
			return 0, err
		}
		var err error
		if n, err = r.current.ReadAt(p, offset); n <= 0 && err != nil {
			if errors.Is(err, io.EOF) {
				err = ErrChanged // shorter than it was
			}
			return 0, err
		}
	}
	if r.crc {
		r.checksum = crc32.Update(r.checksum, crc32.IEEETable, p[:n])
	}
	return n, nil
}

// find returns the part with the byte at offset.
func (k *packing) find(offset int64) packingPart {
	low, high := 0, len(k.parts)
	for low < high {
		middle := (low + high) / 2
		if k.parts[middle].offset+k.parts[middle].size <= offset {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return k.parts[low]
}

func (r *packingReader) openFile(file packedFile) (err error) {
	if r.current != nil && r.path == file.path {
		return nil
	}
	r.Close()
	r.path = file.path
	r.current, err = r.part.openUnchanged(file.path, file.stamp())
	return err
}

// stampFolder tells whether anything in a folder can have changed. Its time is
// the newest of its files.
func stampFolder(files []packedFile) stamp {
	var s stamp
	h := sha256.New()
	for _, f := range files {
		s.size += f.size
		s.modTime, s.changed = max(s.modTime, f.modTime), max(s.changed, f.changed)
		fmt.Fprintf(h, "%s\x00%d %d %d %d\n", f.name, f.size, f.modTime, f.inode, f.changed)
	}
	s.files = SHA256(h.Sum(nil))
	return s
}

// changedWhileRead tells a folder that changed during the scan from one that
// cannot be read.
func changedWhileRead(err error) error {
	if errors.Is(err, ErrChanged) {
		return found(BeingWritten, "it is still being written")
	}
	return err
}
