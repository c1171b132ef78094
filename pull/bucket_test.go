package pull_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/quota"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// failingFrom makes a bucket fail at operation n, and at all later ones if it is down.
// asked counts the operations.
func failingFrom(b *treetest.Bucket, n int64, down bool) (asked *atomic.Int64) {
	asked = new(atomic.Int64)
	b.Fail = func(string, string) error {
		if i := asked.Add(1); i == n || down && i > n {
			return errors.New("503 SlowDown")
		}
		return nil
	}
	return asked
}

// Wherever the store fails, the store's error is returned, no package is in the tree
// without its documents, and the next fill adds the missing files.
func TestFillsThatAStoreInterrupts(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	for _, down := range []bool{true, false} {
		for n := int64(1); ; n += int64(treetest.Stride()) {
			root := treeKind{bucket: true}.root(t)
			m := over(t, c, pull.Policy{}, root)
			asked := failingFrom(root.bucket, n, down)
			_, err := m.Fill(background(), demo, linuxZip)
			if err != nil && !errors.Is(err, tree.ErrStore) {
				t.Fatalf("operation %d: %v", n, err)
			}
			root.bucket.Fail = nil
			if names := m.files(t); slices.Contains(names, directory+linuxZip) && (!slices.Contains(names, directory+sums) || !slices.Contains(names, directory+sums+".sig") || !slices.Contains(names, keysFile)) {
				t.Fatalf("operation %d: the tree has %q", n, names)
			}
			again := over(t, c, pull.Policy{}, root)
			again.fill(t, linuxZip)
			if p := again.scan(t).Provider(index.PlaceOf(demo)); p == nil || p.File(linuxZip) == nil {
				t.Fatalf("operation %d: it is not offered afterwards", n)
			}
			m.Close()
			again.Close()
			if asked.Load() < n {
				t.Logf("a fill has %d operations", n-1)
				break
			}
		}
	}
}

// The same for a module.
func TestModuleFillsThatAStoreInterrupts(t *testing.T) {
	s := newModules(t, "")
	c := s.Client(t, upstream.Origin{})
	for n := int64(1); ; n += int64(treetest.Stride()) {
		root := treeKind{bucket: true}.root(t)
		m := over(t, c, withModules, root)
		asked := failingFrom(root.bucket, n, true)
		_, err := m.FillModule(background(), vpc, "1.0.0", nil)
		if err != nil && !errors.Is(err, tree.ErrStore) {
			t.Fatalf("operation %d: %v", n, err)
		}
		root.bucket.Fail = nil
		if names := m.files(t); slices.Contains(names, modulePackage) && !slices.Contains(names, moduleSource) {
			t.Fatalf("operation %d: the tree has %q", n, names)
		}
		over(t, c, withModules, root).fillModule(t)
		if asked.Load() < n {
			return
		}
	}
}

// A withdrawn version is not fetched while the store cannot say that it is withdrawn.
func TestWithdrawnModulesWhileTheStoreFails(t *testing.T) {
	s := newModules(t, "")
	root := treeKind{bucket: true}.root(t)
	m := over(t, s.Client(t, upstream.Origin{}), withModules, root)
	const metadata = "modules/" + host + "/acme/vpc/aws/registry.hcl"
	m.Write(metadata, `withdrawn "1.0.0" {}`)
	root.bucket.Fail = func(operation, name string) error {
		if operation == "get" && name == metadata {
			return errors.New("503 SlowDown")
		}
		return nil
	}
	if _, err := m.FillModule(background(), vpc, "1.0.0", nil); !errors.Is(err, tree.ErrStore) {
		t.Errorf("got %v", err)
	}
}

