package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A PackedModule is the package of a module folder, with the bytes that the registry would
// serve if the folder lay in a tree. The bytes are computed whenever they are read.
type PackedModule struct {
	Size   int64 // in bytes
	SHA256 wire.SHA256

	// LeftOut names in short the files in the folder that are not in the package; empty if
	// there are none.
	LeftOut string

	Doubts Doubts // about the package

	part    tree.Part
	packing *packing
}

// PackModule packs a module folder on the local disk as a scan does. The error is a
// *PackageError if a scan would withhold the module wherever it lies. Any other error is an error
// of ctx, of the folder, or of reading a file in it.
func PackModule(ctx context.Context, dir string) (*PackedModule, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder: %w", tree.WithoutPath(err))
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return packModule(ctx, disk.NewPart(root, path))
}

func packModule(ctx context.Context, part tree.Part) (*PackedModule, error) {
	m, bad := FindModule(part, ".", func(string) {})
	if bad != nil {
		return nil, unpackedError(bad)
	}
	d, err := m.Read(ctx, unpaced)
	if err != nil {
		if ctx.Err() == nil {
			err = tree.AsFinding(err)
		}
		return nil, unpackedError(err)
	}
	return &PackedModule{
		Size: d.Size, SHA256: d.SHA256, LeftOut: m.LeftOut(), Doubts: m.Doubts(d),
		part: part, packing: m.packing,
	}, nil
}

// unpackedError returns a finding about the module as a *PackageError. A file that could not be
// read says nothing about the module: here, the user packs their own files.
func unpackedError(err error) error {
	var bad *tree.Finding
	if !errors.As(err, &bad) || bad.ReadError() == nil {
		return asPackageError(err)
	}
	failed := bad.ReadError()
	if at, ok := errors.AsType[*fs.PathError](failed); ok && at.Path != "." {
		return fmt.Errorf("%q in it cannot be read: %w", at.Path, at.Err)
	}
	return fmt.Errorf("it cannot be read: %w", tree.WithoutPath(failed))
}

// Open opens the package. Reading fails with ErrChanged if a file in the folder has changed
// since it was packed.
func (m *PackedModule) Open() io.ReadSeekCloser { return m.packing.Open(m.part) }

// A packing is the layout of a module folder's .tar.gz. The same folder results in the same
// bytes on every machine and after every restart: files are ordered by path, times and
// owners are fixed, and modes say only whether a file is executable. Deflate blocks are
// stored, not compressed, since the next version of a compressor may turn the same bytes
// into others. With stored blocks, the offset of every byte is known in advance, so the
// archive has a size and can seek without ever being written.
type packing struct {
	about    []byte // the tar's global header; empty if it has none
	files    []File
	offsets  []int64 // offsets in the tar of each file's header, and of the tar's end
	tar      int64   // size of the tar
	checksum uint32  // CRC-32 of the tar; zero until it has been read once
}

const (
	tarBlock = 512
	tarEnd   = 2 * tarBlock // two empty blocks
)

// packFolder lays out the archive of files without opening them.
func packFolder(files []File) (*packing, error) { return packAfter(nil, files) }

// packAfter is packFolder with a global header before the files.
func packAfter(about []byte, files []File) (*packing, error) {
	k := &packing{about: about, files: files, offsets: make([]int64, 0, len(files)+1), tar: int64(len(about))}
	for i := range files {
		k.offsets = append(k.offsets, k.tar)
		header, err := files[i].headerSize()
		if err != nil {
			return nil, tree.Findingf(tree.BadName, "%q in it cannot be packed: %v", files[i].Name, err)
		}
		k.tar += header + files[i].Size + -files[i].Size&(tarBlock-1)
	}
	k.offsets = append(k.offsets, k.tar)
	k.tar += tarEnd
	return k, nil
}

// header returns the bytes before a file's content in the tar.
func (f *File) header() ([]byte, error) {
	mode := int64(0o644)
	if f.executable {
		mode = 0o755
	}
	var b bytes.Buffer
	err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: f.Size, Mode: mode, ModTime: time.Unix(0, 0)})
	return b.Bytes(), err
}

