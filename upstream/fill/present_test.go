package fill_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// A release that the index has verified is neither read from the tree nor requested
// from the origin.
func TestAReleaseThatTheIndexHas(t *testing.T) {
	tree, publisher := acme(t)
	s := newSite(t, tree)
	mine := indextest.New(t).Write(keysFile, publisher.PublicKey())
	for _, name := range []string{darwinZip, sums, sums + ".sig"} {
		mine.Write(held+name, tree.Read("providers/acme/demo/"+name))
	}
	present := scanned(t, mine).Provider(demo).Release("1.0.0")
	c := s.Client(t, upstream.Origin{})
	m := (&mirroring{Tree: mine}).start(t, c, fill.Options{
		Sources: sourceOf(c, fill.Policy{}), Open: func() (index.Tree, error) { return index.Tree{}, errors.New("it is not to be opened") },
	})
	list, err := m.Filler.Available(background(), demo, "1.0.0", present)
	if err != nil || len(list) != 2 {
		t.Errorf("got %+v, %v", list, err)
	}
	for _, name := range []string{sums, sums + ".sig"} {
		f, err := m.Filler.Fill(background(), demo, name, present)
		if err != nil || m.content(t, f) != tree.Read("providers/acme/demo/"+name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n := len(s.Asked()); n != 0 {
		t.Errorf("the origin was asked %d times", n)
	}

	// A release that was replaced in the tree is not what was remembered of it.
	m = inMemory(t, c, fill.Policy{}, mine)
	m.Filler.Available(background(), demo, "1.0.0", present)
	document := strings.Split(mine.Read(held+sums), "\n")
	for _, line := range document {
		if strings.HasSuffix(line, darwinZip) {
			mine.Write(held+sums, line+"\n").Write(held+sums+".sig", publisher.Sign(line+"\n"))
		}
	}
	replaced := scanned(t, mine).Provider(demo).Release("1.0.0")
	if list, err = m.Filler.Available(background(), demo, "1.0.0", replaced); err != nil || len(list) != 1 {
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

// Packages that the index has read are not read again before SHA256SUMS comes beside
// them, unless they have changed.
func TestPackagesThatTheIndexHasRead(t *testing.T) {
	for _, changed := range []bool{false, true} {
		tree, _ := acme(t)
		fs := opened{afero.NewMemMapFs(), make(map[string]int)}
		mine := indextest.On(t, fs).Write(held+darwinZip, tree.Read("providers/acme/demo/"+darwinZip))
		snapshot, err := index.Scan(background(), index.Options{Open: mine.Open})
		if err != nil {
			t.Fatal(err)
		}
		present := snapshot.Provider(demo).Release("1.0.0")
		if changed {
			mine.Write(held+darwinZip, "something else")
		}
		clear(fs.count)
		m := inMemory(t, newSite(t, tree).Client(t, upstream.Origin{}), fill.Policy{}, mine)
		_, err = m.Filler.Fill(background(), demo, linuxZip, present)
		if changed != errors.Is(err, fill.ErrConflict) || !changed && err != nil {
			t.Errorf("changed: %v, got %v", changed, err)
		}
		if n := fs.count["read "+held+darwinZip]; (n > 0) != changed {
			t.Errorf("changed: %v, it is read %d times", changed, n)
		}
	}
}
