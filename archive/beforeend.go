package archive

import "bytes"

// zipEnd begins the record at the end of a zip (PKWARE's APPNOTE, section 4.3.16), without which
// no client unpacks the zip. It does not begin twice within itself.
const zipEnd = "PK\x05\x06"

// A BeforeEnd finds out how many bytes of a zip come before its end, while they arrive. The zero
// value is ready for use.
type BeforeEnd struct {
	size  int64 // before the end record of a zip, or what may become one
	begun int   // how many bytes of an end record follow
	ends  bool  // a whole one follows
}

// Size returns how many of the bytes that have been written come before the first end record, and
// before what may become one with the next bytes.
func (b *BeforeEnd) Size() int64 { return b.size }

// Write takes the next bytes, and reports whether Size may have changed.
func (b *BeforeEnd) Write(next []byte) (changed bool) {
	if b.ends {
		return false
	}
	rest := zipEnd[b.begun:]
	if n := min(len(rest), len(next)); b.begun > 0 && string(next[:n]) == rest[:n] {
		b.begun += n
		b.ends = b.begun == len(zipEnd)
		return false
	}
	b.size += int64(b.begun)
	b.begun = 0
	if i := bytes.Index(next, []byte(zipEnd)); i >= 0 {
		b.size += int64(i)
		b.ends = true
		return true
	}
	for b.begun = min(len(zipEnd)-1, len(next)); !bytes.HasSuffix(next, []byte(zipEnd[:b.begun])); b.begun-- {
	}
	b.size += int64(len(next) - b.begun)
	return true
}
