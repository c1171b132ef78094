package pull_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// An outage determines which operations of a file system fail, beginning with number n.
type outage struct {
	rule string
	from func(faults *treetest.Faults, n int)
}

// outages are the kinds of outages of network disks, servers with too few descriptors
// and failing disks.
var outages = []outage{
	{"one operation", func(faults *treetest.Faults, n int) { faults.Once(n, syscall.ESTALE) }},
	{"ten in a row", func(faults *treetest.Faults, n int) { faults.Between(n, n+9, syscall.EMFILE) }},
	{"all from then on", func(faults *treetest.Faults, n int) { faults.Between(n, math.MaxInt, syscall.EIO) }},
	{"opening what is in the folder", func(faults *treetest.Faults, n int) {
		faults.When(func(i int, o treetest.Operation) error {
			inFolder := strings.HasPrefix(o.Path+"/", directory) || strings.HasPrefix(o.Path+"/", moduleFolder)
			if i >= n && inFolder && (o.Name == "open" || o.Name == "stat") {
				return syscall.EMFILE
			}
			return nil
		})
	}},
}

// each runs a test for every operation at which the outage may begin. The test returns
// the number of operations.
func (o outage) each(test func(n int) (asked int)) {
	for n := 1; n <= test(n); n += treetest.Stride() {
	}
}

// faulty mirrors into a tree in memory that fails.
func faulty(t *testing.T, c *upstream.Client, policy pull.Policy, folders *indextest.Tree, faults *treetest.Faults) *mirroring {
	t.Helper()
	return (&mirroring{Tree: folders}).start(t, c, pull.Options{Sources: sourceOf(c, policy), Open: faults.Open(folders.Open)})
}

// contents returns the contents of all files in a tree in memory.
func (m *mirroring) contents(t *testing.T) map[string]string {
	contents := make(map[string]string)
	for _, name := range m.files(t) {
		contents[name] = m.Read(name)
	}
	return contents
}

// ageReservations makes empty files older than the minutes for which they reserve a
// name. A file system in memory has no other way to create a file exclusively, and a
// disk that fails permanently leaves the reservation.
func (m *mirroring) ageReservations(t *testing.T) {
	past := time.Now().Add(-time.Hour)
	for name, content := range m.contents(t) {
		if content != "" {
			continue
		}
		if err := m.Fs.Chtimes(name, past, past); err != nil {
			t.Fatal(err)
		}
	}
}

// mustKeep checks that files of the tree have not been replaced, nor removed.
func (m *mirroring) mustKeep(t *testing.T, before map[string]string) {
	t.Helper()
	now := m.contents(t)
	for name, content := range before {
		if now[name] != content && name != record {
			t.Errorf("%s was replaced", name)
		}
	}
}

// While the files of a release in the tree cannot be read, the origin's present release
// of the same version does not replace it. The next request tries again.
func TestNothingReplacesAReleaseThatCannotBeRead(t *testing.T) {
	s, before := rereleased(t)
	c := s.Client(t, upstream.Origin{})
	for _, o := range outages {
		for _, test := range []struct {
			rule    string
			present []string
		}{
			{"the documents and another package", []string{darwinZip, sums, sums + ".sig"}},
			{"all of it", []string{linuxZip, darwinZip, sums, sums + ".sig"}},
			{"SHA256SUMS alone", []string{sums}},
			{"another package alone", []string{darwinZip}},
			{"the package alone", []string{linuxZip}},
			{"a version's folder", []string{"1.0.0/" + darwinZip, "1.0.0/" + sums, "1.0.0/" + sums + ".sig"}},
		} {
			t.Run(o.rule+", "+test.rule, func(t *testing.T) {
				o.each(func(n int) int {
					folders := indextest.New(t).Write(keysFile, before.Read("keys/acme.asc"))
					for _, name := range test.present {
						folders.Write(directory+name, before.Read("providers/acme/demo/"+strings.TrimPrefix(name, "1.0.0/")))
					}
					var faults treetest.Faults
					m := faulty(t, c, pull.Policy{}, folders, &faults)
					defer m.Close()
					had := m.contents(t)
					o.from(&faults, n)
					filled, err := m.Fill(background(), demo, linuxZip)
					asked, failed := faults.End()
					if filled != nil && sumOf(m.content(t, filled)) != sumOf(before.Read("providers/acme/demo/"+linuxZip)) {
						t.Errorf("%v: the other release's package was taken", failed)
					}
					if err != nil && !errors.Is(err, pull.ErrConflict) && !errors.Is(err, tree.ErrNotWritable) {
						t.Errorf("%v: %v", failed, err)
					}
					m.mustKeep(t, had)
					if errors.Is(err, pull.ErrUnread) {
						_, err = m.Fill(background(), demo, linuxZip)
						if whole := len(test.present) == 4; whole && err != nil || !whole && !errors.Is(err, pull.ErrConflict) {
							t.Errorf("%v: and then %v", failed, err)
						}
						m.mustKeep(t, had)
					}
					if t.Failed() {
						return 0
					}
					return asked
				})
			})
		}
	}
}

