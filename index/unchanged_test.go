package index_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// identities returns everything in a snapshot that clients get: its documents are encoded
// once, and have the same tag for as long as they do not change.
func identities(s *index.Snapshot) (all []any) {
	provider := func(p *index.Provider) {
		all = append(all, p, p.Versions(), p.Index())
		for _, r := range p.Releases {
			all = append(all, r, r.Archives())
			for _, k := range r.Packages {
				all = append(all, k, k.File, k.Download())
			}
		}
	}
	module := func(m *index.Module) {
		all = append(all, m, m.List())
		for _, v := range m.Versions {
			all = append(all, v, v.Archive)
		}
	}
	for _, a := range []address.Address{{Namespace: "acme", Name: "demo"}, {Namespace: "acme", Name: "other"}} {
		provider(s.Provider(index.PlaceOf(a)))
		provider(s.Provider(index.Place{Address: a.WithHostname("registry.example.com"), Merged: true}))
	}
	for _, name := range []string{"vpc", "network"} {
		a := address.Address{Namespace: "acme", Name: name, System: "aws"}
		module(s.Module(index.PlaceOf(a)))
		module(s.Module(index.Place{Address: a.WithHostname("registry.example.com"), Merged: true}))
	}
	return all
}

func TestAnUnchangedTreeKeepsItsIdentity(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	for _, test := range []struct {
		rule string
		tree func(t *testing.T) (*indextest.Tree, func() (tree.Tree, error))
	}{
		{"on the local disk", func(t *testing.T) (*indextest.Tree, func() (tree.Tree, error)) {
			dir := t.TempDir()
			return indextest.OnDisk(t, dir), source.Directories{Root: dir}.Open
		}},
		{"on another file system", func(t *testing.T) (*indextest.Tree, func() (tree.Tree, error)) {
			files := indextest.New(t)
			return files, files.Open
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files, open := test.tree(t)
			files.Keys("acme", publisher)
			files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Manifest("5.0").Signed(publisher)
			files.ProviderIn("providers/acme/demo/1.1.0", "demo", "1.1.0", "linux_amd64")
			files.Provider("registry.example.com/acme/demo", "2.0.0", "linux_amd64").Checksums()
			files.Write("providers/acme/demo/registry.hcl", `deprecated "1.0.0" { reason = "old" }`)
			files.Write("providers/registry.example.com/acme/demo/registry.hcl", `description = "a provider"`)
			files.Provider("acme/other", "1.0.0", "linux_amd64")
			files.Write("providers/acme/other/notes.txt", "ignored")
			files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"))
			files.Write("modules/acme/vpc/aws/1.1.0/main.tf", "# a folder\n")
			files.Write("modules/registry.example.com/acme/vpc/aws/2.0.0.zip", indextest.Zip("main.tf", "# merged\n"))
			files.Write("modules/acme/vpc/aws/registry.hcl", `deprecated "1.0.0" {}`)
			files.Write("modules/acme/network/aws/1.0.0.zip", indextest.Zip("main.tf", "# another\n"))

			o := options(t, open)
			o.Now = inAnHour
			x := newIndex(t, o)
			first := rescan(t, x)
			known := identities(first)
			for range 3 {
				s := rescan(t, x)
				for i, now := range identities(s) {
					if now != known[i] {
						t.Errorf("another %T is served", now)
					}
				}
				if !reflect.DeepEqual(s.Report(), first.Report()) {
					t.Errorf("the report is\n%+v and was\n%+v", s.Report(), first.Report())
				}
				if s.Read != 0 || s.Recalled != 9 {
					t.Errorf("%d archives are read, %d recalled", s.Read, s.Recalled)
				}
			}
		})
	}
}

