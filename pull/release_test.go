package pull_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// A stepped file system calls look after each change of a name.
type stepped struct {
	afero.Fs
	look func(step string)
}

func (s stepped) step(what, name string, err error) error {
	if s.look != nil {
		s.look(what + " " + name)
	}
	return err
}

func (s stepped) Rename(from, to string) error {
	return s.step("rename "+from, to, s.Fs.Rename(from, to))
}

func (s stepped) Remove(name string) error { return s.step("remove", name, s.Fs.Remove(name)) }
func (s stepped) RemoveAll(name string) error {
	return s.step("remove all", name, s.Fs.RemoveAll(name))
}

func (s stepped) MkdirAll(name string, mode os.FileMode) error {
	return s.step("make", name, s.Fs.MkdirAll(name, mode))
}

func (s stepped) OpenFile(name string, flag int, mode os.FileMode) (afero.File, error) {
	f, err := s.Fs.OpenFile(name, flag, mode)
	return f, s.step("create", name, err)
}

// growing is an origin that adds platforms to a release.
type growing struct {
	*site
	tree      *indextest.Tree
	publisher *indextest.Publisher
	platforms []string
	write     func(lines []string) string // SHA256SUMS; nil: in order, each line ended by a line feed
}

func newGrowing(t *testing.T, platforms ...string) *growing {
	t.Helper()
	g := &growing{tree: indextest.New(t), publisher: indextest.NewPublisher(t)}
	g.tree.Keys("acme", g.publisher)
	g.site = newAcme(t)
	g.grow(t, platforms...)
	return g
}

func (g *growing) grow(t *testing.T, platforms ...string) {
	t.Helper()
	g.platforms = append(g.platforms, platforms...)
	g.tree.Provider("acme/demo", "1.0.0", platforms...)
	var lines []string
	for _, p := range g.platforms {
		lines = append(lines, sumOf(g.tree.Read("providers/acme/demo/"+zipFor(p)))+"  "+zipFor(p))
	}
	document := strings.Join(lines, "\n") + "\n"
	if g.write != nil {
		document = g.write(lines)
	}
	g.tree.Write("providers/acme/demo/"+sums, document)
	g.tree.Write("providers/acme/demo/"+sums+".sig", g.publisher.Sign(document))
	now := newSite(t, g.tree)
	g.Become(now)
}

func zipFor(platform string) string { return "terraform-provider-demo_1.0.0_" + platform + ".zip" }

// Platforms that are added to a release reach a mirror that has the release, again and
// again. Whenever the index scans meanwhile, it offers the same packages as before,
// with the publisher's signature.
func TestPlatformsThatAreAddedLater(t *testing.T) {
	for _, mirror := range []string{"", mirrorBase} {
		t.Run("from "+mirror, func(t *testing.T) {
			g := newGrowing(t, "linux_amd64")
			into := indextest.New(t)
			into.Keys(host+"/acme", g.publisher)
			plain := &mirroring{Tree: indextest.On(t, into.Fs)}
			fs := &stepped{Fs: into.Fs}
			g.InBubble(t, upstream.Origin{Mirror: mirror}, func(t *testing.T, c *upstream.Client) {
				m := inMemory(t, c, pull.Policy{}, indextest.On(t, fs))
				defer m.Close()
				m.fill(t, zipFor("linux_amd64"))
				offered := 1
				fs.look = func(step string) {
					p := plain.scan(t).Provider(index.PlaceOf(demo))
					if p == nil || p.Release("1.0.0") == nil || len(p.Release("1.0.0").Packages) < offered || p.Release("1.0.0").Signature.By != index.ByPublisher {
						t.Errorf("after %s, there is less: %q", step, plain.files(t))
					}
				}
				for i, platform := range []string{"darwin_arm64", "linux_arm64", "windows_amd64"} {
					g.grow(t, platform)
					time.Sleep(11 * time.Minute)
					m.Versions(background(), demo) // clients do this first
					time.Sleep(time.Second)
					if mirror != "" { // a mirror does not list platforms
						m.Available(background(), demo, "1.0.0")
						synctest.Wait()
					}
					list, err := m.Available(background(), demo, "1.0.0")
					if err != nil || len(list) != i+2 {
						t.Fatalf("%s: got %+v, %v", platform, list, err)
					}
					m.fill(t, zipFor(platform))
					offered++
					if got := plain.scan(t); len(got.Report().Withheld) > 0 || len(got.Provider(index.PlaceOf(demo)).Release("1.0.0").Packages) != offered {
						t.Errorf("%s: in the end %+v is withheld of %q", platform, got.Report().Withheld, plain.files(t))
					}
				}
			})
		})
	}
}

