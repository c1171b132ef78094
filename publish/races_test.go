package publish_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// Two instances publish at once if a lock is lost, for example because a clock is ahead
// or an instance was stopped for a while.
func withoutLocks(o *publish.Options) {
	o.Lock = func(context.Context, string) (func(), error) { return func() {}, nil }
}

// An instanceAt is an instance on a tree of the disk. Something happens once, before an
// operation that gives a file or folder its name.
func instanceAt(t *testing.T, root string, lacks []string, operation, suffix string, happens func()) *registry {
	t.Helper()
	faults := new(treetest.Faults)
	var happened atomic.Bool
	faults.When(func(_ int, o treetest.Operation) error {
		if slices.Contains(lacks, o.Name) || lacks != nil && runtime.GOOS == "windows" && o.Name == "renameexclusive" {
			return errors.ErrUnsupported
		}
		if o.Name == operation && strings.HasSuffix(o.Path, suffix) && happened.CompareAndSwap(false, true) {
			happens()
		}
		return nil
	})
	t.Cleanup(func() {
		if !happened.Load() {
			t.Errorf("there was no %s of %s", operation, suffix)
		}
	})
	return newRegistryOver(t, root, withoutLocks, func(o *publish.Options) { o.Open = faults.Open(o.Open) })
}

// Versions that appear after the look for the module stay unchanged, and the publisher
// learns that another package is there.
func TestModulesThatComeMeanwhile(t *testing.T) {
	mine, theirs := indextest.TarGz("main.tf", `output "a" { value = 1 }`), indextest.TarGz("main.tf", `output "a" { value = 2 }`)
	for _, way := range []struct {
		name  string
		lacks []string
		last  string
	}{
		{"a rename that replaces nothing", nil, "renameexclusive"},
		{"a second name", []string{"renameexclusive"}, "link"},
		{"a reserved name", []string{"renameexclusive", "link"}, "openfile"},
	} {
		for _, test := range []struct {
			rule    string
			name    string // in the module's folder
			content string
			same    bool
		}{
			{"other bytes", "1.0.0.tar.gz", theirs, false},
			{"the same bytes", "1.0.0.tar.gz", mine, true},
			{"another format", "1.0.0.zip", indextest.Zip("main.tf", ""), false},
			{"another spelling of the version", "v1.0.0.tgz", theirs, false},
			{"build metadata", "1.0.0+x.tgz", theirs, false},
			{"a folder", "1.0.0/main.tf", `output "a" { value = 2 }`, false},
		} {
			t.Run(way.name+", copied: "+test.rule, func(t *testing.T) {
				root := t.TempDir()
				files := indextest.OnDisk(t, root)
				name := "modules/acme/vpc/aws/" + test.name
				r := instanceAt(t, root, way.lacks, way.last, "/1.0.0.tar.gz", func() { files.Write(name, test.content) })
				result, err := r.putModule("1.0.0.tar.gz", mine)
				if test.same && (err != nil || result.Outcome != publish.Unchanged) || !test.same && !errors.Is(err, publish.ErrConflict) {
					t.Errorf("got %+v, %v", result, err)
				}
				r.holds(name)
				if r.Read(name) != test.content {
					t.Error("it has other bytes")
				}
			})
			if !strings.Contains(test.name, "/") && !strings.Contains(test.name, "+") {
				t.Run(way.name+", published by another instance: "+test.rule, func(t *testing.T) {
					root := t.TempDir()
					var first error
					other := newRegistryOver(t, root, withoutLocks)
					stopped := instanceAt(t, root, way.lacks, way.last, "/1.0.0.tar.gz", func() { _, first = other.putModule(test.name, test.content) })
					_, second := stopped.putModule("1.0.0.tar.gz", mine)
					if first != nil || (second == nil) != test.same || second != nil && !errors.Is(second, publish.ErrConflict) {
						t.Errorf("the first is told %v, and the second %v", first, second)
					}
					if n := len(stopped.files()); n != 1 {
						t.Errorf("there are %v", stopped.files())
					}
				})
			}
		}
	}
}

// The folder of a release neither replaces nor joins one that is copied in at the last
// moment. It is published when the copy has gone.
func TestReleasesThatComeMeanwhile(t *testing.T) {
	d := newDist(t, "")
	const folder = "providers/acme/demo/1.0.0/"
	for _, way := range []struct {
		name  string
		lacks []string
		last  string
	}{
		{"a rename that replaces nothing", nil, "renameexclusive"},
		{"a rename", []string{"renameexclusive"}, "rename"},
	} {
		for _, test := range []struct {
			rule string
			copy func(files *indextest.Tree) error
			kind error
		}{
			{"a folder with a file", func(files *indextest.Tree) error { files.Write(folder+linuxZip, "copied"); return nil }, publish.ErrConflict},
			{"an empty folder", func(files *indextest.Tree) error { return files.Fs.MkdirAll(folder, 0o755) }, tree.ErrReserved},
		} {
			t.Run(way.name+": "+test.rule, func(t *testing.T) {
				root := t.TempDir()
				files := indextest.OnDisk(t, root)
				r := instanceAt(t, root, way.lacks, way.last, "/acme/demo/1.0.0", func() {
					if err := test.copy(files); err != nil {
						t.Error(err)
					}
				})
				for _, name := range d.names()[1:] {
					r.mustPut(name, d[name], publish.Waiting)
				}
				last := d.names()[0]
				if _, err := r.put(last, d[last]); !errors.Is(err, test.kind) {
					t.Errorf("got %v", err)
				}
				if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(folder+sums))); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the folder has files of the release (%v)", err)
				}
				files.Remove(strings.TrimSuffix(folder, "/"))
				r.mustPut(last, d[last], publish.Added)
				r.offers(d)
			})
		}
	}
}

