package publish_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// run lets the publisher look at unfinished releases, as at the start.
func (r *registry) run() (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func TestStagedFilesSurviveARestart(t *testing.T) { eachTree(t, testStagedFilesSurviveARestart) }

func testStagedFilesSurviveARestart(t *testing.T, on treeKind) {
	d := newDist(t, "")
	r := on.newRegistry(t)
	r.mustPut(linuxZip, d[linuxZip], publish.Waiting)
	r.mustPut(sums, d[sums], publish.Waiting)
	again := r.again(t)
	defer again.run()()
	again.mustPut(manifest, d[manifest], publish.Waiting)
	again.mustPut(darwinZip, d[darwinZip], publish.Added)
	again.offers(d)
}

func TestUnfinishedReleasesAreDropped(t *testing.T) { eachTree(t, testUnfinishedReleasesAreDropped) }

func testUnfinishedReleasesAreDropped(t *testing.T, on treeKind) {
	d := newDist(t, "")
	now := time.Now()
	later := func(o *publish.Options) {
		o.Now = func() time.Time { return now.Add(2 * time.Hour) }
		o.Staging = time.Hour
	}
	r := on.newRegistry(t)
	r.mustPut(linuxZip, d[linuxZip], publish.Waiting)
	stop := r.run()
	r.mustPut(darwinZip, d[darwinZip], publish.Waiting) // the young release stays
	stop()
	if _, err := r.State(t.Context(), demo, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	again := r.again(t, later)
	defer again.run()()
	eventually(t, "the old release is dropped", func() bool { return len(again.files()) == 0 })
	eventually(t, "the folder of staged releases is removed", func() bool {
		if on.bucket {
			return true
		}
		_, err := os.Stat(filepath.Join(r.root, "providers", tree.StagingName))
		return os.IsNotExist(err)
	})
}

// A complete release for which the tree has no place is dropped when its time is over.
func TestReleasesWithoutAPlaceAreDropped(t *testing.T) {
	eachTree(t, testReleasesWithoutAPlaceAreDropped)
}

func testReleasesWithoutAPlaceAreDropped(t *testing.T, on treeKind) {
	d := newDist(t, "")
	r := on.newRegistry(t)
	r.Write("providers/acme/demo/1.0.0/docs/index.md", "# Demo")
	for _, name := range []string{linuxZip, darwinZip, sums} {
		r.mustPut(name, d[name], publish.Waiting)
	}
	_, err := r.put(manifest, d[manifest])
	saying(t, err, publish.ErrConflict, "without a whole release")
	again := r.again(t, func(o *publish.Options) {
		o.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	})
	defer again.run()()
	eventually(t, "it is dropped", func() bool { return len(again.files()) == 1 })
}

// Staged documentation that the disk has damaged can never replace the documentation of its
// release. It is dropped when its time is over.
func TestDamagedDocumentationIsDropped(t *testing.T) { eachTree(t, testDamagedDocumentationIsDropped) }

func testDamagedDocumentationIsDropped(t *testing.T, on treeKind) {
	d := newDist(t, "")
	r := on.newRegistry(t)
	r.putAll(d, d.names()...)
	r.mustPut("docs.zip", indextest.Zip("docs/index.md", "one"), publish.Added)
	published := r.files()
	r.Write(stageOfDemo+"docs.zip", "damaged")
	again := r.again(t, func(o *publish.Options) {
		o.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	})
	again.tidy()
	again.holds(published...)
	if text := again.log.String(); strings.Contains(text, "dropped an unfinished release") || !strings.Contains(text, "dropped documentation") {
		t.Errorf("the log says %s", text)
	}
}

// Of a release that the tree has, nothing goes with what is staged beside it, not even what looks
// like a part of an interrupted upload.
func TestPresentReleasesAreNotDropped(t *testing.T) {
	r := newRegistryInBucket(t, new(treetest.Bucket))
	d := newDist(t, "")
	for name, content := range d {
		r.Write("providers/acme/demo/"+name, content) // beside the folder of the version
	}
	long := time.Now().Add(-time.Hour)
	const folder = "providers/acme/demo/1.0.0/"
	r.bucket.Put(folder+tree.UploadName, `{"format":1}`, long)
	r.bucket.Put(folder+"docs/index.md", "# Demo", long)
	present := r.files()
	r.Write(stageOfDemo+"docs.zip", "damaged")
	again := r.again(t, func(o *publish.Options) {
		o.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	})
	again.tidy()
	again.holds(present...)
}

// That unfinished releases are not looked at is logged.
func TestStagesThatCannotBeListed(t *testing.T) {
	var faults treetest.Faults
	r := newRegistry(t, func(o *publish.Options) { o.Open = faults.Open(o.Open) })
	d := newDist(t, "")
	r.mustPut(linuxZip, d[linuxZip], publish.Waiting)
	var once sync.Once
	failed := make(chan struct{})
	faults.When(func(_ int, o treetest.Operation) error {
		if o.Path != "providers/"+tree.StagingName {
			return nil
		}
		once.Do(func() { close(failed) })
		return syscall.EIO
	})
	stop := r.run()
	<-failed
	stop()
	if log := r.log.String(); !strings.Contains(log, "looking at what is staged") || !strings.Contains(log, syscall.EIO.Error()) {
		t.Errorf("the log has %q", log)
	}
}

// The next process completes what a killed process has left.
func TestWhatAKilledProcessLeaves(t *testing.T) {
	d := newDist(t, "")
	stage := "providers/" + tree.StagingName + "/acme@demo@1.0.0/"
	t.Run("a complete release before its folder was renamed", func(t *testing.T) {
		r := newRegistry(t)
		for name, content := range d {
			r.Write(stage+"release/acme/demo/1.0.0/"+name, content)
		}
		defer r.again(t).run()()
		eventually(t, "it is published", func() bool { return r.index.Snapshot().Provider(index.PlaceOf(demo)).Release("1.0.0") != nil })
		r.offers(d)
		eventually(t, "nothing is left", func() bool { return len(r.files()) == len(d) })
	})
	t.Run("a decision that was not completed", func(t *testing.T) {
		r := newRegistry(t)
		r.Write(stage+"release/acme/demo/1.0.0/"+linuxZip, d[linuxZip])
		r.mustPut(manifest, d[manifest], publish.Waiting)
		r.mustPut(sums, d[sums], publish.Waiting)
		r.mustPut(darwinZip, d[darwinZip], publish.Added)
		r.offers(d)
		r.isClean()
	})
	t.Run("files that were being received and documentation that was being unpacked", func(t *testing.T) {
		r := newRegistry(t)
		r.Write("providers/"+tree.StagingName+"/."+linuxZip+".ABCDEFGHIJ.part", "half")
		r.Write("modules/"+tree.StagingName+"/.1.0.0.tar.gz.ABCDEFGHIJ.part", "half")
		r.Write(stage+"docs.new/index.md", "half")
		defer r.again(t).run()()
		eventually(t, "nothing is left", func() bool { return len(r.files()) == 0 })
	})
	t.Run("documentation beside the documentation that it replaces", func(t *testing.T) {
		for _, names := range [][2]string{{"docs.tgz", "docs.zip"}, {"docs.zip", "docs.tgz"}} {
			r := newRegistry(t)
			archives := map[string]func(...string) string{"docs.tgz": indextest.TarGz, "docs.zip": indextest.Zip}
			r.mustPut(names[1], archives[names[1]]("docs/index.md", "new"), publish.Waiting)
			r.Write(stage+names[0], archives[names[0]]("docs/index.md", "old"))
			r.putAll(d, d.names()...)
			if text := r.Read("providers/acme/demo/1.0.0/docs/index.md"); text != "new" {
				t.Errorf("of %s and then %s, the page says %q", names[0], names[1], text)
			}
		}
	})
	t.Run("documentation that was being replaced", func(t *testing.T) {
		r := newRegistry(t)
		r.putAll(d, d.names()...)
		r.Write(stage+"docs.old/index.md", "old")
		r.Write(stage+"docs.new/index.md", "half")
		r.Write(stage+"docs.zip", indextest.Zip("docs/index.md", "new"))
		defer r.again(t).run()()
		eventually(t, "nothing is left", func() bool { return !strings.Contains(fmt.Sprint(r.files()), tree.StagingName) })
		if text := r.Read("providers/acme/demo/1.0.0/docs/index.md"); text != "new" {
			t.Errorf("the page says %q", text)
		}
	})
}

// An interrupted publication may have copied files into a bucket. They are replaced
// once their release is no longer staged, because of a lifecycle rule or an operator
// who tidies up. Until they are old enough, they may also be a copy that an operator is
// making.
func TestUploadOfAReleaseThatIsNotStagedAnyMore(t *testing.T) {
	interrupted := func(t *testing.T) *registry {
		bucket := new(treetest.Bucket)
		long := time.Now().Add(-time.Hour)
		var down atomic.Bool
		down.Store(true)
		bucket.Now = func() time.Time {
			if down.Load() {
				return long
			}
			return time.Now()
		}
		bucket.Fail = func(operation, name string) error {
			if down.Load() && operation == "put" && strings.HasSuffix(name, "/1.0.0/"+sums) && !strings.Contains(name, tree.StagingName) {
				return errDown
			}
			return nil
		}
		r := newRegistryInBucket(t, bucket)
		d := newDist(t, "one")
		for _, name := range []string{linuxZip, darwinZip, manifest} {
			r.mustPut(name, d[name], publish.Waiting)
		}
		if _, err := r.put(sums, d[sums]); !errors.Is(err, tree.ErrStore) {
			t.Fatalf("the store failed: %v", err)
		}
		down.Store(false)
		r.Tree.Remove("providers/" + tree.StagingName)
		return r
	}
	another := newDist(t, "two")
	t.Run("it is replaced", func(t *testing.T) {
		r := interrupted(t).again(t)
		r.putAll(another, linuxZip, darwinZip, manifest, sums)
		r.offers(another)
	})
	t.Run("not while it may be a copy that is being made", func(t *testing.T) {
		r := interrupted(t)
		if _, err := r.bucket.Replace(t.Context(), "providers/acme/demo/1.0.0/"+darwinZip, strings.NewReader(another[darwinZip])); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{linuxZip, darwinZip, manifest} {
			r.mustPut(name, another[name], publish.Waiting)
		}
		before := r.files()
		if _, err := r.put(sums, another[sums]); !errors.Is(err, tree.ErrReserved) {
			t.Errorf("the answer is %v", err)
		}
		if err := r.Drop(t.Context(), demo, "1.0.0"); err != nil {
			t.Error(err)
		}
		for _, name := range before {
			if !strings.Contains(name, tree.StagingName) && !slices.Contains(r.files(), name) {
				t.Errorf("%s has been removed", name)
			}
		}
	})
}

// On a disk only an operator makes a folder with an upload.json, as a copy from a
// bucket.
func TestCopyOfAFolderOfABucketIsLeftAlone(t *testing.T) {
	r := newRegistry(t)
	d := newDist(t, "")
	r.mustPut(linuxZip, d[linuxZip], publish.Waiting)
	const claim, copied = "providers/acme/demo/1.0.0/upload.json", "providers/acme/demo/1.0.0/" + darwinZip
	r.Write(claim, `{"format":1}`)
	r.Write(copied, d[darwinZip])
	if err := r.Drop(t.Context(), demo, "1.0.0"); err != nil {
		t.Error(err)
	}
	r.holds(claim, copied)
	for _, name := range []string{linuxZip, darwinZip, manifest, sums} {
		if _, err := r.put(name, d[name]); err != nil && !errors.Is(err, publish.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r.Read(copied) != d[darwinZip] {
		t.Error("the copy has been changed")
	}
}