// Additions are found whichever platforms the origin has.
func TestUncommonPlatformsThatAreAddedLater(t *testing.T) {
	g := newGrowing(t, "linux_386")
	g.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		m := inMemory(t, c, pull.Policy{}, indextest.New(t))
		defer m.Close()
		m.fill(t, zipFor("linux_386"))
		g.grow(t, "freebsd_386")
		time.Sleep(11 * time.Minute)
		m.Versions(background(), demo)
		synctest.Wait()
		if list, err := m.Available(background(), demo, "1.0.0"); err != nil || len(list) != 2 {
			t.Errorf("the mirror has %+v, %v", list, err)
		}
		m.fill(t, zipFor("freebsd_386"))
	})
}

// A request for a package makes the mirror ask the origin for it, even without a list
// of versions. The error for an origin that cannot be asked differs from the error for
// a missing package.
func TestAPlatformThatIsRequested(t *testing.T) {
	g := newGrowing(t, "linux_amd64")
	g.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		folders := indextest.New(t)
		fillBefore(t, c, folders, zipFor("linux_amd64"))
		m := inMemory(t, c, pull.Policy{}, folders) // knows only the tree
		defer m.Close()
		g.Fault(metadata, status(501))
		g.Fault("/v1/providers/acme/demo/1.0.0/download/darwin/arm64", status(501))
		m.mustRefuse(t, zipFor("darwin_arm64"), upstream.ErrUnavailable, "answered 501")
		m.fill(t, zipFor("linux_amd64"))
		g.Fault(metadata, nil)
		g.Fault("/v1/providers/acme/demo/1.0.0/download/darwin/arm64", nil)
		time.Sleep(time.Minute)
		m.mustRefuse(t, zipFor("darwin_arm64"), upstream.ErrNotFound, "no package for darwin_arm64")
		g.grow(t, "darwin_arm64")
		time.Sleep(11 * time.Minute)
		r, err := m.ReleaseFor(background(), demo, "1.0.0", address.Platform{OS: "darwin", Arch: "arm64"}, nil)
		if err != nil || len(r.Packages) != 2 {
			t.Errorf("got %+v, %v", r, err)
		}
		m.fill(t, zipFor("darwin_arm64"))
	})
}

// A request for a platform that comes too early keeps no later client from the platform once it is listed.
func TestAPlatformThatIsRequestedBeforeItIsAdded(t *testing.T) {
	g := newGrowing(t, "linux_amd64")
	g.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		folders := indextest.New(t)
		fillBefore(t, c, folders, zipFor("linux_amd64"))
		m := inMemory(t, c, pull.Policy{VersionsTTL: time.Minute}, folders)
		defer m.Close()
		early := func() int {
			asked := len(g.Asked())
			r, err := m.ReleaseFor(background(), demo, "1.0.0", address.Platform{OS: "darwin", Arch: "arm64"}, nil)
			if err != nil || len(r.Packages) != 1 {
				t.Errorf("before it is added: got %+v, %v", r, err)
			}
			return len(g.Asked()) - asked
		}
		list := func() {
			time.Sleep(2 * time.Minute)
			if _, err := m.CurrentVersions(background(), demo); err != nil {
				t.Fatal(err)
			}
		}
		list()
		if early() == 0 {
			t.Error("the origin was not asked")
		}
		if list(); early() != 0 {
			t.Error("the origin was asked again although the list is the same")
		}
		g.grow(t, "darwin_arm64")
		list()
		if r, err := m.ReleaseFor(background(), demo, "1.0.0", address.Platform{OS: "darwin", Arch: "arm64"}, nil); err != nil || len(r.Packages) != 2 {
			t.Errorf("once it is listed: got %+v, %v", r, err)
		}
		m.fill(t, zipFor("darwin_arm64"))
	})
}