// A version counts as present in any format, spelling or build.
func TestModulesOfOneVersion(t *testing.T) {
	content := indextest.TarGz("main.tf", `output "a" { value = 1 }`)
	for _, present := range []string{"1.0.0.tar.gz", "v1.0.0.zip", "1.0.0/main.tf", "v1.0.0/main.tf", "1.0.0+x.tgz", "1.0.0+x/main.tf", "1.tgz"} {
		for _, name := range []string{"1.0.0.tgz", "1.0.0+y.tar.gz"} {
			r := newRegistry(t)
			r.Write("modules/acme/vpc/aws/"+present, indextest.TarGz("main.tf", ""))
			if _, err := r.putModule(name, content); !errors.Is(err, publish.ErrConflict) {
				t.Errorf("with %s, %s: %v", present, name, err)
			}
		}
	}
	t.Run("of several builds it is the one that is sent", func(t *testing.T) {
		r := newRegistry(t)
		r.Write("modules/acme/vpc/aws/1.0.0+x.tgz", indextest.TarGz("main.tf", "")).Write("modules/acme/vpc/aws/1.0.0.tgz", content)
		if result, err := r.putModule("1.0.0.tgz", content); err != nil || result.Outcome != publish.Unchanged {
			t.Errorf("got %+v, %v", result, err)
		}
	})
	t.Run("one lock is that of all of them", func(t *testing.T) {
		l := new(locks)
		for _, name := range []string{"1.0.0.tgz", "v1.0.0.tar.gz", "1.0.0+y.tgz"} {
			r := newRegistry(t, func(o *publish.Options) { o.Lock = l.lock })
			if _, err := r.putModule(name, content); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(l.keys) != 1 {
			t.Errorf("the locks are %v", l.keys)
		}
	})
}

// An empty file is the beginning of a copy, or a file whose process died before it
// could write the package.
func TestEmptyModules(t *testing.T) {
	content := indextest.TarGz("main.tf", `output "a" { value = 1 }`)
	for _, name := range []string{"1.0.0.tar.gz", "v1.0.0.zip"} {
		r := newRegistry(t)
		r.Write("modules/acme/vpc/aws/"+name, "")
		now := time.Now()
		if err := r.Fs.Chtimes("modules/acme/vpc/aws/"+name, now, now); err != nil {
			t.Fatal(err)
		}
		if _, err := r.putModule("1.0.0.tar.gz", content); !errors.Is(err, tree.ErrReserved) {
			t.Errorf("a new %s: %v", name, err)
		}
		r.Write("modules/acme/vpc/aws/"+name, "") // long ago
		if _, err := r.putModule("1.0.0.tar.gz", content); err != nil {
			t.Errorf("an old %s: %v", name, err)
		}
	}
}

// A symlink that leads nowhere blocks publications of its own version, since its target
// may still come. Other versions can be published.
func TestSymlinksToNothing(t *testing.T) {
	content := indextest.TarGz("main.tf", `output "a" { value = 1 }`)
	for name, file := range map[string]string{
		"1.0.0": "1.0.0.tgz", "v1.0.0": "1.0.0.tgz", "1.0.0.tar.gz": "1.0.0.tgz", "1.0.0+x.zip": "1.0.0.tgz", "1.0.0-rc.1.zip": "1.0.0-rc.1.tgz",
	} {
		r := newRegistry(t)
		r.link("nothing", "modules/acme/vpc/aws/"+name)
		if _, err := r.putModule(file, content); !errors.Is(err, tree.ErrNotWritable) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.putModule("1.1.0.tgz", content); err != nil {
			t.Errorf("with %s, another version: %v", name, err)
		}
	}
	for _, link := range []string{"1.0.0", "1.0.0+x", builtZip("1.0.0"), builtZip("1.0.0+x")} {
		r := newRegistry(t)
		r.link("nothing", "providers/acme/demo/"+link)
		for _, version := range []string{"1.0.0", "1.0.0+x", "1.1.0"} {
			_, err := r.putBuild(version, builtZip(version), upload(newBuild(version)[builtZip(version)]))
			if blocked := version != "1.1.0"; blocked && !errors.Is(err, tree.ErrNotWritable) || !blocked && err != nil {
				t.Errorf("with %s, %s of a provider: %v", link, version, err)
			}
		}
	}
	d := newDist(t, "")
	r := newRegistry(t)
	r.link("nothing", "providers/acme/other")
	r.link("nothing", "keys/other.asc")
	r.putAll(d, d.names()...)
}