// headerSize returns the size of a file's header: one block for a name and a size that fit
// in every tar's header. Others take more, which depends on neither the content nor the
// mode.
func (f *File) headerSize() (int64, error) {
	if len(f.Name) <= 100 && f.Size < 1<<33 && isASCII(f.Name) {
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

// The frame around the tar: a gzip header without a name or a time, deflate blocks of up to
// 65535 stored bytes with a header of five bytes each, and a trailer with the CRC-32 and the
// size.
const (
	gzipHeader      = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
	gzipHeaderSize  = int64(len(gzipHeader))
	blockHeaderSize = 5
	blockSize       = 65535
	gzipTrailerSize = 8
)

// size returns the size of the archive in bytes.
func (k *packing) size() int64 {
	blocks := (k.tar + blockSize - 1) / blockSize
	return gzipHeaderSize + blocks*blockHeaderSize + k.tar + gzipTrailerSize
}

func (k *packing) Files() []File { return k.files }

func (k *packing) Open(part tree.Part) PackedReader {
	r := &packingReader{packing: k, folderReader: folderReader{part: part}}
	return PackedReader{io.NewSectionReader(r, 0, k.size()), &r.folderReader}
}

// A packingReader computes the bytes of a packing from the files of its folder.
type packingReader struct {
	*packing
	folderReader
	header []byte       // the header made last
	of     int          // the index of its file
	sums   *contentSums // sums of the first reading from start to end, which also computes the checksum; nil afterwards
}

// ReadAt implements io.ReaderAt for one reader at a time.
func (r *packingReader) ReadAt(p []byte, offset int64) (n int, err error) {
	return tree.ReadAcross(p, offset, r.readGzip)
}

// readGzip reads at offset in the archive, up to the end of a header, block or
// trailer at most.
func (r *packingReader) readGzip(p []byte, offset int64) (int, error) {
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
			b[0] = 1 // the last block
		}
		binary.LittleEndian.PutUint16(b[1:], uint16(length))
		binary.LittleEndian.PutUint16(b[3:], ^uint16(length))
		return copy(p, b[within:]), nil
	}
	within -= blockHeaderSize
	return r.readTar(p[:min(int64(len(p)), length-within)], block*blockSize+within)
}

// readTar reads at offset in the tar, up to the end of a header, file or padding
// at most.
func (r *packingReader) readTar(p []byte, offset int64) (n int, err error) {
	i := r.find(offset)
	if i < 0 {
		n = copy(p, r.about[offset:])
	} else if i == len(r.files) {
		n = zero(p, r.tar-offset)
	} else if n, err = r.readEntry(p, i, offset-r.offsets[i]); err != nil {
		return 0, err
	}
	if r.sums != nil {
		r.checksum = crc32.Update(r.checksum, crc32.IEEETable, p[:n])
	}
	return n, nil
}

// readEntry reads at offset in the tar's entry of a file: from its header, its
// content, or the padding after that.
func (r *packingReader) readEntry(p []byte, i int, offset int64) (int, error) {
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
	if offset -= int64(len(r.header)); offset >= file.Size {
		return zero(p, -file.Size&(tarBlock-1)-(offset-file.Size)), nil
	}
	n, err := r.readContent(p, file, offset)
	if r.sums != nil {
		r.sums.add(i, p[:n])
	}
	return n, err
}

// contentSums are the digests of a packing's files, while it is read from start to end.
type contentSums struct {
	sums []fileSum // by file
	hash hash.Hash // of the file that is being read
	file int       // its index
}

func newContentSums(files int) *contentSums {
	c := &contentSums{sums: make([]fileSum, files), hash: newFileHash(), file: -1}
	empty := sumOf(c.hash)
	for i := range c.sums {
		c.sums[i] = empty // reads of an empty file do not happen
	}
	return c
}

// add adds the next content of a file.
func (c *contentSums) add(file int, content []byte) {
	if file != c.file {
		c.finish()
		c.file = file
	}
	c.hash.Write(content)
}

func (c *contentSums) finish() {
	if c.file >= 0 {
		c.sums[c.file] = sumOf(c.hash)
	}
	c.hash.Reset()
}

// hashes returns the hashes of the whole folder.
func (c *contentSums) hashes(files []File) wire.FileHashes {
	c.finish()
	sums := make(map[string]fileSum, len(files))
	for i, f := range files {
		sums[f.Name] = c.sums[i]
	}
	return hashesOf(sums)
}

// zero clears the first n bytes of p, or all of p if it is shorter.
func zero(p []byte, n int64) int {
	p = p[:min(int64(len(p)), n)]
	clear(p)
	return len(p)
}

// find returns the index of the file whose entry has the byte at offset, or -1 for a byte of
// the global header.
func (k *packing) find(offset int64) int {
	i, found := slices.BinarySearch(k.offsets, offset)
	if !found {
		i--
	}
	return i
}