// SHA256SUMS is replaced by a longer one with the same lines, in whatever form and
// signed by whichever of the keys that count.
func TestAdditionsThatAreWrittenOtherwise(t *testing.T) {
	for rule, change := range map[string]func(t *testing.T, g *growing){
		"in another order": func(_ *testing.T, g *growing) {
			g.write = func(lines []string) string {
				slices.Reverse(lines)
				return strings.Join(lines, "\n") + "\n"
			}
		},
		"with the line ends of Windows": func(_ *testing.T, g *growing) {
			g.write = func(lines []string) string { return strings.Join(lines, "\r\n") + "\r\n" }
		},
		"with digests in capitals": func(_ *testing.T, g *growing) {
			g.write = func(lines []string) string {
				for i, line := range lines {
					sum, name, _ := strings.Cut(line, "  ")
					lines[i] = strings.ToUpper(sum) + "  " + name
				}
				return strings.Join(lines, "\n")
			}
		},
		"signed by another key of the publisher": func(t *testing.T, g *growing) {
			second := indextest.NewPublisher(t)
			g.tree.Keys("acme", g.publisher, second)
			g.publisher = second
		},
	} {
		t.Run(rule, func(t *testing.T) {
			g := newGrowing(t, "linux_amd64")
			g.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				folders := indextest.New(t)
				fillBefore(t, c, folders, zipFor("linux_amd64"))
				change(t, g)
				g.grow(t, "darwin_arm64")
				m := inMemory(t, c, pull.Policy{}, folders)
				defer m.Close()
				m.fill(t, zipFor("darwin_arm64"))
				s := m.scan(t)
				if r := s.Provider(index.PlaceOf(demo)).Release("1.0.0"); r == nil || len(r.Packages) != 2 || r.Signature.By != index.ByPublisher {
					t.Errorf("it is offered as %+v: %+v", r, s.Report().Withheld)
				}
			})
		})
	}
}

// SHA256SUMS is not replaced by a document that changes or lacks a line or is not
// signed by keys that count, nor if it cannot be replaced in one step.
func TestAdditionsThatAreRefused(t *testing.T) {
	for _, test := range []struct {
		rule   string
		change func(t *testing.T, g *growing, folders *indextest.Tree)
		kind   error
		says   string
	}{
		{"another line is changed", func(t *testing.T, g *growing, _ *indextest.Tree) {
			g.tree.Write("providers/acme/demo/"+zipFor("linux_amd64"), indextest.Zip("terraform-provider-demo", "other bytes"))
		}, pull.ErrConflict, "differs"},
		{"a line is gone", func(t *testing.T, g *growing, _ *indextest.Tree) {
			g.tree.Fs.Remove("providers/acme/demo/" + zipFor("linux_amd64"))
			g.platforms = nil
		}, pull.ErrConflict, "differs"},
		{"nothing is added, and it is written otherwise", func(t *testing.T, g *growing, _ *indextest.Tree) {
			g.write = func(lines []string) string { return strings.Repeat(lines[0]+"\n", 2) }
		}, pull.ErrConflict, "differs"},
		{"the key is not a pinned one", func(t *testing.T, g *growing, folders *indextest.Tree) {
			folders.Write(keysFile, g.publisher.PublicKey())
			g.publisher = indextest.NewPublisher(t)
			g.tree.Keys("acme", g.publisher)
			g.tree.Fs.Remove("providers/acme/demo/" + sums)
		}, upstream.ErrBadSignature, ""},
		{"packages lie in the folder of the version", func(t *testing.T, g *growing, folders *indextest.Tree) {
			for _, name := range []string{zipFor("linux_amd64"), sums, sums + ".sig"} {
				folders.Write(directory+"1.0.0/"+name, folders.Read(directory+name))
				folders.Fs.Remove(directory + name)
			}
		}, pull.ErrConflict, "move the files in the folder 1.0.0"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := newGrowing(t, "linux_amd64")
			g.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				folders := indextest.New(t)
				fillBefore(t, c, folders, zipFor("linux_amd64"))
				test.change(t, g, folders)
				g.grow(t, "darwin_arm64")
				m := inMemory(t, c, pull.Policy{}, folders)
				defer m.Close()
				_, err := m.Fill(background(), demo, zipFor("darwin_arm64"))
				if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v", err)
				}
				if p := m.scan(t).Provider(index.PlaceOf(demo)); p == nil || p.File(zipFor("linux_amd64")) == nil {
					t.Errorf("the release in the tree is not offered any more: %q", m.files(t))
				}
			})
		})
	}
}