// The same for a module that has changed at the origin.
func TestNothingReplacesAModuleThatCannotBeRead(t *testing.T) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	first := inMemory(t, c, withModules, indextest.New(t))
	first.fillModule(t)
	before := first.contents(t)
	s.ModuleArchive(indextest.TarGz("main.tf", "# moved"), "")
	for _, o := range outages {
		for _, test := range []struct {
			rule    string
			present []string // with names and contents
		}{
			{"its package and record", []string{modulePackage, before[modulePackage], moduleSource, before[moduleSource]}},
			{"its package alone", []string{modulePackage, before[modulePackage]}},
			{"its record alone", []string{moduleSource, before[moduleSource]}},
			{"a folder", []string{moduleFolder + "1.0.0/main.tf", "# by hand"}},
		} {
			t.Run(o.rule+", "+test.rule, func(t *testing.T) {
				o.each(func(n int) int {
					folders := indextest.New(t)
					for i := 0; i < len(test.present); i += 2 {
						folders.Write(test.present[i], test.present[i+1])
					}
					var faults treetest.Faults
					m := faulty(t, c, withModules, folders, &faults)
					defer m.Close()
					had := m.contents(t)
					o.from(&faults, n)
					filled, err := m.FillModule(background(), vpc, "1.0.0", nil)
					asked, failed := faults.End()
					if err != nil && !errors.Is(err, pull.ErrConflict) && !errors.Is(err, tree.ErrNotWritable) {
						t.Errorf("%v: %v", failed, err)
					}
					m.mustKeep(t, had)
					if names := m.files(t); !slices.Contains(test.present, modulePackage) && (slices.Contains(names, modulePackage) || filled != nil && test.present[0] == moduleSource) {
						t.Errorf("%v: the other module was taken, there is %q", failed, names)
					}
					if t.Failed() {
						return 0
					}
					return asked
				})
			})
		}
	}
}

// Wherever the disk fails, the disk's error is returned, no package is in the tree
// without its documents, and the next fill adds the missing files.
func TestFillsThatADiskInterrupts(t *testing.T) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	for _, test := range []struct {
		what    string
		fill    func(m *mirroring) error
		whole   []string // what the tree has if it has the first of them
		offered func(s *index.Snapshot) bool
	}{
		{"a package", func(m *mirroring) error {
			_, err := m.Fill(background(), demo, linuxZip)
			return err
		}, []string{directory + linuxZip, directory + sums, directory + sums + ".sig", keysFile}, func(s *index.Snapshot) bool {
			p := s.Provider(index.PlaceOf(demo))
			return p != nil && p.File(linuxZip) != nil
		}},
		{"a module", func(m *mirroring) error {
			_, err := m.FillModule(background(), vpc, "1.0.0", nil)
			return err
		}, []string{modulePackage, moduleSource}, func(s *index.Snapshot) bool {
			module := s.Module(index.PlaceOf(vpc))
			return module != nil && module.Version("1.0.0") != nil
		}},
	} {
		for _, o := range []outage{outages[0], outages[2]} { // each operation once, and then all after it
			t.Run(test.what+", "+o.rule, func(t *testing.T) {
				o.each(func(n int) int {
					var faults treetest.Faults
					folders := indextest.New(t)
					m := faulty(t, c, withModules, folders, &faults)
					defer m.Close()
					o.from(&faults, n)
					err := test.fill(m)
					asked, failed := faults.End()
					if err != nil && !errors.Is(err, tree.ErrNotWritable) {
						t.Errorf("%v: %v", failed, err)
					}
					names := m.files(t)
					for _, name := range test.whole {
						if slices.Contains(names, test.whole[0]) && !slices.Contains(names, name) {
							t.Errorf("%v: the tree has %q", failed, names)
						}
					}
					m.ageReservations(t)
					again := inMemory(t, c, withModules, folders)
					defer again.Close()
					if err := test.fill(again); err != nil {
						t.Errorf("%v: and then %v", failed, err)
					}
					nothingInScratch(t)
					if !test.offered(again.scan(t)) {
						t.Errorf("%v: it is not offered afterwards", failed)
					}
					if t.Failed() {
						return 0
					}
					return asked
				})
			})
		}
	}
}

