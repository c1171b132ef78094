package pull_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// withCopies mirrors into a tree whose keys have copies.
func withCopies(t testing.TB, s *site, root treeRoot, copies keys.Copies) *mirroring {
	t.Helper()
	c := s.Client(t, upstream.Origin{})
	m := &mirroring{Tree: root.tree(t), root: root}
	return m.start(t, c, pull.Options{
		Sources: sourceOf(c, pull.Policy{Signatures: pull.PreferSignatures}), Open: root.open, KeyCopies: copies,
	})
}

// The keys of an origin do not replace the keys that a namespace had.
func TestKeysThatAreMissing(t *testing.T) { eachTree(t, testKeysThatAreMissing) }

func testKeysThatAreMissing(t *testing.T, on treeKind) {
	s, root, copies := newAcme(t), on.root(t), new(indextest.KeyCopies)
	copies.Store(t.Context(), host+"/acme", []byte("keys that the file had"))
	withCopies(t, s, root, copies).mustRefuse(t, linuxZip, keys.ErrMissing, keysFile+" is gone, or cannot be read, and the namespace had keys")
	copies.Fail(errors.New("the storage is down"))
	withCopies(t, s, root, copies).mustRefuse(t, linuxZip, tree.ErrNotWritable, "")
	copies.Fail(nil)
	copies.Delete(t.Context(), host+"/acme")
	m := withCopies(t, s, root, copies)
	m.fill(t, linuxZip)
	if !strings.Contains(m.Read(keysFile), "PUBLIC KEY") {
		t.Errorf("the keys are\n%s", m.Read(keysFile))
	}
}

// The operator's file stays: no keys of the origin are added to it.
func TestNamespaceThatIsNotSigned(t *testing.T) { eachTree(t, testNamespaceThatIsNotSigned) }

func testNamespaceThatIsNotSigned(t *testing.T, on treeKind) {
	s, root, copies := newAcme(t), on.root(t), new(indextest.KeyCopies)
	copies.Store(t.Context(), host+"/acme", []byte("keys that the file had"))
	root.tree(t).Write(keysFile, "unsigned\n")
	m := withCopies(t, s, root, copies)
	m.fill(t, linuxZip)
	if got := m.Read(keysFile); got != "unsigned\n" {
		t.Errorf("the file is now\n%s", got)
	}
}

// Links to missing files mean that the keys are unknown.
func TestKeysThatCannotBeRead(t *testing.T) {
	for _, name := range []string{keysFile, "keys/" + host, "keys"} {
		t.Run(name, func(t *testing.T) {
			root := treeRoot{dir: t.TempDir()}
			link := filepath.Join(root.dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("nothing.example", link); err != nil {
				t.Skip("no symlinks here: ", err)
			}
			withCopies(t, newAcme(t), root, nil).mustRefuse(t, linuxZip, tree.ErrNotWritable, "")
		})
	}
}

// Without the lock that instances share, one of two that add keys at the same time writes a file without the
// other's. A release whose key was lost gets it back when a client asks for it.
func TestKeysThatAnotherInstanceHasOverwritten(t *testing.T) {
	eachTree(t, testKeysThatWereOverwritten)
}

func testKeysThatWereOverwritten(t *testing.T, on treeKind) {
	s, root := newAcme(t), on.root(t)
	m := over(t, s.Client(t, upstream.Origin{}), pull.Policy{}, root)
	m.fill(t, linuxZip)
	written := m.Read(keysFile)
	header, _, _ := strings.Cut(written, "-----BEGIN")
	others := header + indextest.NewPublisher(t).PublicKey() + "\n"
	for _, pinned := range []bool{false, true} {
		if pinned {
			others = strings.TrimPrefix(others, header)
		}
		m.Write(keysFile, others)
		if r := m.scan(t).Provider(index.PlaceOf(demo)); r != nil {
			t.Fatalf("it is offered without its key: %+v", r)
		}
		again := over(t, s.Client(t, upstream.Origin{}), pull.Policy{}, root)
		if _, err := again.Fill(background(), demo, linuxZip); (err != nil) != pinned {
			t.Fatalf("pinned %v: got %v", pinned, err)
		}
		if (m.Read(keysFile) == others) != pinned || !strings.HasPrefix(m.Read(keysFile), others) {
			t.Errorf("pinned %v: the file is now\n%s", pinned, m.Read(keysFile))
		}
		if p := m.scan(t).Provider(index.PlaceOf(demo)); (p == nil) != pinned {
			t.Errorf("pinned %v: it is offered: %+v", pinned, p)
		}
	}
}