// Every change in the folder of a provider is noticed, even if the folder did not change for
// long.
func TestChangesAfterManyScans(t *testing.T) {
	const folder = "providers/acme/demo/"
	publisher := indextest.NewPublisher(t)
	for _, test := range []struct {
		rule   string
		change func(files *indextest.Tree)
		seen   func(s *index.Snapshot, demo *index.Provider) bool
	}{
		{"a version is added", func(files *indextest.Tree) { files.Provider("acme/demo", "2.0.0", "linux_amd64") },
			func(_ *index.Snapshot, demo *index.Provider) bool { return demo.Release("2.0.0") != nil }},
		{"a package is added in the folder of a version", func(files *indextest.Tree) {
			files.ProviderIn(folder+"1.1.0", "demo", "1.1.0", "linux_arm64")
		}, func(_ *index.Snapshot, demo *index.Provider) bool { return len(demo.Release("1.1.0").Packages) == 2 }},
		{"a package is removed", func(files *indextest.Tree) { files.Remove(folder + zipName) },
			func(_ *index.Snapshot, demo *index.Provider) bool { return len(demo.Release("1.0.0").Packages) == 1 }},
		{"a package is replaced", func(files *indextest.Tree) {
			files.Write(folder+"1.1.0/terraform-provider-demo_1.1.0_linux_amd64.zip", "no zip")
		}, func(s *index.Snapshot, demo *index.Provider) bool {
			return demo.Release("1.1.0") == nil && len(s.Report().Withheld) == 1
		}},
		{"a signature is replaced", func(files *indextest.Tree) {
			files.Write(folder+"terraform-provider-demo_1.0.0_SHA256SUMS.sig", "no signature")
		}, func(s *index.Snapshot, demo *index.Provider) bool {
			return demo.Release("1.0.0") == nil && len(s.Report().Withheld) == 1
		}},
		{"the publisher has other keys", func(files *indextest.Tree) { files.Keys("acme", indextest.NewPublisher(t)) },
			func(s *index.Snapshot, demo *index.Provider) bool {
				return demo.Release("1.0.0") == nil && len(s.Report().Withheld) == 1
			}},
		{"the publisher's keys are removed", func(files *indextest.Tree) { files.Remove("keys/acme.asc") },
			func(_ *index.Snapshot, demo *index.Provider) bool {
				return demo.Release("1.0.0").Signature.By == index.ByRegistry
			}},
		{"a version is withdrawn", func(files *indextest.Tree) { files.Write(folder+"registry.hcl", `withdrawn "1.0.0" {}`) },
			func(_ *index.Snapshot, demo *index.Provider) bool {
				return demo.Release("1.0.0") == nil && len(demo.Withdrawn()) == 1
			}},
		{"a file is added that is ignored", func(files *indextest.Tree) { files.Write(folder+"notes.txt", "x") },
			func(s *index.Snapshot, _ *index.Provider) bool { return len(s.Report().Ignored) == 1 }},
		{"another spelling is added", func(files *indextest.Tree) { files.Provider("ACME/demo", "3.0.0", "linux_amd64") },
			func(s *index.Snapshot, demo *index.Provider) bool {
				return demo.Release("3.0.0") == nil && len(s.Report().Withheld) == 1
			}},
		{"the provider is removed", func(files *indextest.Tree) { files.Remove("providers/acme") },
			func(_ *index.Snapshot, demo *index.Provider) bool { return demo == nil }},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, files, o := onDisk(t)
			files.Keys("acme", publisher)
			files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(publisher)
			files.ProviderIn(folder+"1.1.0", "demo", "1.1.0", "linux_amd64")
			o.Now, o.Store = inAnHour, new(memoryStore)
			x := newIndex(t, o)
			before := rescan(t, x).Provider(index.PlaceOf(ownDemo))
			if rescan(t, x).Provider(index.PlaceOf(ownDemo)) != before {
				t.Fatal("the same files give another provider")
			}
			test.change(files)
			s := rescan(t, x)
			if !test.seen(s, s.Provider(index.PlaceOf(ownDemo))) {
				t.Errorf("offered is %+v, withheld is %+v", s.Report().Offered, s.Report().Withheld)
			}
			again := rescan(t, x)
			if again.Provider(index.PlaceOf(ownDemo)) != s.Provider(index.PlaceOf(ownDemo)) || !reflect.DeepEqual(again.Report(), s.Report()) {
				t.Errorf("the next scan reports %+v, not %+v", again.Report(), s.Report())
			}
			fresh := scanWith(t, o)
			if !reflect.DeepEqual(fresh.Report(), s.Report()) {
				t.Errorf("another process reports %+v, not %+v", fresh.Report(), s.Report())
			}
		})
	}
}