// A withdrawn version is neither fetched nor served while registry.hcl cannot be read,
// whether its package is in the tree or not.
func TestWithdrawnVersionsWhileTheDiskFails(t *testing.T) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	first := inMemory(t, c, withModules, indextest.New(t))
	first.fill(t, linuxZip)
	first.fillModule(t)
	before := first.contents(t)
	const withdrawal = `withdrawn "1.0.0" {}`
	for _, o := range outages {
		for _, there := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in the tree: %v", o.rule, there), func(t *testing.T) {
				o.each(func(n int) int {
					folders := indextest.New(t).Write(directory+"registry.hcl", withdrawal).Write(moduleFolder+"registry.hcl", withdrawal)
					if there {
						for name, content := range before {
							folders.Write(name, content)
						}
					}
					var faults treetest.Faults
					m := faulty(t, c, withModules, folders, &faults)
					defer m.Close()
					names := m.files(t)
					o.from(&faults, n)
					filled, err := m.Fill(background(), demo, linuxZip)
					module, moduleErr := m.FillModule(background(), vpc, "1.0.0", nil)
					list, listErr := m.Available(background(), demo, "1.0.0")
					asked, failed := faults.End()
					if filled != nil || module != nil || list != nil {
						t.Errorf("%v: got %v, %v, %v", failed, filled, module, list)
					}
					for _, err := range []error{err, moduleErr, listErr} {
						if !errors.Is(err, pull.ErrWithdrawn) && !errors.Is(err, pull.ErrUnread) {
							t.Errorf("%v: %v", failed, err)
						}
					}
					if now := m.files(t); !slices.Equal(now, names) {
						t.Errorf("%v: there is %q", failed, now)
					}
					if t.Failed() {
						return 0
					}
					return asked
				})
			})
		}
	}
}

// A symlink to nothing, for example to a volume that is not mounted, and a symlink out
// of the root are not treated as missing files.
func TestLinksOfAReleaseThatLeadToNothing(t *testing.T) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	for _, target := range []string{"../../../../gone", "/etc/hostname"} {
		for _, name := range []string{
			directory + linuxZip, directory + sums, directory + sums + ".sig", directory + "1.0.0", directory + "1.0.0/" + sums,
			modulePackage, moduleFolder + "1.0.0", moduleFolder + "1.0.0.zip",
		} {
			t.Run(name+" to "+target, func(t *testing.T) {
				m := onDisk(t, c, withModules)
				m.Write(name, "x").Remove(name)
				link := m.root.dir + "/" + name
				if err := os.Symlink(target, link); err != nil {
					t.Skip(err)
				}
				var err error
				if strings.HasPrefix(name, directory) {
					_, err = m.Fill(background(), demo, linuxZip)
				} else {
					_, err = m.FillModule(background(), vpc, "1.0.0", nil)
				}
				if !errors.Is(err, pull.ErrUnread) || strings.Contains(err.Error(), m.root.dir) {
					t.Errorf("got %v", err)
				}
				if to, err := os.Readlink(link); err != nil || to != target {
					t.Errorf("the link has become %q, %v", to, err)
				}
				if s.Count(zipFile)+s.Count(archivePath) > 0 {
					t.Error("a package was fetched")
				}
			})
		}
	}
}

// A file that another instance or the operator adds to the tree just before the
// creation of the same file stays. If it is identical, it is used; if not, the fill is
// refused.
func TestFilesThatComeIntoTheTreeMeanwhile(t *testing.T) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	first := inMemory(t, c, withModules, indextest.New(t))
	first.fill(t, linuxZip)
	first.fillModule(t)
	_, other := rereleased(t)
	for _, test := range []struct {
		rule string
		name string
		has  string
		kind error
	}{
		{"the same SHA256SUMS", directory + sums, first.Read(directory + sums), nil},
		{"another SHA256SUMS", directory + sums, strings.Repeat("0", 64) + first.Read(directory + sums)[64:], pull.ErrConflict},
		{"the same signature", directory + sums + ".sig", first.Read(directory + sums + ".sig"), nil},
		{"another signature", directory + sums + ".sig", other.Read("providers/acme/demo/" + sums + ".sig"), pull.ErrConflict},
		{"the same package", directory + linuxZip, first.Read(directory + linuxZip), nil},
		{"another package", directory + linuxZip, indextest.Zip("terraform-provider-demo", "by hand"), pull.ErrConflict},
		{"the same record of a module", moduleSource, first.Read(moduleSource), nil},
		{"another record of a module", moduleSource, strings.Replace(first.Read(moduleSource), `"package_sha256": "`, `"folder": "other", "package_sha256": "`, 1), pull.ErrConflict},
		{"another package of a module", modulePackage, indextest.TarGz("main.tf", "# by hand"), nil}, // the package by hand counts
		{"another package of a module that is broken", modulePackage, "x", pull.ErrConflict},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root := treeKind{bucket: true}.root(t)
			m := over(t, c, withModules, root)
			root.bucket.Fail = func(operation, name string) error {
				if operation == "put" && name == test.name && !slices.Contains(root.bucket.Names(), name) {
					m.Write(name, test.has)
				}
				return nil
			}
			var err error
			if strings.HasPrefix(test.name, directory) {
				_, err = m.Fill(background(), demo, linuxZip)
			} else {
				_, err = m.FillModule(background(), vpc, "1.0.0", nil)
			}
			if !errors.Is(err, test.kind) {
				t.Errorf("got %v", err)
			}
			if root.bucket.Contents()[test.name] != test.has {
				t.Error("it was replaced")
			}
		})
	}
}
