// Package tlogtest provides a place for logs of tests.
package tlogtest

import (
	"bytes"
	"context"
	"io/fs"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// Origin is the name of the log.
const Origin = "registry.example.com/v1/tlog"

// A Storage is where a log lies, in memory. Several instances may use it.
type Storage struct {
	Bucket   *treetest.Bucket
	Verifier note.Verifier
	Public   string // the verifier's line

	signer note.Signer

	mu     sync.Mutex
	anchor []byte
}

// New returns a storage without a log.
func New(t testing.TB) *Storage {
	t.Helper()
	s := &Storage{Bucket: new(treetest.Bucket)}
	s.signer, s.Public = NewSigner(t, Origin)
	var err error
	if s.Verifier, err = note.NewVerifier(s.Public); err != nil {
		t.Fatal(err)
	}
	return s
}

// Twin returns a storage without a log for the same key.
func (s *Storage) Twin() *Storage {
	return &Storage{Bucket: new(treetest.Bucket), Verifier: s.Verifier, Public: s.Public, signer: s.signer}
}

// Backup returns a storage with the files that the log has now.
func (s *Storage) Backup() *Storage {
	backup := s.Twin()
	for name, content := range s.Bucket.Contents() {
		backup.Bucket.Put(name, content, time.Now())
	}
	return backup
}

// Options returns the options of a log.
func (s *Storage) Options() tlog.Options {
	return tlog.Options{
		Origin: Origin,
		Keys: tlog.Keys{
			Signers: []note.Signer{s.signer}, Verifiers: []note.Verifier{s.Verifier}, Public: []tlog.PublicKey{{Line: s.Public}},
		},
		Store: tlog.NewFolder(func() (tree.Part, error) {
			t, err := source.Directories{Root: "log"}.OpenIn(s.Bucket)
			return t.Root, err
		}),
		Anchor: anchor{s}, Interval: time.Millisecond,
	}
}

// Open opens the log, or begins it.
func (s *Storage) Open(ctx context.Context) (*tlog.Log, error) {
	return new(tlog.Opening).Open(ctx, s.Options())
}

// MustOpen opens the log until the end of the test.
func (s *Storage) MustOpen(t testing.TB) *tlog.Log {
	t.Helper()
	l, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// Entries returns the texts of all entries that the log has now, the oldest first.
func (s *Storage) Entries(t testing.TB) (entries []string) {
	t.Helper()
	l, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := l.Head()
	for n := int64(0); n*tlog.BundleSize < h.Size; n++ {
		bundle := sumdb.Tile{H: 8, L: -1, N: n, W: int(min(h.Size-n*tlog.BundleSize, tlog.BundleSize))}
		b, err := l.Tile(t.Context(), h, bundle)
		if err != nil {
			t.Fatal(err)
		}
		some, err := tlog.DecodeBundle(b)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, some...)
	}
	return entries
}

type anchor struct{ *Storage }

// Load implements tlog.Anchor.
func (a anchor) Load(context.Context) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.anchor == nil {
		return nil, fs.ErrNotExist
	}
	return a.anchor, nil
}

// Store implements tlog.Anchor.
func (a anchor) Store(_ context.Context, checkpoint []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.anchor = bytes.Clone(checkpoint)
	return nil
}
