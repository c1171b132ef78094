package index

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/afero"
)

// A named file system need not have files that seek: those of a zip, or of an
// object store, can only be read from their start to their end. What has to
// jump in them, the reading of archives, reads a copy in a temporary file. What
// goes on from a place, an answer to a client, skips what lies before.

// sequential returns f itself if it can seek and be read anywhere, and else
// something that can. Files on the disk can, and are not asked.
func (p Part) sequential(name string, f afero.File, info fs.FileInfo) afero.File {
	if !p.named() {
		return f
	}
	_, cannotSeek := f.Seek(0, io.SeekCurrent)
	_, cannotReadAt := f.ReadAt(nil, 0)
	if cannotSeek == nil && (cannotReadAt == nil || errors.Is(cannotReadAt, io.EOF)) {
		return f
	}
	return &sequentialFile{File: f, open: func() (afero.File, error) { return p.Fs.Open(name) }, size: info.Size()}
}

// named tells a file system that is known by its name from the local disk.
func (p Part) named() bool {
	_, is := p.Fs.(afero.FromIOFS)
	return is
}

type sequentialFile struct {
	afero.File
	open func() (afero.File, error) // the same again, at its start
	size int64
	at   int64 // where File is
	want int64 // where the next Read begins
	copy *os.File
}

// Seek only notes where to go: a client that asks for the size asks for nothing
// else.
func (s *sequentialFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.want
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	s.want = offset
	return offset, nil
}

func (s *sequentialFile) Read(p []byte) (n int, err error) {
	if s.copy != nil {
		n, err = s.copy.ReadAt(p, s.want)
		s.want += int64(n)
		return n, err
	}
	if s.want >= s.size {
		return 0, io.EOF
	}
	if s.want < s.at {
		again, err := s.open()
		if err != nil {
			return 0, err
		}
		s.File.Close()
		s.File, s.at = again, 0
	}
	skipped, err := io.CopyN(io.Discard, s.File, s.want-s.at)
	s.at += skipped
	if err != nil {
		return 0, unexpectedEnd(err)
	}
	n, err = s.File.Read(p)
	s.at += int64(n)
	s.want = s.at
	return n, err
}

// ReadAt reads from the copy, which the first call makes.
func (s *sequentialFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := s.spool(context.Background()); err != nil {
		return 0, err
	}
	return s.copy.ReadAt(p, offset)
}

// spool makes the copy. It has no name any more where a file can do without.
func (s *sequentialFile) spool(ctx context.Context) (err error) {
	if s.copy != nil {
		return nil
	}
	from := s.File
	if s.at > 0 {
		if from, err = s.open(); err != nil {
			return err
		}
		defer from.Close()
	}
	to, err := os.CreateTemp("", "terraform_registry-*")
	if err != nil {
		return notCopied(err)
	}
	n, err := io.Copy(to, contextReader{ctx, io.LimitReader(from, s.size+1)})
	if from == s.File {
		s.at += n
	}
	if err == nil && n != s.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		to.Close()
		os.Remove(to.Name())
		return notCopied(err)
	}
	os.Remove(to.Name()) // on Windows that is for Close
	s.copy = to
	return nil
}

// notCopied says what failed. Whatever it was, it was not that the file itself
// is gone or must not be read.
func notCopied(err error) error {
	if f := asFinding(err); f.reason == exhausted {
		return f
	}
	return found(Unreadable, "it has to be copied to a temporary file to be read, which failed: %v", withoutPath(err))
}

func (s *sequentialFile) Close() error {
	if s.copy != nil {
		s.copy.Close()
		os.Remove(s.copy.Name())
	}
	return s.File.Close()
}

// unexpectedEnd tells an end that comes early from one that is right.
func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
