package index

import (
	"encoding/binary"
	"io"
	"math"
	"sort"
)

// A packageZip is the zip of an unpacked package. It exists nowhere: as with the
// packing of a module folder, its bytes are computed from the folder's files
// whenever they are read, and are the same on every machine. Files are ordered by
// path and stored, not compressed, times are the first that a zip can have, and
// modes follow from the files' content. Every byte's place is known in advance,
// so that it has a size and can seek.
type packageZip struct {
	files []packedFile
	spans []zipSpan // in order
	size  int64
}

// A zipSpan is a run of a zip's bytes: headers, or the content of a file.
type zipSpan struct {
	offset, size int64
	fixed        []byte
	file         packedFile
}

const (
	zipVersion     = 20 // 2.0
	zipNamesInUTF8 = 1 << 11
	zipFirstDay    = 1<<5 | 1 // 1 January 1980
)

// maxZipped is how much the files of an unpacked package may have: what a zip can
// say without its extension for large ones, with room for the headers.
const maxZipped = math.MaxUint32 - 256<<20

// layOutZip lays out the zip of a folder's files, of which there is one member
// each.
func layOutZip(files []packedFile, members []zipMember) *packageZip {
	z := &packageZip{files: files}
	var directory []byte
	for i, f := range files {
		directory = appendCentralHeader(directory, f, members[i], uint32(z.size))
		header := appendLocalHeader(nil, f, members[i])
		z.add(zipSpan{size: int64(len(header)), fixed: header})
		if f.size > 0 {
			z.add(zipSpan{size: f.size, file: f})
		}
	}
	end := appendZipEnd(directory, len(files), uint32(z.size))
	z.add(zipSpan{size: int64(len(end)), fixed: end})
	return z
}

func (z *packageZip) add(span zipSpan) {
	span.offset = z.size
	z.size += span.size
	z.spans = append(z.spans, span)
}

// appendCommonHeader writes what both headers of a file have.
func appendCommonHeader(b []byte, f packedFile, m zipMember) []byte {
	b = binary.LittleEndian.AppendUint16(b, zipVersion)
	b = binary.LittleEndian.AppendUint16(b, zipNamesInUTF8)
	b = binary.LittleEndian.AppendUint16(b, 0) // stored
	b = binary.LittleEndian.AppendUint16(b, 0) // midnight
	b = binary.LittleEndian.AppendUint16(b, zipFirstDay)
	b = binary.LittleEndian.AppendUint32(b, m.crc)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.size)) // as stored
	b = binary.LittleEndian.AppendUint32(b, uint32(f.size))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(f.name)))
	return binary.LittleEndian.AppendUint16(b, 0) // nothing extra
}

func appendLocalHeader(b []byte, f packedFile, m zipMember) []byte {
	b = append(b, "PK\x03\x04"...)
	b = appendCommonHeader(b, f, m)
	return append(b, f.name...)
}

func appendCentralHeader(b []byte, f packedFile, m zipMember, offset uint32) []byte {
	mode := uint32(0o100644)
	if m.executable {
		mode = 0o100755
	}
	b = append(b, "PK\x01\x02"...)
	b = binary.LittleEndian.AppendUint16(b, madeOnUnix<<8|zipVersion)
	b = appendCommonHeader(b, f, m)
	b = append(b, make([]byte, 6)...) // no comment, on the first disk, no attributes inside
	b = binary.LittleEndian.AppendUint32(b, mode<<16)
	b = binary.LittleEndian.AppendUint32(b, offset)
	return append(b, f.name...)
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

// open opens the zip. Reading fails with ErrChanged when a file in it has changed.
func (z *packageZip) open(part Part) *openPackageZip {
	r := &packageZipReader{z, folderReader{part: part}}
	return &openPackageZip{io.NewSectionReader(r, 0, z.size), r}
}

type openPackageZip struct {
	*io.SectionReader
	io.Closer
}

// A packageZipReader reads a zip's bytes from the files of a part of the tree,
// for one reader at a time.
type packageZipReader struct {
	*packageZip
	folderReader
}

// ReadAt implements io.ReaderAt.
func (r *packageZipReader) ReadAt(p []byte, offset int64) (n int, err error) {
	return readAcross(p, offset, r.readSpan)
}

// readSpan reads what lies at offset, up to the end of its span.
func (r *packageZipReader) readSpan(p []byte, offset int64) (int, error) {
	i := sort.Search(len(r.spans), func(i int) bool { return r.spans[i].offset+r.spans[i].size > offset })
	if i == len(r.spans) {
		return 0, io.EOF
	}
	span := &r.spans[i]
	offset -= span.offset
	if span.fixed != nil {
		return copy(p, span.fixed[offset:]), nil
	}
	return r.readContent(p, &span.file, offset)
}
