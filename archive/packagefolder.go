package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"sort"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A provider's package may lie in the tree unpacked, in a folder VERSION/OS_ARCH, as in
// filesystem mirrors and plugin caches. It is offered as a zip computed from the files in
// the folder: see packageZip.

// A PackageFolder is a provider's package that lies in a tree unpacked.
type PackageFolder struct {
	part    tree.Part
	files   []File
	typ, os string
}

// FindPackage finds the files of the unpacked package of a provider called typ for a system,
// or returns why it is withheld. It calls visit for each folder before reading it.
func FindPackage(part tree.Part, dir, typ, os string, visit func(dir string)) (p *PackageFolder, bad *tree.Finding) {
	p = &PackageFolder{part: part, typ: typ, os: os}
	if p.files, bad = walkPacked(part, dir, packageRules{}, visit); bad != nil {
		return p, bad
	}
	return p, checkPackageFolder(p.files, typ)
}

// Stamp changes whenever a file in the folder may have changed.
func (p *PackageFolder) Stamp() tree.Stamp { return stampFolder(p.files) }

// FirstFile returns the path of a file in the folder; empty if there is none, or no folder.
func (p *PackageFolder) FirstFile() string {
	if p == nil {
		return ""
	}
	return firstFile(p.files)
}

// Pack returns the zip of a folder that has been read.
func (p *PackageFolder) Pack(d Digest) Packed {
	return layOutZip(p.files, decodeMembers(d.Content, len(p.files)))
}

// packageRules leave only hidden and temporary files out of a package.
type packageRules struct{}

func (packageRules) begin(tree.Part, []tree.Entry) *tree.Finding { return nil }

func (packageRules) leavesOut(e tree.Entry, name string, _ folderMatch) (leftOut bool, within folderMatch, bad *tree.Finding) {
	if tree.IsHiddenOrTemporary(e.Name) {
		return true, within, nil
	}
	if e.Bad == nil && !e.Info.IsDir() {
		bad = checkEntry(name)
	}
	return false, within, bad
}

// checkPackageFolder checks that a folder's files include the provider's program and fit in
// a zip.
func checkPackageFolder(files []File, typ string) *tree.Finding {
	left, program := int64(maxZipped), false
	for _, f := range files {
		isProgram := isProviderFile(f.Name, typ)
		switch {
		case f.Size > left:
			return tree.Findingf(tree.TooLarge, "its files have more than %d bytes: pack it as a zip", int64(maxZipped))
		case !utf8.ValidString(f.Name):
			return tree.Findingf(tree.BadName, "%q in it is not a name in UTF-8: rename it", f.Name)
		case isProgram && f.Size == 0:
			return tree.Findingf(tree.Empty, "%s in it is empty: copy it again", f.Name)
		}
		left -= f.Size
		program = program || isProgram
	}
	if !program {
		return tree.Findingf(tree.NoBinary, "there is no file %s%s in the folder: put the provider's binary there", ProviderPrefix, typ)
	}
	return nil
}

// A zipMember has the fields of a file in a zip besides its name and size.
type zipMember struct {
	crc        uint32
	executable bool
}

// Read reads the files of the folder twice: for the fields of the zip's headers, and as the
// zip. It calls wait before each read. The error is a *tree.Finding if the folder is at
// fault.
func (p *PackageFolder) Read(ctx context.Context, wait func()) (d Digest, err error) {
	members := make([]zipMember, len(p.files))
	sums := make(map[string]fileSum, len(p.files))
	for i, f := range p.files {
		if members[i], sums[f.Name], err = readMember(ctx, p.part, f, wait); err != nil {
			return d, changedWhileRead(err)
		}
		if p.os != "windows" && isProviderFile(f.Name, p.typ) {
			members[i].executable = true
		}
	}
	z := layOutZip(p.files, members)
	r := &packageZipReader{z, folderReader{part: p.part}}
	defer r.Close()
	if d.SHA256, err = tree.DigestFile(ctx, io.NewSectionReader(pacedReaderAt{r, wait}, 0, z.size)); err != nil {
		return d, changedWhileRead(err)
	}
	d.Size, d.Content = z.size, encodeMembers(members)
	d.FileHashes = hashesOf(sums)
	return d, nil
}

