package publish_test

import (
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A package is checked while it arrives. When its last byte is there, its content is not read
// from the disk.
func TestPackagesAreCheckedWhileTheyArrive(t *testing.T) {
	noise := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	read := new(atomic.Int64)
	r := newRegistry(t, func(o *publish.Options) {
		open := o.Open
		o.Open = func() (tree.Tree, error) {
			files, err := open()
			counted := func(fsys afero.Fs) afero.Fs { return treetest.CountedFs{Fs: fsys, Read: read} }
			treetest.Wrap(&files.Providers, counted)
			treetest.Wrap(&files.Modules, counted)
			return files, err
		}
	})
	d := dist{linuxZip: indextest.Zip("terraform-provider-demo_v1.0.0", string(noise))}.sum()
	r.putAll(d, sums, linuxZip)
	r.offers(d)
	f := moduleFile(t, "1.0.0.zip")
	if _, err := r.Put(t.Context(), f, upload(indextest.Zip("main.tf", "variable \"a\" {}", "noise", string(noise)))); err != nil {
		t.Fatal(err)
	}
	if n := read.Load(); n > 1<<18 {
		t.Errorf("%d bytes were read", n)
	}
}

// What SHA256SUMS does not list is refused before it is sent.
func TestFilesThatAreRefusedUnsent(t *testing.T) { eachTree(t, testFilesThatAreRefusedUnsent) }

func testFilesThatAreRefusedUnsent(t *testing.T, on treeKind) {
	d := newDist(t, "")
	for _, test := range []struct {
		rule, name string
		sum        wire.SHA256
		says       string
	}{
		{"a package that is not listed", "terraform-provider-demo_1.0.0_windows_amd64.zip", wire.SHA256{}, "does not list"},
		{"a package that is announced with another digest", linuxZip, sha256.Sum256([]byte("other")), "the SHA256SUMS that is staged lists"},
		{"a manifest that is announced with another digest", manifest, sha256.Sum256([]byte("other")), "the SHA256SUMS that is staged lists"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := on.newRegistry(t)
			r.mustPut(sums, d[sums], publish.Waiting)
			f := releaseFile(t, "1.0.0", test.name)
			_, err := r.Put(t.Context(), f, publish.Upload{Body: unreadable{}, Size: 1000, SHA256: test.sum})
			saying(t, err, publish.ErrRefused, test.says)
		})
	}
}

// The disk begins to sync a package when its last byte is there, and not after the checks.
func TestPackagesAreSyncedWhileTheyAreChecked(t *testing.T) {
	var faults treetest.Faults
	ahead := faults.SyncedAhead()
	r := newRegistry(t, func(o *publish.Options) { o.Open = faults.Open(o.Open) })
	d := newDist(t, "")
	r.mustPut(linuxZip, d[linuxZip], publish.Waiting)
	f := moduleFile(t, "1.0.0.zip")
	if _, err := r.Put(t.Context(), f, upload(indextest.Zip("main.tf", "variable \"a\" {}"))); err != nil {
		t.Fatal(err)
	}
	if !ahead() {
		t.Error("a package is checked before the disk syncs it")
	}
}

// An endless body counts what is read of it.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

// A file is refused as soon as a byte more has arrived than its request has announced. How long
// the files of a release are, SHA256SUMS does not say.
func TestFilesThatAreLongerThanAnnounced(t *testing.T) {
	const announced, most = 1000, 1 << 20
	r := newRegistry(t, func(o *publish.Options) { o.MaxSize = most })
	d := newDist(t, "")
	r.mustPut(sums, d[sums], publish.Waiting)
	f := releaseFile(t, "1.0.0", linuxZip)
	var body endless
	_, err := r.Put(t.Context(), f, publish.Upload{Body: &body, Size: announced})
	if !errors.Is(err, publish.ErrInterrupted) || body.read > announced+1 {
		t.Errorf("%d bytes were read: %v", body.read, err)
	}
}
