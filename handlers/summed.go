package handlers

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// The package of a module is compared with its sha256 whenever all of it is sent, since no client
// compares it with anything. Old clients request all of it as a range (checklist 119). Of a part,
// only the size and the times are compared. They do not tell everything: who writes to a network disk
// from another machine sets them, a program changes a file that it has mapped into its memory without
// them, and so does a disk that fails.

// maxSummed is the size in bytes up to which a package on the disk is read for the comparison while it is
// sent. Larger ones are sent without being read, and are read afterwards, before their end is sent.
const maxSummed = 1 << 20

// errOtherBytes has no scan follow: it would find the file as it was.
var errOtherBytes = errors.New("it has other bytes than were verified, and the same size and times: put the verified bytes back, or touch it, so that it is read again")

// summed returns the content of an open file, and a function that returns errOtherBytes if all of it
// was sent and is not the content that was verified. An answer to a request with Range may have all of it,
// as after another If-Range, or from the first byte to the last.
func summed(r *request, body *bodyWriter, f *index.File, opened *index.OpenFile) (content io.ReadSeeker, unchanged func() error) {
	content = opened.ReadSeekCloser
	sum := func() (wire.SHA256, error) {
		if _, err := opened.Seek(0, io.SeekStart); err != nil {
			return wire.SHA256{}, err
		}
		return tree.DigestFile(r.Context(), opened)
	}
	_, onDisk := content.(*os.File)
	if r.Header.Get("Range") == "" && (!onDisk || f.Size <= maxSummed) {
		s := summing{opened, sha256.New()}
		content, sum = s, func() (wire.SHA256, error) { return wire.SHA256(s.hash.Sum(nil)), nil }
	}
	return content, func() error {
		if err := opened.Unchanged(); err != nil || !body.hasAll() {
			return err
		}
		is, err := sum()
		if err == nil && is != f.SHA256 {
			err = errOtherBytes
		}
		return err
	}
}

// A summing file computes the sha256 of what is read after the last Seek.
type summing struct {
	io.ReadSeeker
	hash hash.Hash
}

// Read implements io.Reader.
func (s summing) Read(p []byte) (int, error) {
	n, err := s.ReadSeeker.Read(p)
	s.hash.Write(p[:n])
	return n, err
}

// Seek implements io.Seeker.
func (s summing) Seek(offset int64, whence int) (int64, error) {
	s.hash.Reset()
	return s.ReadSeeker.Seek(offset, whence)
}