// A scan without changes allocates little for each package: it has to ask for the state of
// each file, by name.
func TestARescanAllocatesLittle(t *testing.T) {
	const providers, versions, limit = 10, 10, 6
	var platforms []string
	for i := range 10 {
		platforms = append(platforms, fmt.Sprintf("linux_arch%d", i))
	}
	_, files, o := onDisk(t)
	for i := range providers {
		for v := range versions {
			typ, version := fmt.Sprintf("demo%d", i), fmt.Sprintf("1.%d.0", v)
			files.ProviderIn(filepath.ToSlash(filepath.Join("providers/acme", typ)), typ, version, platforms...).Checksums()
		}
	}
	o.Now = inAnHour
	x := newIndex(t, o)
	packages := rescan(t, x).Read
	if packages != providers*versions*len(platforms) {
		t.Fatalf("%d packages are read", packages)
	}
	if each := testing.AllocsPerRun(3, func() { rescan(t, x) }) / float64(packages); each > limit {
		t.Errorf("%.1f allocations for each package", each)
	}
}

// A change in one folder must not cost more in a large tree than in a small one: nothing
// else is listed. The age of the index is still counted from the last scan of everything.
func TestAChangeListsOnlyItsFolder(t *testing.T) {
	files := indextest.New(t)
	for _, name := range []string{"acme/demo", "acme/other", "globex/demo", "registry.example.com/acme/demo"} {
		files.Provider(name, "1.0.0", "linux_amd64")
	}
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"))
	var mutex sync.Mutex
	var opened []string
	r := run(t, options(t, indextest.On(t, opening{files.Fs, func(name string) {
		mutex.Lock()
		defer mutex.Unlock()
		opened = append(opened, filepath.ToSlash(name))
	}}).Open))
	before := r.until(t, offers("acme/vpc/aws", "1.0.0"))
	for _, test := range []struct {
		rule, told string
		change     func()
		seen       func(*index.Snapshot) bool
		untouched  []string
	}{
		{"a version is added", "providers/acme/demo", func() { files.Provider("acme/demo", "2.0.0", "linux_amd64") }, offers("acme/demo", "2.0.0"),
			[]string{"providers", "providers/acme", "providers/acme/other", "providers/globex", "providers/registry.example.com/acme/demo", "modules", "modules/acme/vpc/aws", "keys"}},
		{"a provider is new", "providers/acme/new", func() { files.Provider("acme/new", "1.0.0", "linux_amd64") }, offers("acme/new", "1.0.0"),
			[]string{"providers/acme/demo", "providers/acme/other", "providers/globex", "providers/globex/demo", "providers/registry.example.com", "modules", "keys"}},
		{"a provider is removed", "providers/acme/new", func() { files.Remove("providers/acme/new") }, not(offers("acme/new", "1.0.0")),
			[]string{"providers/acme/demo", "providers/globex/demo", "modules", "keys"}},
	} {
		test.change()
		mutex.Lock()
		opened = nil
		mutex.Unlock()
		r.Changed(test.told)
		s := r.until(t, test.seen)
		mutex.Lock()
		for _, folder := range test.untouched {
			if slices.Contains(opened, folder) {
				t.Errorf("%s: %s is read", test.rule, folder)
			}
		}
		mutex.Unlock()
		if !s.Taken.Equal(before.Taken) {
			t.Errorf("%s: the index says that everything was scanned", test.rule)
		}
	}
}
