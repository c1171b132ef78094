package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A module may lie in the tree as a folder named after its version. It is offered as a
// .tar.gz computed from the files in the folder: see packing.

// moduleRules leave out of a module's package the files that no module needs and the files
// that its .terraformignore names.
type moduleRules struct {
	ignored *ignoreRules
	leftOut nameList
}

func (r *moduleRules) begin(p tree.Part, entries []tree.Entry) *tree.Finding {
	i := slices.IndexFunc(entries, func(e tree.Entry) bool { return e.Name == ignoreName })
	if i < 0 {
		return nil
	}
	if bad := entries[i].Bad; bad != nil {
		return badIgnoreRules(bad)
	}
	var err error
	if r.ignored, err = readIgnoreRules(p, entries[i].Path()); err != nil {
		return badIgnoreRules(err)
	}
	return nil
}

func (r *moduleRules) leavesOut(e tree.Entry, name string, in folderMatch) (leftOut bool, within folderMatch, bad *tree.Finding) {
	var err error
	switch {
	case IsLeftOut(e.Name): // even a dangling symlink
		leftOut = true
	case e.Bad == nil && e.Info.IsDir():
		leftOut, within, err = r.ignored.ignoresFolder(name, in)
	default:
		leftOut, err = r.ignored.ignoresFile(name, in)
	}
	if err != nil {
		return false, within, badIgnoreRules(err)
	}
	if leftOut {
		r.leftOut.add(name)
	}
	return leftOut, within, nil
}

// A ModuleFolder is a module that lies in a tree as a folder.
type ModuleFolder struct {
	part      tree.Part
	files     []File
	leftOut   *nameList // the names that are not among the files
	names     packageNames
	subfolder string   // the only folder in it, if the module lies there
	packing   *packing // nil until it is needed
}

// Stamp changes whenever a file in the folder may have changed.
func (m *ModuleFolder) Stamp() tree.Stamp { return stampFolder(m.files) }

// FirstFile returns the path of a file in the folder; empty if there is none, or no folder.
func (m *ModuleFolder) FirstFile() string {
	if m == nil {
		return ""
	}
	return firstFile(m.files)
}

// Folder returns the folder of the package in which the module lies; empty for its root.
func (m *ModuleFolder) Folder() string { return m.subfolder }

// LeftOut names in short the files in the folder that are not in the package; empty if there
// are none.
func (m *ModuleFolder) LeftOut() string { return m.leftOut.String() }

// Recall sets the results of an earlier reading of the folder.
func (m *ModuleFolder) Recall(d Digest) {
	executables, _ := splitModuleContent(d.Content)
	recallExecutables(m.files, executables)
}

// Pack returns the package of a folder that has been read. It returns nil if the folder
// cannot be packed.
func (m *ModuleFolder) Pack(d Digest) Packed {
	if m.packing == nil {
		if k, err := packFolder(m.files); err == nil { // files as they were read
			k.checksum = d.Checksum
			m.packing = k
		}
	}
	if m.packing == nil {
		return nil
	}
	return m.packing
}

// walkFolder finds the files of a module folder to pack, ordered by their path in the
// archive, and the names left out. It calls visit for each folder before reading it.
func walkFolder(p tree.Part, dir string, visit func(dir string)) (files []File, leftOut *nameList, bad *tree.Finding) {
	var rules moduleRules
	files, bad = walkPacked(p, dir, &rules, visit)
	disregardUniformModes(files)
	return files, &rules.leftOut, bad
}

// FindModule finds the files of a module folder and the module among them, or returns why it
// is withheld. It calls visit for each folder before reading it.
func FindModule(part tree.Part, dir string, visit func(dir string)) (m *ModuleFolder, bad *tree.Finding) {
	m = &ModuleFolder{part: part}
	if m.files, m.leftOut, bad = walkFolder(part, dir, visit); bad != nil {
		return m, bad
	}
	var finder moduleFinder
	for _, f := range m.files {
		finder.add(f.Name)
	}
	m.subfolder, bad = finder.module()
	m.names = finder.names()
	return m, bad
}

// disregardUniformModes disregards the executable bits if every file has them, as on file
// systems without modes, such as on Windows or a USB stick.
//
// Whether a file is executable in the package depends on its content alone where the file
// system or version control keeps no modes, and on its mode as well where they do. A folder
// has the same package on all machines of one kind, and on machines of both kinds if its
// executables begin like a script or a program.
func disregardUniformModes(files []File) {
	if slices.ContainsFunc(files, func(f File) bool { return !f.byMode }) {
		return
	}
	for i := range files {
		files[i].byMode = false
	}
}

// Read reads the beginning of each file of the folder, and then the whole package. It calls
// wait before each read of the package. The error is a *tree.Finding if the folder is at
// fault.
func (m *ModuleFolder) Read(ctx context.Context, wait func()) (Digest, error) {
	docs := moduledoc.Collector{Short: true}
	err := inspectFiles(ctx, m.part, m.files, func(file *File, start []byte, content io.Reader) error {
		if err := docs.Add(file.Name, content); err != nil {
			return err
		}
		return refuseSecret(file, start)
	})
	if err != nil {
		return Digest{}, changedWhileRead(err)
	}
	k, err := packFolder(m.files)
	if err != nil {
		return Digest{}, err
	}
	r := &packingReader{packing: k, folderReader: folderReader{part: m.part}, sums: newContentSums(len(k.files))}
	defer r.Close()
	sum, err := tree.DigestFile(ctx, io.NewSectionReader(pacedReaderAt{r, wait}, 0, k.size()))
	if err != nil {
		return Digest{}, changedWhileRead(err)
	}
	m.packing = k
	content := encodeModuleContent(encodeExecutables(m.files), docs.Summary(m.subfolder))
	return Digest{SHA256: sum, FileHashes: r.sums.hashes(k.files), Size: k.size(), Checksum: k.checksum, Content: content}, nil
}

// inspectFiles sets which files are executable, and calls inspect with each file: with its
// beginning, and with its content from the start on.
func inspectFiles(ctx context.Context, p tree.Part, files []File, inspect func(file *File, start []byte, content io.Reader) error) error {
	buffer := make([]byte, inspectSize)
	for i := range files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading ended: %w", err)
		}
		if err := files[i].inspect(p, buffer, inspect); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) inspect(p tree.Part, buffer []byte, inspect func(file *File, start []byte, content io.Reader) error) error {
	opened, err := p.OpenUnchanged(f.Path, f.Stamp())
	if err != nil {
		return err
	}
	defer opened.Close()
	start, err := readStart(opened, buffer)
	if err != nil {
		return err
	}
	f.executable = f.byMode || isExecutable(start)
	return inspect(f, start, io.MultiReader(bytes.NewReader(start), opened))
}

// refuseSecret refuses a file that begins like a secret.
func refuseSecret(file *File, start []byte) error {
	if kind := secretByContent(start, file.Size); kind != "" {
		return tree.Findingf(tree.Secret, "%q in it holds %s, which everyone who downloads the module would get: remove it, or name it in the folder's %s", file.Name, kind, ignoreName)
	}
	return nil
}

// encodeExecutables returns one bit for each file, in the form that the memo keeps. With it,
// a folder is packed again without reading the beginning of every file.
func encodeExecutables(files []File) []byte {
	bits := make([]byte, (len(files)+7)/8)
	for i, f := range files {
		if f.executable {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return bits
}

// recallExecutables sets the bits that encodeExecutables returned.
func recallExecutables(files []File, bits []byte) {
	for i := range files {
		files[i].executable = i/8 < len(bits) && bits[i/8]&(1<<(i%8)) != 0
	}
}

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