// The same on the disk, by instances that know only the tree: SHA256SUMS and its
// signature move to the version's folder, and back with the next platform.
func TestPlatformsThatAreAddedLaterOnTheDisk(t *testing.T) {
	eachTree(t, testPlatformsThatAreAddedLaterOnTheDisk)
}

func testPlatformsThatAreAddedLaterOnTheDisk(t *testing.T, on treeKind) {
	g := newGrowing(t, "linux_amd64")
	c := g.Client(t, upstream.Origin{})
	root := on.root(t)
	over(t, c, pull.Policy{}, root).fill(t, zipFor("linux_amd64"))
	for _, step := range []struct{ platform, sums string }{
		{"darwin_arm64", directory + "1.0.0/"}, {"windows_amd64", directory}, {"linux_arm64", directory + "1.0.0/"},
	} {
		g.grow(t, step.platform)
		m := over(t, c, pull.Policy{}, root)
		m.fill(t, zipFor(step.platform))
		want := []string{keysFile, record, step.sums + sums, step.sums + sums + ".sig"}
		for _, p := range g.platforms {
			want = append(want, directory+zipFor(p))
		}
		m.mustHave(t, want...)
		s := m.scan(t)
		if p := s.Provider(index.PlaceOf(demo)); len(s.Report().Withheld) > 0 || p == nil || len(p.Release("1.0.0").Packages) != len(g.platforms) {
			t.Errorf("%s: %+v", step.platform, s.Report())
		}
	}
}

// A mirror that hangs does not delay a release in the tree.
func TestAMirrorThatHangsHasNoAdditions(t *testing.T) {
	g := newGrowing(t, "linux_amd64")
	g.InBubble(t, upstream.Origin{Mirror: mirrorBase}, func(t *testing.T, c *upstream.Client) {
		folders := indextest.New(t)
		folders.Keys(host+"/acme", g.publisher)
		fillBefore(t, c, folders, zipFor("linux_amd64"))
		m := inMemory(t, c, pull.Policy{}, folders)
		defer m.Close()
		m.Versions(background(), demo)
		g.Fault(files+"1.0.0.json", upstreamtest.Silence)
		began := time.Now()
		list, err := m.Available(background(), demo, "1.0.0")
		if err != nil || len(list) != 1 || time.Since(began) > 0 {
			t.Errorf("got %+v, %v after %v", list, err, time.Since(began))
		}
	})
}

// The operator may put other files into a version's folder, such as documentation.
// Extending a release does not remove them.
func TestAdditionsLeaveOtherFilesInTheFolder(t *testing.T) {
	eachTree(t, testAdditionsLeaveOtherFilesInTheFolder)
}

