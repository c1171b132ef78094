package publish_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// The limits of one token and of all tokens apply to staged files. Files that are
// published, dropped or refused take up no room.
func TestStagedFilesHaveALimit(t *testing.T) { eachTree(t, testStagedFilesHaveALimit) }

func testStagedFilesHaveALimit(t *testing.T, on treeKind) {
	d := newDist(t, "")
	size := func(names ...string) (n int64) {
		for _, name := range names {
			n += int64(len(d[name]))
		}
		return n
	}
	put := func(r *registry, subject, version, name string, known bool) error {
		f := releaseFile(t, version, strings.ReplaceAll(name, "1.0.0", version))
		u := upload(d[name])
		if u.Subject = subject; !known {
			u.Size = -1
		}
		_, err := r.Put(t.Context(), f, u)
		return err
	}
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("with its size known %v", known), func(t *testing.T) {
			r := on.newRegistry(t, func(o *publish.Options) { // two packages exceed the limit of a token, four the limit of all
				o.MaxStagedEach, o.MaxStaged = size(manifest, linuxZip, linuxZip)-1, size(manifest, linuxZip, linuxZip, linuxZip, linuxZip)-1
			})
			must := func(what string, err error) {
				t.Helper()
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			full := func(what string, err error, says string) {
				t.Helper()
				if !errors.Is(err, publish.ErrNoRoom) || !strings.Contains(err.Error(), says) {
					t.Errorf("%s: %v", what, err)
				}
			}
			must("the first", put(r, "ci", "1.0.0", linuxZip, known))
			must("a second", put(r, "ci", "1.0.0", manifest, known))
			must("the same again", put(r, "ci", "1.0.0", manifest, known))
			full("one too many of a token", put(r, "ci", "2.0.0", linuxZip, known), "this token may stage")
			must("another token", put(r, "alice", "2.0.0", linuxZip, known))
			must("another token", put(r, "bob", "3.0.0", linuxZip, known))
			full("one too many of all", put(r, "carol", "4.0.0", linuxZip, known), "of unfinished releases may be staged")

			must("discarding", r.Drop(t.Context(), demo, "2.0.0"))
			must("after one has been dropped", put(r, "carol", "4.0.0", linuxZip, known))
			must("discarding", r.Drop(t.Context(), demo, "3.0.0"))
			must("discarding", r.Drop(t.Context(), demo, "4.0.0"))
			if err := put(r, "bob", "1.0.0", sums, known); err != nil {
				t.Fatal(err)
			}
			must("the last file", put(r, "dave", "1.0.0", darwinZip, known))
			must("after it has been published", put(r, "ci", "2.0.0", linuxZip, known))
		})
	}
}

// What another instance has published or discarded takes up no room.
func TestFilesThatAnotherInstanceHasEnded(t *testing.T) {
	eachTree(t, testFilesThatAnotherInstanceHasEnded)
}

func testFilesThatAnotherInstanceHasEnded(t *testing.T, on treeKind) {
	d := newDist(t, "")
	var all int64
	for _, content := range d {
		all += int64(len(content))
	}
	for _, test := range []struct {
		rule string
		ends func(other *registry) error
	}{
		{"published", func(other *registry) error { _, err := other.put(linuxZip, d[linuxZip]); return err }},
		{"discarded", func(other *registry) error { return other.Drop(t.Context(), demo, "1.0.0") }},
	} {
		for _, size := range []int64{-1, int64(len(d[linuxZip]))} {
			t.Run(fmt.Sprintf("%s, before one of %d bytes", test.rule, size), func(t *testing.T) {
				one := on.newRegistry(t, func(o *publish.Options) { o.MaxStaged = all - 1 })
				for _, name := range d.names() {
					if name != linuxZip {
						one.mustPut(name, d[name], publish.Waiting)
					}
				}
				if err := test.ends(one.again(t)); err != nil {
					t.Fatal(err)
				}
				f := releaseFile(t, "2.0.0", "terraform-provider-demo_2.0.0_linux_amd64.zip")
				u := upload(d[linuxZip])
				u.Size = size
				if _, err := one.Put(t.Context(), f, u); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The publisher looks once a second for stages that other instances have ended, however many files it refuses.
func TestRefusedFilesAreCheap(t *testing.T) {
	d := newDist(t, "")
	var looks atomic.Int64
	b := &treetest.Bucket{Fail: func(operation, name string) error {
		if operation == "list" && path.Base(name) == tree.StagingName {
			looks.Add(1)
		}
		return nil
	}}
	now := time.Now()
	r := newRegistryInBucket(t, b, func(o *publish.Options) {
		o.MaxStaged = int64(len(d[linuxZip])) + 10
		o.Now = func() time.Time { return now }
	})
	r.mustPut(linuxZip, d[linuxZip], publish.Waiting)
	looksOfRefused := func(files int) int64 {
		looks.Store(0)
		for range files {
			if _, err := r.put(darwinZip, d[darwinZip]); !errors.Is(err, publish.ErrNoRoom) {
				t.Fatal(err)
			}
		}
		return looks.Load()
	}
	const files = 20
	// Each file looks once for its own stage, and the first one for all of them.
	if n := looksOfRefused(files); n != files+1 {
		t.Errorf("it has looked %d times for %d files", n, files)
	}
	now = now.Add(time.Second)
	if n := looksOfRefused(files); n != files+1 {
		t.Errorf("a second later, it has looked %d times for %d files", n, files)
	}
}

// An upload that is refused, ends early or cannot be stored takes up no room.
func TestFilesThatAreNotTakenTakeNoRoom(t *testing.T) {
	content := indextest.TarGz("main.tf", `output "a" { value = 1 }`)
	var disk treetest.Faults
	r := newRegistry(t, func(o *publish.Options) { o.Open, o.MaxStagedEach = disk.Open(o.Open), int64(len(content))+100 })
	for range 5 {
		f := moduleFile(t, "1.0.0.tar.gz")
		disk.When(func(_ int, o treetest.Operation) error {
			if tree.IsTemporary(path.Base(o.Path)) {
				return syscall.ENOSPC
			}
			return nil
		})
		if _, err := r.Put(t.Context(), f, upload(content)); err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Fatal(err)
		}
		disk.When(nil)
		if _, err := r.Put(t.Context(), f, publish.Upload{Body: strings.NewReader("no archive" + content), Size: -1}); !errors.Is(err, publish.ErrRefused) {
			t.Fatal(err)
		}
		if _, err := r.Put(t.Context(), f, publish.Upload{Body: strings.NewReader(content[:10]), Size: int64(len(content))}); !errors.Is(err, publish.ErrInterrupted) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Put(ctx, f, publish.Upload{Body: io.MultiReader(strings.NewReader(content[:10]), unreadable{}), Size: -1}); err == nil {
			t.Fatal("it is taken")
		}
	}
	for i := range 5 {
		if _, err := r.putModule(fmt.Sprintf("1.%d.0.tar.gz", i), content); err != nil {
			t.Fatal(err)
		}
	}
}

// Files that were staged before a restart, or by another instance, count as soon as
// they have been measured.
func TestStagedFilesOfBeforeCount(t *testing.T) {
	d := newDist(t, "")
	limit := func(o *publish.Options) { o.MaxStaged = int64(len(d[linuxZip])) + 10 }
	r := newRegistry(t, limit)
	r.mustPut(linuxZip, d[linuxZip], publish.Waiting)
	again := r.again(t, limit)
	stop := again.run()
	defer stop()
	eventually(t, "it counts", func() bool {
		_, err := again.put(darwinZip, "this is no archive")
		return errors.Is(err, publish.ErrNoRoom)
	})
}