// While a release in a bucket gets further platforms, every scan offers the packages
// that it offered before, signed by their publisher.
func TestPlatformsThatAreAddedLaterInABucket(t *testing.T) {
	g := newGrowing(t, "linux_amd64")
	c := g.Client(t, upstream.Origin{})
	root := treeKind{bucket: true}.root(t)
	m := over(t, c, pull.Policy{}, root)
	m.fill(t, zipFor("linux_amd64"))
	offered := 1
	root.bucket.Lose = func(operation, name string) error {
		p := m.scan(t).Provider(index.PlaceOf(demo))
		if p == nil || p.Release("1.0.0") == nil || len(p.Release("1.0.0").Packages) < offered || p.Release("1.0.0").Signature.By != index.ByPublisher {
			t.Errorf("after %s of %s, there is less: %q", operation, name, root.bucket.Names())
		}
		return nil
	}
	for _, platform := range []string{"darwin_arm64", "windows_amd64", "linux_arm64"} {
		g.grow(t, platform)
		over(t, c, pull.Policy{}, root).fill(t, zipFor(platform))
		offered++
		if s := m.scan(t); len(s.Report().Withheld) > 0 || len(s.Provider(index.PlaceOf(demo)).Release("1.0.0").Packages) != offered {
			t.Errorf("%s: in the end %+v is withheld of %q", platform, s.Report().Withheld, root.bucket.Names())
		}
	}
}

// An extension whose SHA256SUMS is not written leaves no signature. The signature would
// otherwise belong to a different document.
func TestAdditionsWithoutChecksumsHaveNoSignature(t *testing.T) {
	g := newGrowing(t, "linux_amd64")
	c := g.Client(t, upstream.Origin{})
	root := treeKind{bucket: true}.root(t)
	over(t, c, pull.Policy{}, root).fill(t, zipFor("linux_amd64"))
	g.grow(t, "darwin_arm64")
	over(t, c, pull.Policy{}, root).fill(t, zipFor("darwin_arm64")) // into the version's folder
	g.grow(t, "windows_amd64")                                      // and back
	m := over(t, c, pull.Policy{}, root)
	root.bucket.Fail = func(operation, name string) error {
		if operation == "put" && name == directory+sums {
			return errors.New("503 SlowDown")
		}
		return nil
	}
	if _, err := m.Fill(background(), demo, zipFor("windows_amd64")); !errors.Is(err, tree.ErrStore) {
		t.Errorf("got %v", err)
	}
	if names := root.bucket.Names(); slices.Contains(names, directory+sums+".sig") {
		t.Errorf("there is %q", names)
	}
}

// A version's folder that is still being uploaded has nothing, as for the index. An operator
// may have copied it from a bucket to a disk, and it stays.
func TestFoldersThatAreBeingUploaded(t *testing.T) { eachTree(t, testFoldersThatAreBeingUploaded) }

func testFoldersThatAreBeingUploaded(t *testing.T, on treeKind) {
	g := newGrowing(t, "linux_amd64")
	c := g.Client(t, upstream.Origin{})
	root := on.root(t)
	half := directory + "1.0.0/" + sums + ".sig"
	root.tree(t).Write(half, "of another build").Write(directory+"1.0.0/"+tree.UploadName, "{}")
	over(t, c, pull.Policy{}, root).fill(t, zipFor("linux_amd64"))
	m := over(t, c, pull.Policy{}, root)
	if p := m.scan(t).Provider(index.PlaceOf(demo)); p == nil || p.Release("1.0.0") == nil {
		t.Error("it is not offered")
	}
	if on.bucket {
		return
	}
	g.grow(t, "darwin_arm64")
	if _, err := m.Fill(background(), demo, zipFor("darwin_arm64")); !errors.Is(err, pull.ErrConflict) || !strings.Contains(err.Error(), "everything else in it out of the tree") {
		t.Errorf("the origin has added a platform: %v", err)
	}
	if m.Read(half) != "of another build" {
		t.Error("the copy is gone")
	}
}