func testAdditionsLeaveOtherFilesInTheFolder(t *testing.T, on treeKind) {
	for _, theirs := range []string{"1.0.0/docs/index.md", "1.0.0/registry.hcl", "1.0.0/windows_386/terraform-provider-demo"} {
		t.Run(theirs, func(t *testing.T) {
			g := newGrowing(t, "linux_amd64")
			c := g.Client(t, upstream.Origin{})
			root := on.root(t)
			over(t, c, pull.Policy{}, root).fill(t, zipFor("linux_amd64"))
			g.grow(t, "darwin_arm64")
			m := over(t, c, pull.Policy{}, root)
			m.fill(t, zipFor("darwin_arm64"))
			m.Write(directory+theirs, "theirs")
			g.grow(t, "windows_amd64")
			_, err := over(t, c, pull.Policy{}, root).Fill(background(), demo, zipFor("windows_amd64"))
			if !errors.Is(err, pull.ErrConflict) || !strings.Contains(err.Error(), "folder 1.0.0") {
				t.Errorf("got %v", err)
			}
			if got, err := afero.ReadFile(m.Fs, directory+theirs); string(got) != "theirs" {
				t.Errorf("%s is gone: %v", theirs, err)
			}
		})
	}
}

// If one instance extends a release, another instance that remembers the old release
// can still fetch its packages, and does not undo the extension.
func TestAdditionsByAnotherInstance(t *testing.T) {
	for _, from := range []string{"", mirrorBase} {
		t.Run("from "+from, func(t *testing.T) {
			g := newGrowing(t, "darwin_arm64", "linux_amd64", "linux_arm64")
			c := g.Client(t, upstream.Origin{Mirror: from})
			root := t.TempDir()
			indextest.OnDisk(t, root).Keys(host+"/acme", g.publisher)
			first := over(t, c, pull.Policy{}, treeRoot{dir: root})
			first.fill(t, zipFor("linux_amd64"))
			g.grow(t, "windows_amd64")
			other := over(t, c, pull.Policy{}, treeRoot{dir: root})
			other.fill(t, zipFor("windows_amd64"))
			other.fill(t, zipFor("linux_arm64"))
			before, err := os.ReadFile(filepath.Join(root, directory+"1.0.0/"+sums))
			if err != nil {
				t.Fatal(err)
			}

			first.fill(t, zipFor("darwin_arm64")) // fetched
			first.fill(t, zipFor("linux_arm64"))  // already there
			if after, err := os.ReadFile(filepath.Join(root, directory+"1.0.0/"+sums)); string(after) != string(before) {
				t.Errorf("SHA256SUMS was %q and is %q, %v", before, after, err)
			}
			s := first.scan(t)
			if p := s.Provider(index.PlaceOf(demo)); len(s.Report().Withheld) > 0 || p == nil || len(p.Release("1.0.0").Packages) != 4 {
				t.Errorf("%+v", s.Report())
			}
		})
	}
}

