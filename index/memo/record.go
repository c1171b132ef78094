package memo

import (
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Record has the results of reading a file.
type Record struct {
	archive.Digest
	Stamp   tree.Stamp
	Earlier *EarlierBytes // of a package whose bytes have changed since it was first offered
}

// EarlierBytes identify the bytes that a file had when it was first offered.
type EarlierBytes struct {
	SHA256  wire.SHA256
	H1      string
	Noticed int64 // when their change was noticed, in nanoseconds; zero: not yet
}

// NoticedAt returns the bytes, which have changed, with the time when that was noticed.
func (b *EarlierBytes) NoticedAt(at time.Time) *EarlierBytes {
	noticed := *b
	noticed.Noticed = at.UnixNano()
	return &noticed
}

// AreIn reports whether a file at a path in a report has these bytes. A module is the same if
// its files are, however they are packed.
func (b *EarlierBytes) AreIn(report string, d Record) bool {
	if strings.HasPrefix(report, "modules/") && b.H1 != "" && d.FileHashes != "" {
		return b.H1 == d.FileHashes.H1()
	}
	return b.SHA256 == d.SHA256
}

// AppendRecord appends the record of a file in the form of a memo.
func AppendRecord(b []byte, path string, d Record) []byte {
	f := folderRecords{records: []*compactRecord{compact(path, d)}}
	return f.append(b)
}