// An extension that is interrupted hides nothing, and the next one completes it.
func TestAdditionsThatAStoreInterrupts(t *testing.T) {
	for n := int64(1); ; n += int64(treetest.Stride()) {
		g := newGrowing(t, "linux_amd64")
		c := g.Client(t, upstream.Origin{})
		root := treeKind{bucket: true}.root(t)
		over(t, c, pull.Policy{}, root).fill(t, zipFor("linux_amd64"))
		var asked *atomic.Int64
		for i, platform := range []string{"darwin_arm64", "windows_amd64"} {
			g.grow(t, platform)
			asked = failingFrom(root.bucket, n, true)
			_, err := over(t, c, pull.Policy{}, root).Fill(background(), demo, zipFor(platform))
			root.bucket.Fail = nil
			if err != nil && !errors.Is(err, tree.ErrStore) {
				t.Fatalf("operation %d: %v", n, err)
			}
			m := over(t, c, pull.Policy{}, root)
			if p := m.scan(t).Provider(index.PlaceOf(demo)); p == nil || len(p.Release("1.0.0").Packages) < i+1 || p.Release("1.0.0").Signature.By != index.ByPublisher {
				t.Fatalf("operation %d: there is less: %q", n, root.bucket.Names())
			}
			m.fill(t, zipFor(platform))
			s := m.scan(t)
			if problems := slices.DeleteFunc(s.Report().Withheld, isDuplicate); len(problems) > 0 || len(s.Provider(index.PlaceOf(demo)).Release("1.0.0").Packages) != i+2 {
				t.Fatalf("operation %d: in the end %+v is withheld of %q", n, problems, root.bucket.Names())
			}
		}
		if asked.Load() < n {
			return
		}
	}
}

// isDuplicate reports whether a problem is that the replaced documents are still there.
// The index uses the others.
func isDuplicate(p index.Problem) bool { return p.Reason == tree.Duplicate }

// The sizes of mirrored files are added up from flat listings, and stay within the
// quota.
func TestQuotasOfABucket(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	b := new(treetest.Bucket)
	root := treeRoot{bucket: b}
	for _, name := range []string{"1.0.0", "2.0.0", "3.0.0"} {
		b.Put("providers/"+host+"/acme/other/"+name+"/a.zip", strings.Repeat("x", 1000), time.Now())
	}
	for _, test := range []struct {
		max  int64
		kind error
	}{{3000, quota.ErrMaxHeld}, {1 << 20, nil}} {
		m := (&mirroring{Tree: root.tree(t), root: root}).start(t, c, pull.Options{
			Sources: map[svchost.Hostname]pull.Source{host: {Client: c, Quota: quota.New(test.max, []svchost.Hostname{host})}},
			Open:    root.open,
		})
		listed := 0
		b.Fail = func(operation, name string) error {
			if operation == "list" && strings.HasPrefix(name, "providers/"+host+"/acme/other") {
				listed++
			}
			return nil
		}
		if _, err := m.Fill(background(), demo, linuxZip); !errors.Is(err, test.kind) {
			t.Errorf("with %d bytes: %v", test.max, err)
		}
		if listed > 0 {
			t.Errorf("folders of other providers are listed one by one")
		}
	}
}

// The indexes of the tree reuse the digests computed while a package was received.
func TestFilledPackagesAreNotReadAgain(t *testing.T) { eachTree(t, testFilledPackagesAreNotReadAgain) }

func testFilledPackagesAreNotReadAgain(t *testing.T, on treeKind) {
	s := newModules(t, "")
	root := on.root(t)
	digests := new(index.Digests)
	m := (&mirroring{Tree: root.tree(t), root: root}).start(t, s.Client(t, upstream.Origin{}), pull.Options{
		Sources: sourceOf(s.Client(t, upstream.Origin{}), withModules),
		Open:    root.open,
		Digests: func() []*index.Digests { return []*index.Digests{digests} },
	})
	m.fillModule(t)
	for _, test := range []struct {
		rule    string
		digests *index.Digests
		read    int
	}{{"an index that was told", digests, 0}, {"another one", nil, 1}} {
		snapshot, err := index.Scan(background(), index.Options{Open: root.open, Digests: test.digests})
		if err != nil || snapshot.Module(index.PlaceOf(vpc)).Version("1.0.0") == nil {
			t.Fatalf("%s: %v, %+v", test.rule, err, snapshot)
		}
		if snapshot.Read != test.read {
			t.Errorf("%s has read %d archives, want %d", test.rule, snapshot.Read, test.read)
		}
	}
}