// A release that the index has verified is neither read from the tree nor requested
// from the origin.
func TestAReleaseThatTheIndexHas(t *testing.T) {
	folders, publisher := acme(t)
	s := newSite(t, folders)
	mine := indextest.New(t).Write(keysFile, publisher.PublicKey())
	for _, name := range []string{darwinZip, sums, sums + ".sig"} {
		mine.Write(directory+name, folders.Read("providers/acme/demo/"+name))
	}
	provider := scanned(t, mine).Provider(index.PlaceOf(demo))
	present := provider.Release("1.0.0")
	c := s.Client(t, upstream.Origin{})
	m := (&mirroring{Tree: mine}).start(t, c, pull.Options{
		Sources: sourceOf(c, pull.Policy{}), Open: func() (tree.Tree, error) { return tree.Tree{}, errors.New("it is not to be opened") },
	})
	list, _, err := m.Filler.Available(background(), demo, "1.0.0", present)
	if err != nil || len(list) != 2 {
		t.Errorf("got %+v, %v", list, err)
	}
	for _, name := range []string{sums, sums + ".sig"} {
		f, err := m.Filler.Fill(background(), demo, name, provider, pull.FillOptions{})
		if err != nil || m.content(t, f) != folders.Read("providers/acme/demo/"+name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n := len(s.Asked()); n != 0 {
		t.Errorf("the origin was asked %d times", n)
	}

	// A release that was replaced in the tree replaces the remembered one.
	m = inMemory(t, c, pull.Policy{}, mine)
	m.Filler.Available(background(), demo, "1.0.0", present)
	document := strings.Split(mine.Read(directory+sums), "\n")
	for _, line := range document {
		if strings.HasSuffix(line, darwinZip) {
			mine.Write(directory+sums, line+"\n").Write(directory+sums+".sig", publisher.Sign(line+"\n"))
		}
	}
	replaced := scanned(t, mine).Provider(index.PlaceOf(demo)).Release("1.0.0")
	if list, _, err = m.Filler.Available(background(), demo, "1.0.0", replaced); err != nil || len(list) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
}

// An opened file system counts how often files are opened.
type opened struct {
	afero.Fs
	count map[string]int
}

func (o opened) Open(name string) (afero.File, error) {
	f, err := o.Fs.Open(name)
	if err != nil {
		return nil, err
	}
	o.count[name]++
	return readFile{f, o.count}, nil
}

type readFile struct {
	afero.File
	count map[string]int
}

func (f readFile) Read(b []byte) (int, error) {
	f.count["read "+f.Name()]++
	return f.File.Read(b)
}

// Packages that the index has read are not read again before SHA256SUMS is written
// beside them, unless they have changed.
func TestPackagesThatTheIndexHasRead(t *testing.T) {
	for _, changed := range []bool{false, true} {
		folders, _ := acme(t)
		fs := opened{afero.NewMemMapFs(), make(map[string]int)}
		mine := indextest.On(t, fs).Write(directory+darwinZip, folders.Read("providers/acme/demo/"+darwinZip))
		snapshot, err := index.Scan(background(), index.Options{Open: mine.Open})
		if err != nil {
			t.Fatal(err)
		}
		if changed {
			mine.Write(directory+darwinZip, "something else")
		}
		clear(fs.count)
		m := inMemory(t, newSite(t, folders).Client(t, upstream.Origin{}), pull.Policy{}, mine)
		_, err = m.Filler.Fill(background(), demo, linuxZip, snapshot.Provider(index.PlaceOf(demo)), pull.FillOptions{})
		if changed != errors.Is(err, pull.ErrConflict) || !changed && err != nil {
			t.Errorf("changed: %v, got %v", changed, err)
		}
		if n := fs.count["read "+directory+darwinZip]; (n > 0) != changed {
			t.Errorf("changed: %v, it is read %d times", changed, n)
		}
	}
}

// VERSION.json for a release whose additions could not be asked for is not kept: the next client gets them.
func TestAdditionsThatCouldNotBeAskedFor(t *testing.T) {
	for _, test := range []struct {
		rule  string
		fault func(release <-chan struct{}, h http.Handler) http.HandlerFunc
	}{
		{"the client has left", func(release <-chan struct{}, h http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				<-release
				h.ServeHTTP(w, r)
			}
		}},
		{"the origin has failed once", func(release <-chan struct{}, h http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-release:
					h.ServeHTTP(w, r)
				default:
					status(501)(w, r)
				}
			}
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := newGrowing(t, "linux_amd64")
			g.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				into := indextest.New(t)
				into.Keys(host+"/acme", g.publisher)
				fillBefore(t, c, into, zipFor("linux_amd64"))
				g.grow(t, "darwin_arm64")
				m := inMemory(t, c, pull.Policy{}, into)
				defer m.Close()
				time.Sleep(11 * time.Minute)
				if _, err := m.CurrentVersions(background(), demo); err != nil {
					t.Fatal(err)
				}
				release := make(chan struct{})
				for _, p := range []string{"linux/amd64", "darwin/arm64"} {
					g.Fault("/v1/providers/acme/demo/1.0.0/download/"+p, test.fault(release, g.Handler))
				}
				offers := pull.NewPullThrough(m.Filler, func(address.Address) {})
				snapshot := m.scan(t)
				archives := func(ctx context.Context) string {
					d, err := offers.Around(snapshot, func() (context.Context, time.Time) { return ctx, time.Now().Add(time.Minute) }).
						Archives(index.PlaceOf(demo), "1.0.0", false)
					if err != nil {
						t.Fatal(err)
					}
					return string(d.Head) + string(d.Tail)
				}
				client, leave := context.WithCancel(background())
				time.AfterFunc(time.Second, leave)
				if got := archives(client); strings.Contains(got, "darwin_arm64") {
					t.Fatalf("it has the addition already: %s", got)
				}
				close(release)
				time.Sleep(16 * time.Second)
				if got := archives(background()); !strings.Contains(got, "darwin_arm64") {
					t.Errorf("the next client gets %s", got)
				}
			})
		})
	}
}

