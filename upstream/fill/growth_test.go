package fill_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// A stepped file system has something looked at behind each change of a name.
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

// growing is an origin that has so many platforms at a time, and can have more.
type growing struct {
	*site
	tree      *indextest.Tree
	publisher *indextest.Publisher
	platforms []string
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
	var document strings.Builder
	for _, p := range g.platforms {
		document.WriteString(sumOf(g.tree.Read("providers/acme/demo/"+zipFor(p))) + "  " + zipFor(p) + "\n")
	}
	g.tree.Write("providers/acme/demo/"+sums, document.String())
	g.tree.Write("providers/acme/demo/"+sums+".sig", g.publisher.Sign(document.String()))
	now := newSite(t, g.tree)
	g.Become(now)
}

func zipFor(platform string) string { return "terraform-provider-demo_1.0.0_" + platform + ".zip" }

// A platform that is added to a release reaches a mirror that holds it, once more
// and once more. Whenever the index looks meanwhile, it offers what was offered,
// as its publisher signed it.
func TestPlatformsThatAreAddedLater(t *testing.T) {
	for _, mirror := range []string{"", mirrorBase} {
		t.Run("from "+mirror, func(t *testing.T) {
			g := newGrowing(t, "linux_amd64")
			into := indextest.New(t)
			into.Keys(host+"/acme", g.publisher)
			plain := &mirroring{Tree: indextest.On(t, into.Fs)}
			fs := &stepped{Fs: into.Fs}
			g.InBubble(t, upstream.Origin{Mirror: mirror}, func(t *testing.T, c *upstream.Client) {
				m := inMemory(t, c, fill.Policy{}, indextest.On(t, fs))
				defer m.Close()
				m.fill(t, zipFor("linux_amd64"))
				offered := 1
				fs.look = func(step string) {
					p := plain.scan(t).Provider(demo)
					if p == nil || p.Release("1.0.0") == nil || len(p.Release("1.0.0").Packages) < offered || p.Release("1.0.0").Signature.By != index.ByPublisher {
						t.Errorf("after %s, there is less: %q", step, plain.files(t))
					}
				}
				for i, platform := range []string{"darwin_arm64", "linux_arm64", "windows_amd64"} {
					g.grow(t, platform)
					time.Sleep(11 * time.Minute)
					m.Versions(background(), demo) // as clients do first
					time.Sleep(time.Second)
					if mirror != "" { // which does not list platforms
						m.Available(background(), demo, "1.0.0")
						synctest.Wait()
					}
					list, err := m.Available(background(), demo, "1.0.0")
					if err != nil || len(list) != i+2 {
						t.Fatalf("%s: got %+v, %v", platform, list, err)
					}
					m.fill(t, zipFor(platform))
					offered++
					if got := plain.scan(t); len(got.Report.Withheld) > 0 || len(got.Provider(demo).Release("1.0.0").Packages) != offered {
						t.Errorf("%s: in the end %+v is withheld of %q", platform, got.Report.Withheld, plain.files(t))
					}
				}
			})
		})
	}
}

// That a package is wanted is reason enough to look for it, also where nobody has
// asked for a list; that the origin cannot be asked is not that there is none.
func TestAPlatformThatIsWanted(t *testing.T) {
	g := newGrowing(t, "linux_amd64")
	g.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		tree := indextest.New(t)
		before := inMemory(t, c, fill.Policy{}, tree)
		before.fill(t, zipFor("linux_amd64"))
		before.Close()
		m := inMemory(t, c, fill.Policy{}, tree) // that knows nothing but the tree
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
		r, err := m.ReleaseFor(background(), demo, "1.0.0", address.Platform{OS: "darwin", Arch: "arm64"})
		if err != nil || len(r.Packages) != 2 {
			t.Errorf("got %+v, %v", r, err)
		}
		m.fill(t, zipFor("darwin_arm64"))
	})
}

// What is held is not replaced by a SHA256SUMS that changes a line of it, takes one
// away, or is not signed by keys that count, nor where it cannot be done at once.
func TestAdditionsThatAreRefused(t *testing.T) {
	for _, test := range []struct {
		rule   string
		change func(t *testing.T, g *growing, held *indextest.Tree)
		kind   error
		says   string
	}{
		{"another line is changed", func(t *testing.T, g *growing, _ *indextest.Tree) {
			g.tree.Write("providers/acme/demo/"+zipFor("linux_amd64"), indextest.Zip("terraform-provider-demo", "other bytes"))
		}, fill.ErrConflict, "differs"},
		{"a line is gone", func(t *testing.T, g *growing, _ *indextest.Tree) {
			g.tree.Fs.Remove("providers/acme/demo/" + zipFor("linux_amd64"))
			g.platforms = nil
		}, fill.ErrConflict, "differs"},
		{"the key is not a pinned one", func(t *testing.T, g *growing, held *indextest.Tree) {
			held.Write(keysFile, g.publisher.PublicKey())
			g.publisher = indextest.NewPublisher(t)
			g.tree.Keys("acme", g.publisher)
			g.tree.Fs.Remove("providers/acme/demo/" + sums)
		}, upstream.ErrBadSignature, ""},
		{"packages lie in the folder of the version", func(t *testing.T, g *growing, tree *indextest.Tree) {
			for _, name := range []string{zipFor("linux_amd64"), sums, sums + ".sig"} {
				tree.Write(held+"1.0.0/"+name, tree.Read(held+name))
				tree.Fs.Remove(held + name)
			}
		}, fill.ErrConflict, "move the files in the folder 1.0.0"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := newGrowing(t, "linux_amd64")
			g.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				tree := indextest.New(t)
				before := inMemory(t, c, fill.Policy{}, tree)
				before.fill(t, zipFor("linux_amd64"))
				before.Close()
				test.change(t, g, tree)
				g.grow(t, "darwin_arm64")
				m := inMemory(t, c, fill.Policy{}, tree)
				defer m.Close()
				_, err := m.Fill(background(), demo, zipFor("darwin_arm64"))
				if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v", err)
				}
				if p := m.scan(t).Provider(demo); p == nil || p.File(zipFor("linux_amd64")) == nil {
					t.Errorf("what was held is not offered any more: %q", m.files(t))
				}
			})
		})
	}
}

