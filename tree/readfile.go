package tree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// These functions read outside of scans, for code that writes into a tree: the snapshot may
// be older than the files on the disk.

// MaxDocument bounds the small documents of a tree, in bytes: SHA256SUMS, signatures,
// manifests, keys.
const MaxDocument = 1 << 20

// ErrDocumentTooLarge means that a document exceeds the limit for reading.
var ErrDocumentTooLarge = fmt.Errorf("%w: a document in it is too large", ErrNotWritable)

// ReadFile returns the content of a small file, or nil if it does not exist. A symlink is
// followed. Anything but a regular file is refused without opening it, since opening a named
// pipe would wait for its writer. The error is ErrDocumentTooLarge for more than limit
// bytes, and otherwise a StorageError.
func (p Part) ReadFile(name string, limit int64) ([]byte, error) {
	f, _, err := p.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, StorageError(err)
	case int64(len(content)) > limit:
		return nil, ErrDocumentTooLarge
	}
	return content, nil
}

// Open opens a regular file, and returns its information. The error wraps fs.ErrNotExist if
// the file does not exist, and otherwise is a StorageError. A symlink is followed. A
// dangling symlink does not count as absent, since its target may be back a moment later.
func (p Part) Open(name string) (afero.File, fs.FileInfo, error) {
	f, info, err := p.OpenRegular(name)
	return f, info, p.wrapUnlessAbsent(name, err)
}

// Stat returns the information about a name, symlinks followed. Its errors are like those
// Open returns.
func (p Part) Stat(name string) (fs.FileInfo, error) {
	info, err := p.Lookup(name)
	return info, p.wrapUnlessAbsent(name, err)
}

// wrapUnlessAbsent returns an error about a name as a StorageError, unless the name does not exist.
func (p Part) wrapUnlessAbsent(name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return StorageError(err)
	}
	return cmp.Or(p.leadsNowhere(name), err)
}

// leadsNowhere returns ErrLeadsNowhere if a name that was found not to exist is a symlink, or
// has one on its way below the root that leads to nothing. A target that is back by now was
// not absent. Any other StorageError says that this cannot be told at the moment.
func (p Part) leadsNowhere(name string) error {
	if l, ok := p.local(); ok {
		return l.LeadsNowhere(name)
	}
	return nil
}

// Exists reports whether there is a file or folder of that name. The error is a
// StorageError.
func (p Part) Exists(name string) (bool, error) {
	_, err := p.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Digest reads a file to its end. The error is a StorageError.
func (p Part) Digest(name string) (sum wire.SHA256, err error) {
	f, _, err := p.Open(name)
	if err != nil {
		return sum, StorageError(err)
	}
	defer f.Close()
	sum, err = DigestFile(context.Background(), f)
	return sum, StorageError(err)
}

// DigestFile reads f from its current offset to its end.
func DigestFile(ctx context.Context, f io.Reader) (sum wire.SHA256, err error) {
	h := sha256.New()
	if _, err := HashFile(h, contextReader{ctx, f}); err != nil {
		return sum, err
	}
	return wire.SHA256(h.Sum(nil)), nil
}

// HashFile writes f from its current offset to its end to h, which is one or several hashes.
// Its buffers are used again: a new one for each of a million small files would be most of
// the memory that reading them allocates.
func HashFile(h io.Writer, f io.Reader) (size int64, err error) {
	b := hashBuffers.Get().(*[hashChunk]byte)
	defer hashBuffers.Put(b)
	return io.CopyBuffer(h, f, b[:])
}

const hashChunk = 32 << 10

var hashBuffers = sync.Pool{New: func() any { return new([hashChunk]byte) }}

// WithContext returns a reader that fails once ctx has ended, so that a long read ends with
// the request or scan that started it.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, fmt.Errorf("reading ended: %w", err)
	}
	return c.r.Read(p)
}

// ReadFailure returns the error with which a store failed to return the content of a file, if
// it did.
func ReadFailure(f afero.File) error {
	if o, ok := f.(interface{ Failure() error }); ok {
		return o.Failure()
	}
	return nil
}

// ReadAcross fills p by calling readSome, which reads from one header, file or
// trailer of an archive at a time.
func ReadAcross(p []byte, offset int64, readSome func(p []byte, offset int64) (int, error)) (n int, err error) {
	for n < len(p) {
		m, err := readSome(p[n:], offset+int64(n))
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
