package publish_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A fault makes a disk or a store fail, from one operation on.
type fault struct {
	name  string
	lasts int  // operations
	lost  bool // the operation is done, but its answer is lost; only in a bucket
}

var faultsOfTrees = []fault{{"fails once", 1, false}, {"fails for a while", 12, false}, {"loses an answer", 1, true}}

// errnos are the errors of a failing disk, in turn.
var errnos = []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EMFILE, syscall.ETIMEDOUT, syscall.EACCES}

// A faultyTree is an empty tree, on the disk or in a bucket, whose operations can fail.
type faultyTree struct {
	*registry
	begin func(n int) // the fault, at the operation with a number
	end   func() (failed string)
}

func (k treeKind) newFaultyTree(t *testing.T, f fault, build func(*indextest.Tree)) faultyTree {
	t.Helper()
	if !k.bucket {
		faults, root := new(treetest.Faults), t.TempDir()
		build(indextest.OnDisk(t, root))
		return faultyTree{
			newUnobserved(t, root, faults.Open(source.Directories{Root: root}.Open)),
			func(n int) { faults.Between(n, n+f.lasts-1, errnos[n%len(errnos)]) },
			func() string {
				_, failed := faults.End()
				return strings.Trim(fmt.Sprint(failed), "[]")
			},
		}
	}
	store := newFaults(f.lost)
	b := store.bucket
	build(indextest.InBucket(t, b))
	return faultyTree{
		(&registry{t: t, bucket: b, Tree: indextest.InBucket(t, b)}).unobserved(func() (tree.Tree, error) { return source.Directories{Root: "."}.OpenIn(b) }),
		func(n int) { store.begin(func(i int64) bool { return i >= int64(n) && i < int64(n+f.lasts) }) },
		store.end,
	}
}