// On the disk, too, and by instances that know nothing but the tree: first the pair
// comes in a folder of its version, then that goes.
func TestPlatformsThatAreAddedLaterOnTheDisk(t *testing.T) {
	g := newGrowing(t, "linux_amd64")
	c := g.Client(t, upstream.Origin{})
	root := t.TempDir()
	over(t, c, fill.Policy{}, root).fill(t, zipFor("linux_amd64"))
	for _, step := range []struct{ platform, sums string }{
		{"darwin_arm64", held + "1.0.0/"}, {"windows_amd64", held}, {"linux_arm64", held + "1.0.0/"},
	} {
		g.grow(t, step.platform)
		m := over(t, c, fill.Policy{}, root)
		m.fill(t, zipFor(step.platform))
		want := []string{keysFile, record, step.sums + sums, step.sums + sums + ".sig"}
		for _, p := range g.platforms {
			want = append(want, held+zipFor(p))
		}
		m.mustHave(t, want...)
		s := m.scan(t)
		if p := s.Provider(demo); len(s.Report.Withheld) > 0 || p == nil || len(p.Release("1.0.0").Packages) != len(g.platforms) {
			t.Errorf("%s: %+v", step.platform, s.Report)
		}
	}
}

// A mirror that hangs keeps nobody from a release that is held, which it may have
// more of.
func TestAMirrorThatHangsHasNoAdditions(t *testing.T) {
	g := newGrowing(t, "linux_amd64")
	g.InBubble(t, upstream.Origin{Mirror: mirrorBase}, func(t *testing.T, c *upstream.Client) {
		tree := indextest.New(t)
		tree.Keys(host+"/acme", g.publisher)
		before := inMemory(t, c, fill.Policy{}, tree)
		before.fill(t, zipFor("linux_amd64"))
		before.Close()
		m := inMemory(t, c, fill.Policy{}, tree)
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

// Where a version's folder has the pair, its operator may put more there, such as
// its documentation. That is not the registry's to remove.
func TestAdditionsLeaveWhatElseIsInTheFolder(t *testing.T) {
	for _, theirs := range []string{"1.0.0/docs/index.md", "1.0.0/registry.hcl", "1.0.0/windows_386/terraform-provider-demo"} {
		t.Run(theirs, func(t *testing.T) {
			g := newGrowing(t, "linux_amd64")
			c := g.Client(t, upstream.Origin{})
			root := t.TempDir()
			over(t, c, fill.Policy{}, root).fill(t, zipFor("linux_amd64"))
			g.grow(t, "darwin_arm64")
			m := over(t, c, fill.Policy{}, root)
			m.fill(t, zipFor("darwin_arm64"))
			m.Write(held+theirs, "theirs")
			g.grow(t, "windows_amd64")
			_, err := over(t, c, fill.Policy{}, root).Fill(background(), demo, zipFor("windows_amd64"))
			if !errors.Is(err, fill.ErrConflict) || !strings.Contains(err.Error(), "folder 1.0.0") {
				t.Errorf("got %v", err)
			}
			if got, err := afero.ReadFile(m.Fs, held+theirs); string(got) != "theirs" {
				t.Errorf("%s is gone: %v", theirs, err)
			}
		})
	}
}

// One instance adds platforms to a release that another still knows as it was.
// What that one fetches is of the release all the same.
func TestAdditionsByAnotherInstance(t *testing.T) {
	for _, from := range []string{"", mirrorBase} {
		t.Run("from "+from, func(t *testing.T) {
			g := newGrowing(t, "darwin_arm64", "linux_amd64", "linux_arm64")
			c := g.Client(t, upstream.Origin{Mirror: from})
			root := t.TempDir()
			indextest.OnDisk(t, root).Keys(host+"/acme", g.publisher)
			first := over(t, c, fill.Policy{}, root)
			first.fill(t, zipFor("linux_amd64"))
			g.grow(t, "windows_amd64")
			other := over(t, c, fill.Policy{}, root)
			other.fill(t, zipFor("windows_amd64"))
			other.fill(t, zipFor("linux_arm64"))
			before, err := os.ReadFile(filepath.Join(root, held+"1.0.0/"+sums))
			if err != nil {
				t.Fatal(err)
			}

			first.fill(t, zipFor("darwin_arm64")) // which comes in
			first.fill(t, zipFor("linux_arm64"))  // which is there
			if after, err := os.ReadFile(filepath.Join(root, held+"1.0.0/"+sums)); string(after) != string(before) {
				t.Errorf("SHA256SUMS was %q and is %q, %v", before, after, err)
			}
			s := first.scan(t)
			if p := s.Provider(demo); len(s.Report.Withheld) > 0 || p == nil || len(p.Release("1.0.0").Packages) != 4 {
				t.Errorf("%+v", s.Report)
			}
		})
	}
}
