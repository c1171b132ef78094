package index

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
	"time"
)

// A packing is a module folder as a .tar.gz that exists nowhere: its bytes are
// computed from the folder's files whenever they are read. The same folder
// gives the same bytes on every machine and after every restart: files are
// ordered by path, times and owners are fixed, and so are mode bits but for that
// of executables (modulefolder.go). Deflate's blocks are stored, not compressed,
// since what a compressor makes of the same bytes may change with its next
// version. Stored blocks also make every byte's place known in advance, so a
// packing has a size and can seek without ever being written anywhere.
type packing struct {
	files    []packedFile
	offsets  []int64 // in the tar, where each file's header begins; the last one is that of the tar's end
	tar      int64   // its size
	checksum uint32  // its CRC-32, known once it has been read through
}

const (
	tarBlock = 512
	tarEnd   = 2 * tarBlock // two empty blocks
)

// packFolder lays out the archive of files. It opens none of them.
func packFolder(files []packedFile) (*packing, error) {
	k := &packing{files: files, offsets: make([]int64, 0, len(files)+1)}
	for i := range files {
		k.offsets = append(k.offsets, k.tar)
		header, err := files[i].headerSize()
		if err != nil {
			return nil, found(BadName, "%q in it cannot be packed: %v", files[i].name, err)
		}
		k.tar += header + files[i].size + -files[i].size&(tarBlock-1)
	}
	k.offsets = append(k.offsets, k.tar)
	k.tar += tarEnd
	return k, nil
}

// header is what comes before a file's content in the tar.
func (f *packedFile) header() ([]byte, error) {
	mode := int64(0o644)
	if f.executable {
		mode = 0o755
	}
	var b bytes.Buffer
	err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: f.size, Mode: mode, ModTime: time.Unix(0, 0)})
	return b.Bytes(), err
}

// headerSize is one block for a name and a size that every tar can have. Others
// need more, which depends on neither the content nor the mode.
func (f *packedFile) headerSize() (int64, error) {
	if len(f.name) <= 100 && f.size < 1<<33 && isASCII(f.name) {
		return tarBlock, nil
	}
	header, err := f.header()
	return int64(len(header)), err
}

// isASCII reports whether a name is all printable ASCII.
func isASCII(name string) bool {
	for i := range len(name) {
		if name[i] < ' ' || name[i] > '~' {
			return false
		}
	}
	return true
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
	folderReader
	header []byte // the one made last, that of the file with this number
	of     int
	crc    bool // the first reading through, which makes the checksum
}

// ReadAt implements io.ReaderAt for one reader at a time.
func (r *packingReader) ReadAt(p []byte, offset int64) (n int, err error) {
	return readAcross(p, offset, r.readSome)
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

func (r *packingReader) readTar(p []byte, offset int64) (n int, err error) {
	i := r.find(offset)
	if i == len(r.files) {
		n = zero(p, r.tar-offset)
	} else if n, err = r.readFile(p, i, offset-r.offsets[i]); err != nil {
		return 0, err
	}
	if r.crc {
		r.checksum = crc32.Update(r.checksum, crc32.IEEETable, p[:n])
	}
	return n, nil
}

// readFile reads what lies at offset in the entry of a file: its header, its
// content, or the padding behind that.
func (r *packingReader) readFile(p []byte, i int, offset int64) (int, error) {
	if r.header == nil || r.of != i {
		header, err := r.files[i].header()
		if err != nil {
			return 0, err
		}
		r.header, r.of = header, i
	}
	if offset < int64(len(r.header)) {
		return copy(p, r.header[offset:]), nil
	}
	file := &r.files[i]
	if offset -= int64(len(r.header)); offset >= file.size {
		return zero(p, -file.size&(tarBlock-1)-(offset-file.size)), nil
	}
	return r.readContent(p, file, offset)
}

// zero clears p, at most n bytes of it.
func zero(p []byte, n int64) int {
	p = p[:min(int64(len(p)), n)]
	clear(p)
	return len(p)
}

// find returns the number of the file whose entry has the byte at offset.
func (k *packing) find(offset int64) int {
	i, found := slices.BinarySearch(k.offsets, offset)
	if !found {
		i--
	}
	return i
}
