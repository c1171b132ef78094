package publish_test

import (
	"errors"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// If the keys of a namespace are missing or unreadable, nothing is published in it.
func TestKeysThatAreMissing(t *testing.T) { eachTree(t, testKeysThatAreMissing) }

func testKeysThatAreMissing(t *testing.T, on treeKind) {
	author := indextest.NewPublisher(t)
	copies := new(indextest.KeyCopies)
	copies.Store(t.Context(), "acme", []byte("keys that the file had"))
	d := newDist(t, "").signed(author)
	r := on.newRegistry(t, func(o *publish.Options) { o.KeyCopies = copies })
	for _, name := range []string{linuxZip, sums, signature} {
		_, err := r.put(name, d[name])
		saying(t, err, publish.ErrRefused, "keys/acme.asc is gone, or cannot be read, and the namespace had keys: put the file back")
	}
	r.isClean()
	copies.Fail(errors.New("the storage is down"))
	_, err := r.put(linuxZip, d[linuxZip])
	saying(t, err, tree.ErrNotWritable, "")
	copies.Fail(nil)
	t.Run("what is staged goes in its time", func(t *testing.T) {
		root := on.newRegistry(t)
		root.mustPut(linuxZip, d[linuxZip], publish.Waiting)
		again := root.again(t, func(o *publish.Options) {
			o.KeyCopies = copies
			o.Now = func() time.Time { return time.Now().Add(48 * time.Hour) }
		})
		go again.Run(t.Context())
		eventually(t, "it is dropped", func() bool { return len(again.files()) == 0 })
	})
	t.Run("with the file, everything is as before", func(t *testing.T) {
		r.Keys("acme", author)
		r.putAll(d, manifest, linuxZip, darwinZip, sums, signature)
		r.offers(d)
	})
}

func TestNamespaceThatIsNotSigned(t *testing.T) { eachTree(t, testNamespaceThatIsNotSigned) }

func testNamespaceThatIsNotSigned(t *testing.T, on treeKind) {
	copies := new(indextest.KeyCopies)
	copies.Store(t.Context(), "acme", []byte("keys that the file had"))
	r := on.newRegistry(t, func(o *publish.Options) { o.KeyCopies = copies })
	r.Write("keys/acme.asc", "unsigned\n")
	d := newDist(t, "")
	r.putAll(d, manifest, linuxZip, darwinZip, sums)
	r.offers(d)
}

// A link that leads nowhere may stand for keys. Modules need none.
func TestKeysThatCannotBeRead(t *testing.T) {
	for _, test := range []struct{ rule, target, name string }{
		{"the file is a symlink to nothing", "nothing", "keys/acme.asc"},
		{"the file is a symlink out of the root", "../../outside", "keys/acme.asc"},
		{"another spelling of it is a symlink to nothing", "nothing", "keys/ACME.asc"},
		{"the folder is a symlink to nothing", "nothing", "keys"},
		{"the folder is a symlink to itself", "keys", "keys"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := newRegistry(t)
			r.link(test.target, test.name)
			_, err := r.put(linuxZip, newDist(t, "")[linuxZip])
			saying(t, err, tree.ErrNotWritable, "")
			r.isClean()
			if _, err := r.putModule("1.0.0.tgz", indextest.TarGz("main.tf", "")); err != nil {
				t.Errorf("a module: %v", err)
			}
		})
	}
}

// Keys under a name of the registry itself count for publications, too.
func TestKeysUnderTheRegistrysOwnHostname(t *testing.T) { eachTree(t, testKeysUnderOwnHostname) }

func testKeysUnderOwnHostname(t *testing.T, on treeKind) {
	author, stranger := indextest.NewPublisher(t), indextest.NewPublisher(t)
	named := func(o *publish.Options) { o.Hostnames = []svchost.Hostname{"registry.example.com"} }
	forged := newDist(t, "").signed(stranger)
	t.Run("where there are no others", func(t *testing.T) {
		r := on.newRegistry(t, named)
		r.Keys("registry.example.com/acme", author)
		for _, name := range []string{manifest, linuxZip, darwinZip, sums} {
			r.mustPut(name, forged[name], publish.Waiting)
		}
		_, err := r.put(signature, forged[signature])
		saying(t, err, publish.ErrRefused, "key")
		r.mustPut(signature, author.Sign(forged[sums]), publish.Added)
	})
	t.Run("for a release in its folder", func(t *testing.T) {
		r := on.newRegistry(t, named)
		r.Keys("acme", stranger).Keys("registry.example.com/acme", author)
		release := r.Provider("registry.example.com/acme/demo", "1.0.0", "linux_amd64").Signed(author)
		_, err := r.put(signature, stranger.Sign(r.Read(release.ChecksumsName())))
		saying(t, err, publish.ErrConflict, "a version never changes")
		if _, err := r.put(signature, author.Sign(r.Read(release.ChecksumsName()))); err != nil {
			t.Errorf("a signature by its own key: %v", err)
		}
	})
	t.Run("and not before those of the folder that a release goes to", func(t *testing.T) {
		r := on.newRegistry(t, named)
		r.Keys("acme", author).Keys("registry.example.com/acme", stranger)
		d := newDist(t, "").signed(author)
		r.putAll(d, manifest, linuxZip, darwinZip, sums, signature)
		r.offers(d)
	})
}