// While an origin hangs, one request for VERSION.json waits for the additions to a release, and those that follow
// hardly wait, for whatever release. As soon as the origin answers, they get the additions.
func TestAdditionsOfAnOriginThatHangs(t *testing.T) {
	files, publisher := acme(t)
	list := []string{"1.1.0", "1.2.0", "1.3.0"}
	released := func(platforms ...string) *site {
		for _, v := range list {
			files.Provider("acme/demo", v, platforms...).Checksums().Signed(publisher)
		}
		return newSite(t, files)
	}
	s := released("linux_amd64")
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		m := inMemory(t, c, pull.Policy{}, indextest.New(t))
		defer m.Close()
		for _, v := range list {
			m.fill(t, address.PackageName("demo", v, linux))
		}
		s.Become(released("linux_amd64", "darwin_arm64"))
		time.Sleep(2 * pull.DefaultVersionsTTL)
		if _, err := m.CurrentVersions(background(), demo); err != nil {
			t.Fatal(err)
		}
		fault := func(f http.HandlerFunc) {
			for _, v := range list {
				for _, p := range []string{"linux/amd64", "darwin/arm64"} {
					s.Fault("/v1/providers/acme/demo/"+v+"/download/"+p, f)
				}
			}
		}
		offers, snapshot := pull.NewPullThrough(m.Filler, func(address.Address) {}), m.scan(t)
		archives := func(version string) (complete bool, took time.Duration) {
			began := time.Now()
			d, err := offers.Around(snapshot, func() (context.Context, time.Time) { return background(), began.Add(time.Minute) }).
				Archives(index.PlaceOf(demo), version, false)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(d.Head), "darwin_arm64"), time.Since(began)
		}
		fault(upstreamtest.Silence)
		for i, v := range []string{"1.1.0", "1.1.0", "1.2.0", "1.2.0", "1.1.0"} {
			if complete, took := archives(v); complete || i == 0 && took < 3*time.Second || i > 0 && took > time.Second {
				t.Errorf("request %d, for %s: complete: %v, after %v", i, v, complete, took)
			}
		}
		fault(nil)
		if complete, took := archives("1.3.0"); !complete {
			t.Errorf("the origin answers, and a release that nobody has waited for is incomplete after %v", took)
		}
		time.Sleep(30 * time.Second) // the origin's timeout, and the time for which failures are remembered
		for _, v := range list {
			if complete, took := archives(v); !complete {
				t.Errorf("the origin answers, and %s is incomplete after %v", v, took)
			}
		}
	})
}

// While an origin hangs, a list that is far out of date is served whole, and one request waits for a newer one.
func TestOldListsOfAnOriginThatHangs(t *testing.T) {
	files, publisher := acme(t)
	files.Provider("acme/demo", "1.1.0", "linux_amd64").Signed(publisher)
	s := newSite(t, files)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		m := inMemory(t, c, pull.Policy{}, indextest.New(t))
		defer m.Close()
		m.fill(t, linuxZip)
		offers, snapshot := pull.NewPullThrough(m.Filler, func(address.Address) {}), m.scan(t)
		s.Fault(versions, upstreamtest.Silence)
		time.Sleep(3 * pull.DefaultVersionsTTL)
		for i := range 3 {
			began := time.Now()
			p, err := offers.Around(snapshot, func() (context.Context, time.Time) { return background(), began.Add(time.Minute) }).
				Provider(index.PlaceOf(demo))
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); i == 0 && took < 3*time.Second || i > 0 && took > time.Second {
				t.Errorf("request %d has waited for %v", i, took)
			}
			if got := string(p.Index().Head); !strings.Contains(got, "1.1.0") {
				t.Errorf("request %d gets %s", i, got)
			}
			time.Sleep(time.Second)
		}
	})
}