// scan returns the result of scanning the tree.
func (r *registry) scan() *index.Snapshot {
	r.t.Helper()
	var o index.Options
	if r.bucket != nil {
		o.Listed = source.Directories{Root: "."}.Listed(r.bucket)
	} else {
		o.Open = source.Directories{Root: r.root}.Open
	}
	s, err := index.Scan(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// eachFault runs a test for each operation that fails, until all operations succeed. Of
// faults that last, every other one begins during the one before.
func eachFault(t *testing.T, build func(*indextest.Tree), test func(t *testing.T, r faultyTree, begin func(), end func() string)) {
	eachTree(t, func(t *testing.T, on treeKind) {
		for _, f := range faultsOfTrees {
			if f.lost && !on.bucket {
				continue
			}
			t.Run(f.name, func(t *testing.T) {
				for n := 1; ; n += treetest.Stride() * max(1, f.lasts/2) {
					r, failed, begun := on.newFaultyTree(t, f, build), "", false
					test(t, r, func() { begun = true; r.begin(n) }, func() string { failed = r.end(); return failed })
					if t.Failed() {
						t.Fatalf("at operation %d: %s", n, failed)
					}
					if !begun || failed == "" {
						return
					}
				}
			})
		}
	})
}

// unavailable fails unless an error is temporary: otherwise its publisher would not
// send the file again.
func unavailable(t *testing.T, name string, err error) {
	t.Helper()
	if !errors.Is(err, tree.ErrNotWritable) && !errors.Is(err, publish.ErrUnavailable) {
		t.Errorf("%s is refused: %v", name, err)
	}
}

// Any operation of a disk or a store may fail, once or for a while. No good file is
// refused, and no acknowledged file is lost. Sending the failed files again completes
// the release.
func TestPublicationsDuringFaults(t *testing.T) {
	author := indextest.NewPublisher(t)
	d := newDist(t, "").signed(author)
	d["docs.zip"] = indextest.Zip("docs/index.md", "# Demo", "docs/resources/thing.md", "# Thing")
	for _, order := range []struct {
		rule  string
		names []string
		from  int // faults begin at this file; another row covers the files before it
	}{
		{"SHA256SUMS after some of what it lists", []string{linuxZip, "docs.zip", signature, sums, darwinZip, manifest}, 0},
		{"SHA256SUMS before all else", []string{sums, linuxZip, darwinZip, manifest, "docs.zip", signature}, 3},
		{"documentation of a release that is published", []string{linuxZip, darwinZip, manifest, signature, sums, "docs.zip"}, 5},
	} {
		t.Run(order.rule, func(t *testing.T) {
			build := func(files *indextest.Tree) {
				files.Keys("acme", author)
				files.ProviderIn("providers/ACME/demo/0.9.0", "demo", "0.9.0", "linux_amd64").Signed(author)
			}
			eachFault(t, build, func(t *testing.T, r faultyTree, begin func(), end func() string) {
				var again []string
				for i, name := range order.names {
					if i == order.from {
						begin()
					}
					if _, err := r.put(name, d[name]); err != nil {
						again = append(again, name)
						unavailable(t, name, err)
					}
				}
				end()
				for _, name := range again {
					if _, err := r.put(name, d[name]); err != nil {
						t.Errorf("%s is sent again: %v", name, err)
					}
				}
				scanned := r.scan().Provider(index.PlaceOf(demo))
				release := scanned.Release("1.0.0")
				if release == nil || len(release.Packages) != 2 || release.Signature.KeyID != author.ID() {
					state, err := r.State(t.Context(), demo, "1.0.0")
					t.Errorf("all was acknowledged, and offered is %+v: missing %v (%v); failed were %v", release, state.Missing, err, again)
				}
				if !slices.Contains(r.files(), "providers/ACME/demo/1.0.0/docs/index.md") {
					t.Errorf("its documentation is lost: %v", r.files())
				}
				if scanned.Release("0.9.0") == nil {
					t.Errorf("another version is no longer offered: %v", r.files())
				}
			})
		})
	}
}

// A listing may name a file that is not found a moment later, as an old one of an NFS client does.
// Such a file is neither damaged nor refused nor lost.
func TestStagedFilesThatAreNotFoundOnce(t *testing.T) {
	author := indextest.NewPublisher(t)
	d := newDist(t, "").signed(author)
	d["docs.zip"] = indextest.Zip("docs/index.md", "# Demo")
	for _, order := range [][]string{
		{"docs.zip", linuxZip, manifest, signature, darwinZip, sums},
		{sums, linuxZip, manifest, signature, darwinZip},
		{sums, linuxZip, manifest, darwinZip, signature},
	} {
		for n := 1; ; n++ {
			faults, root := new(treetest.Faults), t.TempDir()
			r := newUnobserved(t, root, faults.Open(source.Directories{Root: root}.Open))
			r.Keys("acme", author)
			last := len(order) - 1
			for _, name := range order[:last] {
				r.mustPut(name, d[name], publish.Waiting)
			}
			var opened atomic.Int64
			faults.When(func(_ int, o treetest.Operation) error {
				isFile := strings.HasPrefix(o.Path, stageOfDemo) && strings.Contains(path.Base(o.Path), "_") || path.Base(o.Path) == "docs.zip"
				if o.Name == "open" && isFile && opened.Add(1) == int64(n) {
					return syscall.ENOENT
				}
				return nil
			})
			_, err := r.put(order[last], d[order[last]])
			_, failed := faults.End()
			if err != nil {
				unavailable(t, order[last], err)
			}
			if _, err := r.put(order[last], d[order[last]]); err != nil {
				t.Errorf("%s is sent again: %v", order[last], err)
			}
			release := r.scan().Provider(index.PlaceOf(demo)).Release("1.0.0")
			if release == nil || len(release.Packages) != 2 || release.Signature.KeyID != author.ID() {
				t.Errorf("all was acknowledged, and offered is %+v of %v", release, r.files())
			}
			if t.Failed() {
				t.Fatalf("after %v: not found was %v", order, failed)
			}
			if len(failed) == 0 {
				break
			}
		}
	}
}

// On NFS, an instance may not see yet that another one has staged SHA256SUMS. atAnInstanceBehind has files
// of a release taken by such an instance.
func atAnInstanceBehind(t *testing.T, author *indextest.Publisher, checksums string, take func(r *registry)) *registry {
	t.Helper()
	root := t.TempDir()
	open := source.Directories{Root: root}.Open
	var faults treetest.Faults
	one, behind := newUnobserved(t, root, open), newUnobserved(t, root, faults.Open(open))
	one.Keys("acme", author)
	one.mustPut(sums, checksums, publish.Waiting)
	faults.When(func(_ int, o treetest.Operation) error {
		if strings.HasPrefix(o.Path+"/", stageOfDemo+"release/") {
			return syscall.ENOENT
		}
		return nil
	})
	take(behind)
	return one
}

// Files that such an instance takes are acknowledged, and belong to the release.
func TestFilesTakenBeforeSHA256SUMSIsSeen(t *testing.T) {
	author, stranger := indextest.NewPublisher(t), indextest.NewPublisher(t)
	d := newDist(t, "").signed(author)
	r := atAnInstanceBehind(t, author, d[sums], func(r *registry) {
		for _, name := range []string{linuxZip, manifest, signature} {
			r.mustPut(name, d[name], publish.Waiting)
		}
		r.mustPut(darwinZip, newDist(t, "another")[darwinZip], publish.Waiting) // not of the release
		r.mustPut(signature, stranger.Sign(d[sums]), publish.Waiting)
	})
	if state, err := r.State(t.Context(), demo, "1.0.0"); err != nil || !slices.Equal(state.Missing, []string{darwinZip}) {
		t.Errorf("missing are %v, %v", state.Missing, err)
	}
	if _, err := r.put(darwinZip, d[darwinZip]); err != nil {
		t.Fatal(err)
	}
	if release := r.scan().Provider(index.PlaceOf(demo)).Release("1.0.0"); release == nil || len(release.Packages) != 2 || release.Signature.KeyID != author.ID() {
		t.Errorf("offered is %+v of %v", release, r.files())
	}
}

// The signature that such an instance has taken counts as soon as another one has SHA256SUMS, or is asked
// for again: it is not acknowledged and then dropped.
func TestASignatureTakenBeforeSHA256SUMSIsSeen(t *testing.T) {
	author, stranger := indextest.NewPublisher(t), indextest.NewPublisher(t)
	d := newDist(t, "").signed(author)
	t.Run("of a key that does not count", func(t *testing.T) {
		wrong := stranger.Sign(d[sums])
		r := atAnInstanceBehind(t, author, d[sums], func(r *registry) { r.mustPut(signature, wrong, publish.Waiting) })
		f := releaseFile(t, "1.0.0", signature)
		u := upload(wrong)
		u.SHA256 = sha256.Sum256([]byte(wrong))
		if result, err := r.Put(t.Context(), f, u); err == nil {
			t.Errorf("it is acknowledged: %+v of %v", result, r.files())
		}
	})
	t.Run("of the author, as an upload of documentation says", func(t *testing.T) {
		r := atAnInstanceBehind(t, author, d[sums], func(r *registry) { r.mustPut(signature, d[signature], publish.Waiting) })
		result, err := r.put("docs.zip", indextest.Zip("docs/index.md", "# Demo"))
		if err != nil || slices.Contains(result.Missing, signature) {
			t.Errorf("missing are %v, %v", result.Missing, err)
		}
	})
}

// Documentation that is staged stays until the documentation that replaces it is staged.
func TestStagedDocumentationThatIsReplaced(t *testing.T) {
	d := newDist(t, "")
	for _, name := range []string{"docs.zip", "docs.tgz"} {
		t.Run("by "+name, func(t *testing.T) {
			packed := indextest.Zip
			if name == "docs.tgz" {
				packed = indextest.TarGz
			}
			eachFault(t, func(*indextest.Tree) {}, func(t *testing.T, r faultyTree, begin func(), end func() string) {
				r.mustPut("docs.zip", indextest.Zip("docs/index.md", "one"), publish.Waiting)
				begin()
				_, failed := r.put(name, packed("docs/index.md", "two"))
				if failed != nil {
					unavailable(t, "the other documentation", failed)
				}
				end()
				for _, file := range d.names() {
					r.mustPut(file, d[file], publish.Waiting) // for the index, which there is none of
				}
				page := "providers/acme/demo/1.0.0/docs/index.md"
				if !slices.Contains(r.files(), page) {
					t.Fatalf("the documentation is lost: %v", r.files())
				}
				if text := r.Read(page); text != "two" && (failed == nil || text != "one") {
					t.Errorf("the page says %q (%v)", text, failed)
				}
			})
		})
	}
}

// A publisher whose documentation has failed may return to the documentation that is
// published. What failed never comes back then.
func TestDocumentationThatIsTakenBack(t *testing.T) {
	d := newDist(t, "")
	build := func(files *indextest.Tree) {
		for _, name := range d.names() {
			files.Write("providers/acme/demo/1.0.0/"+name, d[name])
		}
		files.Write("providers/acme/demo/1.0.0/docs/index.md", "one")
	}
	eachFault(t, build, func(t *testing.T, r faultyTree, begin func(), end func() string) {
		begin()
		if _, err := r.put("docs.zip", indextest.Zip("docs/index.md", "two")); err != nil {
			unavailable(t, "the other documentation", err)
		}
		end()
		if _, err := r.put("docs.tgz", indextest.TarGz("docs/index.md", "one")); err != nil {
			t.Errorf("the documentation of before: %v", err)
		}
		defer r.run()()
		eventually(t, "no documentation is staged", func() bool {
			return !slices.ContainsFunc(r.files(), func(name string) bool { return strings.HasPrefix(name, stageOfDemo) })
		})
		if text := r.Read("providers/acme/demo/1.0.0/docs/index.md"); text != "one" {
			t.Errorf("the page says %q", text)
		}
	})
}

// An unreadable tree never leads to a version that is published twice or replaced.
func TestModulesDuringFaults(t *testing.T) {
	one, two := indextest.TarGz("main.tf", `output "a" { value = 1 }`), indextest.TarGz("main.tf", `output "a" { value = 2 }`)
	for _, present := range []string{
		"", "modules/acme/vpc/aws/1.0.0.tar.gz", "modules/acme/vpc/aws/v1.0.0.tgz", "modules/Acme/vpc/aws/1.0.0.tar.gz",
	} {
		t.Run("there is "+present, func(t *testing.T) {
			build := func(files *indextest.Tree) {
				if present != "" {
					files.Write(present, one)
				}
			}
			eachFault(t, build, func(t *testing.T, r faultyTree, begin func(), end func() string) {
				before := r.files()
				begin()
				_, err := r.putModule("1.0.0.tar.gz", two)
				end()
				switch {
				case present == "" && err != nil:
					unavailable(t, "the module", err)
				case present != "" && err == nil:
					t.Error("another module is taken")
				}
				if _, err := r.putModule("1.0.0.tar.gz", two); present == "" && err != nil || present != "" && !errors.Is(err, publish.ErrConflict) {
					t.Errorf("it is sent again: %v", err)
				}
				if present != "" && (!slices.Equal(r.files(), before) || r.Read(present) != one) {
					t.Errorf("there was %v, and is %v", before, r.files())
				}
				if present == "" && r.scan().Module(index.PlaceOf(vpc)).Version("1.0.0") == nil {
					t.Errorf("it is not offered: %v", r.files())
				}
			})
		})
	}
}

// A listing may name a module that no longer exists, as an old one of an NFS client
// does. That module conflicts with no upload: the publisher is told to try again.
func TestModuleThatIsGoneAtOnce(t *testing.T) {
	faults, root := new(treetest.Faults), t.TempDir()
	r := newUnobserved(t, root, faults.Open(source.Directories{Root: root}.Open))
	const name = "modules/acme/vpc/aws/1.0.0.tar.gz"
	gone := false
	faults.When(func(_ int, o treetest.Operation) error {
		if o.String() == "stat "+name && !gone {
			gone = true
			return os.Remove(filepath.Join(root, filepath.FromSlash(name)))
		}
		return nil
	})
	content := indextest.TarGz("main.tf", "")
	_, err := r.putModule("1.0.0.tar.gz", content)
	if !gone {
		t.Fatal("nobody has looked at it")
	}
	unavailable(t, "the module", err)
	faults.End()
	if _, err := r.putModule("1.0.0.tar.gz", content); err != nil {
		t.Errorf("it is sent again: %v", err)
	}
	r.holds(name)
}