// readMember reads one file of a folder to its end.
func readMember(ctx context.Context, part tree.Part, file File, wait func()) (m zipMember, sum fileSum, err error) {
	f, err := part.OpenUnchanged(file.Path, file.Stamp())
	if err != nil {
		return m, sum, err
	}
	defer f.Close()
	var start [8]byte
	n, err := io.ReadFull(f, start[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return m, sum, err
	}
	m.executable = isExecutable(start[:n])
	crc, h := crc32.NewIEEE(), newFileHash()
	size, err := tree.HashFile(io.MultiWriter(crc, h), tree.WithContext(ctx, io.MultiReader(bytes.NewReader(start[:n]), pacedFile{f, wait})))
	if err != nil {
		return m, sum, err
	}
	if size != file.Size {
		return m, sum, tree.ErrChanged
	}
	m.crc = crc.Sum32()
	return m, sumOf(h), nil
}

// encodeMembers returns the members in the form that the memo keeps, in the order of the
// files.
func encodeMembers(members []zipMember) []byte {
	b := make([]byte, 0, 5*len(members))
	for _, m := range members {
		b = binary.LittleEndian.AppendUint32(b, m.crc)
		if m.executable {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

// decodeMembers decodes the members of count files.
func decodeMembers(b []byte, count int) []zipMember {
	members := make([]zipMember, count)
	for i := range min(count, len(b)/5) {
		members[i] = zipMember{binary.LittleEndian.Uint32(b[5*i:]), b[5*i+4] == 1}
	}
	return members
}

// A packageZip is the layout of an unpacked package's zip. As with the packing of a module
// folder, the same folder results in the same bytes on every machine: files are ordered by
// path and stored, not compressed, times are the earliest that a zip can have, and modes
// follow from the files' content. The offset of every byte is known in advance, so the zip
// has a size and can seek.
type packageZip struct {
	files []File
	spans []zipSpan // in order
	size  int64
}

// A zipSpan is a run of a zip's bytes: headers, or the content of a file.
type zipSpan struct {
	offset, size int64
	headers      []byte // nil for the content of a file
	file         File   // the file of the content
}

const (
	zipVersion     = 20 // 2.0
	zipNamesInUTF8 = 1 << 11
	zipFirstDay    = 1<<5 | 1 // 1 January 1980
)

// maxZipped is how many bytes the files of an unpacked package may have: as many as fit in a
// zip without the zip64 extension, less some room for the headers.
const maxZipped = math.MaxUint32 - 256<<20

// layOutZip lays out the zip of a folder's files and their members.
func layOutZip(files []File, members []zipMember) *packageZip {
	z := &packageZip{files: files}
	var directory []byte
	for i, f := range files {
		directory = appendCentralHeader(directory, f, members[i], uint32(z.size))
		z.addHeaders(appendLocalHeader(nil, f, members[i]))
		if f.Size > 0 {
			z.spans = append(z.spans, zipSpan{offset: z.size, size: f.Size, file: f})
			z.size += f.Size
		}
	}
	z.addHeaders(appendZipEnd(directory, len(files), uint32(z.size)))
	return z
}

func (z *packageZip) addHeaders(b []byte) {
	z.spans = append(z.spans, zipSpan{offset: z.size, size: int64(len(b)), headers: b})
	z.size += int64(len(b))
}

// appendCommonHeader appends the fields that both headers of a file have.
func appendCommonHeader(b []byte, f File, m zipMember) []byte {
	b = binary.LittleEndian.AppendUint16(b, zipVersion)
	b = binary.LittleEndian.AppendUint16(b, zipNamesInUTF8)
	b = binary.LittleEndian.AppendUint16(b, 0) // stored
	b = binary.LittleEndian.AppendUint16(b, 0) // midnight
	b = binary.LittleEndian.AppendUint16(b, zipFirstDay)
	b = binary.LittleEndian.AppendUint32(b, m.crc)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.Size)) // as stored
	b = binary.LittleEndian.AppendUint32(b, uint32(f.Size))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(f.Name)))
	return binary.LittleEndian.AppendUint16(b, 0) // no extra field
}

func appendLocalHeader(b []byte, f File, m zipMember) []byte {
	b = append(b, "PK\x03\x04"...)
	b = appendCommonHeader(b, f, m)
	return append(b, f.Name...)
}

func appendCentralHeader(b []byte, f File, m zipMember, offset uint32) []byte {
	mode := uint32(0o100644)
	if m.executable {
		mode = 0o100755
	}
	b = append(b, "PK\x01\x02"...)
	b = binary.LittleEndian.AppendUint16(b, madeOnUnix<<8|zipVersion)
	b = appendCommonHeader(b, f, m)
	b = append(b, make([]byte, 6)...) // no comment, first disk, no internal attributes
	b = binary.LittleEndian.AppendUint32(b, mode<<16)
	b = binary.LittleEndian.AppendUint32(b, offset)
	return append(b, f.Name...)
}

func appendZipEnd(directory []byte, count int, offset uint32) []byte {
	size := uint32(len(directory))
	b := append(directory, "PK\x05\x06\x00\x00\x00\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(count))
	b = binary.LittleEndian.AppendUint16(b, uint16(count))
	b = binary.LittleEndian.AppendUint32(b, size)
	b = binary.LittleEndian.AppendUint32(b, offset)
	return binary.LittleEndian.AppendUint16(b, 0) // no comment
}

func (z *packageZip) Files() []File { return z.files }

func (z *packageZip) Open(part tree.Part) PackedReader {
	r := &packageZipReader{z, folderReader{part: part}}
	return PackedReader{io.NewSectionReader(r, 0, z.size), &r.folderReader}
}

// A packageZipReader computes the bytes of a zip from the files of its folder.
type packageZipReader struct {
	*packageZip
	folderReader
}

// ReadAt implements io.ReaderAt for one reader at a time.
func (r *packageZipReader) ReadAt(p []byte, offset int64) (n int, err error) {
	return tree.ReadAcross(p, offset, r.readSpan)
}

// readSpan reads at offset, up to the end of a span at most.
func (r *packageZipReader) readSpan(p []byte, offset int64) (int, error) {
	i := sort.Search(len(r.spans), func(i int) bool { return r.spans[i].offset+r.spans[i].size > offset })
	if i == len(r.spans) {
		return 0, io.EOF
	}
	span := &r.spans[i]
	offset -= span.offset
	if span.headers != nil {
		return copy(p, span.headers[offset:]), nil
	}
	return r.readContent(p, &span.file, offset)
}
