package index_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A volume is an empty tree that can be unmounted.
type volume struct {
	options index.Options
	open    func() (tree.Tree, error)
	files   func() *indextest.Tree // the mounted files, or the empty folder
	unmount func() (mount func())
}

// eachVolume runs a test over a tree on the disk, in a bucket and in memory.
func eachVolume(t *testing.T, test func(t *testing.T, v volume)) {
	t.Run("disk", func(t *testing.T) {
		root := t.TempDir()
		open, files := source.Directories{Root: root}.Open, indextest.OnDisk(t, root)
		test(t, volume{index.Options{Open: open}, open, func() *indextest.Tree { return files }, func() func() { return treetest.Unmount(t, root) }})
	})
	t.Run("bucket", func(t *testing.T) {
		b, directories := new(treetest.Bucket), source.Directories{Root: "."}
		open, files := func() (tree.Tree, error) { return directories.OpenIn(b) }, indextest.InBucket(t, b)
		test(t, volume{index.Options{Listed: directories.Listed(b)}, open, func() *indextest.Tree { return files }, func() func() { return b.Unmount(t) }})
	})
	t.Run("memory", func(t *testing.T) {
		files := indextest.New(t)
		mounted := files
		open := func() (tree.Tree, error) { return mounted.Open() }
		test(t, volume{index.Options{Open: open}, open, func() *indextest.Tree { return mounted }, func() func() {
			mounted = indextest.New(t)
			return func() { mounted = files }
		}})
	})
}

// Code that writes into a part of the tree that is empty although versions are known there gets an
// error instead of the folder of an address, also before a scan has found the part empty. What is
// written there would be the content after which all the rest is dropped.
func TestGuardedTrees(t *testing.T) {
	eachVolume(t, func(t *testing.T, v volume) {
		x := newIndex(t, v.options)
		open := index.Guarded(v.open, func() []*index.Snapshot { return []*index.Snapshot{nil, x.Snapshot()} })
		var mount func()
		scan := func(offered int) {
			t.Helper()
			if n := len(scannedAgain(t, x).Report().Offered); n != offered {
				t.Errorf("%d are offered, want %d", n, offered)
			}
		}
		for _, step := range []struct {
			rule    string
			do      func()
			refused string
		}{
			{"there is no snapshot yet", func() {}, ""},
			{"there is nothing yet", func() { scan(0) }, ""},
			{"what is withheld has gone", func() {
				v.files().Write("providers/acme/demo/1.0.0/terraform-provider-demo_1.0.0_linux_amd64.zip", "no zip")
				scan(0)
				v.files().Remove("providers")
			}, ""},
			{"all is there", func() {
				v.files().ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64").Checksums()
				v.files().Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
				scan(2)
			}, ""},
			{"its volume is not mounted, which no scan has seen", func() { mount = v.unmount() }, "providers modules"},
			{"a scan has seen it", func() { scan(2) }, "providers modules"},
			{"there is what scans pass over", func() {
				v.files().Write("providers/.staging/x", "x").Write("providers/.gitkeep", "x").Write("modules/lost+found/x", "x").Write("modules/README.md", "x")
				scan(2)
			}, "providers modules"},
			{"a file is put into one part", func() { v.files().Remove("modules").Write("modules/another.txt", "x") }, "providers"},
			{"it is mounted again", func() {
				v.files().Remove("providers").Remove("modules")
				mount()
				scan(2)
			}, ""},
			{"all modules are removed", func() { v.files().Remove("modules"); scan(2) }, "modules"},
			{"a rescan is asked for", func() { rescan(t, x) }, ""},
			{"there is a provider, and no module any more", func() { scan(1) }, ""},
		} {
			step.do()
			files, err := open()
			if err != nil {
				t.Fatal(err)
			}
			if got := refused(t, files); got != step.refused {
				t.Errorf("%s: refused are %q, want %q", step.rule, got, step.refused)
			}
		}
	})
}

// A module whose versions are the tags of a repository counts before any of them has been fetched.
func TestAPartWithRepositoriesOnlyIsKept(t *testing.T) {
	eachVolume(t, func(t *testing.T, v volume) {
		x := newIndex(t, v.options)
		open := index.Guarded(v.open, func() []*index.Snapshot { return []*index.Snapshot{x.Snapshot()} })
		connected := func() bool {
			m := x.Snapshot().Metadata(index.PlaceOf(ownVPC))
			return m != nil && m.Git != nil
		}
		v.files().Write("modules/acme/vpc/aws/registry.hcl", "git {\n  url = \"https://git.example.com/vpc.git\"\n}\n")
		scannedAgain(t, x)
		mount := v.unmount()
		for _, step := range []struct {
			rule      string
			do        func()
			connected bool
			refused   string
		}{
			{"its volume is not mounted", func() { scannedAgain(t, x) }, true, "modules"},
			{"nor in the next scan", func() { scannedAgain(t, x) }, true, "modules"},
			{"it is mounted again", func() { mount(); scannedAgain(t, x) }, true, ""},
			{"it is empty on purpose", func() { v.unmount(); rescan(t, x) }, false, ""},
		} {
			step.do()
			files, err := open()
			if err != nil {
				t.Fatal(err)
			}
			if got := refused(t, files); connected() != step.connected || got != step.refused {
				t.Errorf("%s: the module has its repository: %t, and refused are %q", step.rule, connected(), got)
			}
		}
	})
}

// scannedAgain scans everything, as the timer does.
func scannedAgain(t *testing.T, x *index.Index) *index.Snapshot {
	t.Helper()
	x.Start()
	<-x.Ready()
	x.Hint()
	s := x.Snapshot()
	for change := x.Changed(); !s.Sees(change) || s.Totals.Pending > 0; {
		s = x.Next(t.Context(), s)
	}
	return s
}

// refused returns the parts of a tree in which no address has a folder that could be read or
// written.
func refused(t *testing.T, files tree.Tree) string {
	t.Helper()
	var parts []string
	for _, part := range []struct {
		name  string
		there address.Address
	}{
		{"providers", ownDemo},
		{"modules", ownVPC},
	} {
		beside, apart := part.there, part.there
		beside.Name, apart.Namespace = "other", "other"
		all := []address.Address{part.there, beside, apart, part.there.WithHostname("registry.example.org")}
		n := 0
		for _, a := range all {
			_, _, err := files.Folder(a).Locate()
			_, unread := files.Folder(a).ReadMetadata()
			switch {
			case err == nil && unread == nil:
				continue
			case !errors.Is(err, tree.ErrEmptied) || !errors.Is(err, tree.ErrNotWritable) || !strings.HasPrefix(err.Error(), part.name+": "):
				t.Errorf("%s: %v", a, err)
			case unread == nil, files.Folder(a).WriteMetadata(nil, []byte("x")) == nil:
				t.Errorf("registry.hcl of %s is read or written", a)
			}
			n++
		}
		switch n {
		case 0:
		case len(all):
			parts = append(parts, part.name)
		default:
			t.Errorf("%d of %d addresses in %s are refused", n, len(all), part.name)
		}
	}
	return strings.Join(parts, " ")
}
