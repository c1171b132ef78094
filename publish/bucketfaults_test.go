package publish_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// faults make operations of a store fail, by the number of the operation.
type faults struct {
	bucket *treetest.Bucket
	asked  atomic.Int64
	fails  atomic.Pointer[func(n int64) bool] // nil: no operation fails
	failed atomic.Pointer[string]             // the first operation that has failed
}

var errDown = errors.New("503 SlowDown")

// newFaults attaches the returned faults to a bucket. An operation fails before it is
// done, or afterwards.
func newFaults(afterwards bool) *faults {
	f := &faults{bucket: new(treetest.Bucket)}
	fail := func(operation, name string) error {
		fails := f.fails.Load()
		if fails == nil || !(*fails)(f.asked.Add(1)) {
			return nil
		}
		what := operation + " " + name
		f.failed.CompareAndSwap(nil, &what)
		return errDown
	}
	if afterwards {
		f.bucket.Lose = fail
	} else {
		f.bucket.Fail = fail
	}
	return f
}

func (f *faults) begin(fails func(n int64) bool) {
	f.asked.Store(0)
	f.failed.Store(nil)
	f.fails.Store(&fails)
}

// end ends the faults, and returns the first operation that has failed.
func (f *faults) end() (failed string) {
	f.fails.Store(nil)
	if what := f.failed.Load(); what != nil {
		failed = *what
	}
	return failed
}

// withoutIndex keeps requests from waiting for the index, which cannot scan while the
// store fails.
func withoutIndex(o *publish.Options) { o.Index = func() publish.Index { return nil } }

// faultModes are the ways in which a store fails at its operation n.
var faultModes = []struct {
	name       string
	afterwards bool
	fails      func(n int64) func(int64) bool
}{
	{"is down from then on", false, func(n int64) func(int64) bool { return func(i int64) bool { return i >= n } }},
	{"fails once", false, func(n int64) func(int64) bool { return func(i int64) bool { return i == n } }},
	{"loses an answer", true, func(n int64) func(int64) bool { return func(i int64) bool { return i == n } }},
}

// If a publication is interrupted at any point, clients are offered nothing or the
// whole release, and sending its files again completes it.
func TestPublicationsThatAStoreInterrupts(t *testing.T) {
	author := indextest.NewPublisher(t)
	d := newDist(t, "").signed(author)
	docs := indextest.Zip("docs/index.md", "# Demo", "docs/resources/thing.md", "# Thing")
	published := append(filesIn("providers/acme/demo/1.0.0", d.names()...), filesIn("providers/acme/demo/1.0.0/docs", "index.md", "resources/thing.md")...)
	order := []string{linuxZip, "docs.zip", signature, sums, darwinZip, manifest}
	content := func(name string) string {
		if name == "docs.zip" {
			return docs
		}
		return d[name]
	}
	for _, mode := range faultModes {
		t.Run("the store "+mode.name, func(t *testing.T) {
			offered := 0
			for n := int64(1); ; n += int64(treetest.Stride()) {
				store := newFaults(mode.afterwards)
				indextest.InBucket(t, store.bucket).Keys("acme", author)
				r := newRegistryInBucket(t, store.bucket, withoutIndex)
				r.index.Close()
				store.begin(mode.fails(n))
				for _, name := range order {
					if _, err := r.put(name, content(name)); err != nil && !errors.Is(err, tree.ErrNotWritable) && !errors.Is(err, publish.ErrUnavailable) {
						t.Fatalf("operation %d: %s is refused, which its publisher would not send again: %v", n, name, err)
					}
				}
				failed := store.end()

				again := r.again(t)
				again.settle()
				if release := again.index.Snapshot().Provider(index.PlaceOf(demo)).Release("1.0.0"); release != nil {
					offered++
					again.offers(d)
					if release.Signature.KeyID != author.ID() {
						t.Errorf("operation %d: the release is signed by %s", n, release.Signature)
					}
				}
				for _, name := range order {
					if _, err := again.put(name, content(name)); err != nil {
						t.Fatalf("operation %d: %s is sent again: %v", n, name, err)
					}
				}
				again.tidy()
				again.settle()
				again.offers(d)
				again.holds(published...)
				again.index.Close()
				if t.Failed() {
					t.Fatalf("after a failure of operation %d", n)
				}
				if failed == "" {
					t.Logf("a publication has %d operations; after %d failures the release was offered", n-1, offered-1)
					return
				}
			}
		})
	}
}

// settle waits until the index has read all archives.
func (r *registry) settle() {
	r.t.Helper()
	eventually(r.t, "all is read", func() bool { return r.index.Snapshot().Report().Pending == 0 })
}

// tidy tidies up until no file is staged.
func (r *registry) tidy() {
	r.t.Helper()
	stop := r.run()
	defer stop()
	eventually(r.t, "nothing is staged", func() bool {
		return !slices.ContainsFunc(r.files(), func(name string) bool { return strings.Contains(name, tree.StagingName) })
	})
}

// If the publisher does not return, an instance completes the publication, or drops it
// with all its files when its time is over.
func TestInterruptedPublicationsThatNobodySendsAgain(t *testing.T) {
	d := newDist(t, "")
	for _, test := range []struct {
		rule string
		age  time.Duration
		lost string // a staged file that is lost; empty: none
		want []string
	}{
		{"complete", 0, "", filesIn("providers/acme/demo/1.0.0", d.names()...)},
		{"incomplete and old", 25 * time.Hour, linuxZip, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			for n := int64(1); ; n++ {
				store := newFaults(false)
				r := newRegistryInBucket(t, store.bucket, withoutIndex)
				r.index.Close()
				for _, name := range d.names()[1:] {
					r.mustPut(name, d[name], publish.Waiting)
				}
				store.begin(faultModes[0].fails(n))
				r.put(d.names()[0], d[d.names()[0]])
				if store.end() == "" {
					break
				}
				incomplete := store.bucket.Names()
				if !slices.ContainsFunc(incomplete, func(name string) bool { return strings.HasSuffix(name, "1.0.0/"+tree.UploadName) }) ||
					slices.Contains(incomplete, "providers/acme/demo/1.0.0/"+sums) {
					continue
				}
				if test.lost != "" {
					r.Remove(stagedRelease + test.lost)
				}
				again := r.again(t, func(o *publish.Options) {
					o.Now = func() time.Time { return time.Now().Add(test.age) }
				})
				again.tidy()
				again.holds(test.want...)
				if names := store.bucket.Names(); test.want == nil && len(names) > 0 {
					t.Errorf("left are %v", names)
				}
				again.index.Close()
			}
		})
	}
}

// A file whose publication has failed may be in the tree all the same. Clients are offered it
// then, even if it is not sent again.
func TestPublicationsWhoseAnswerIsLost(t *testing.T) {
	d := newDist(t, "")
	for _, test := range []struct {
		rule    string
		put     func(r *registry) error
		lost    string // the file whose answer is lost
		offered func(s *index.Snapshot) bool
	}{
		{"a module", func(r *registry) error {
			_, err := r.putModule("1.0.0.tgz", indextest.TarGz("main.tf", `output "a" { value = 1 }`))
			return err
		}, "modules/acme/vpc/aws/1.0.0.tgz", func(s *index.Snapshot) bool {
			return s.Module(index.PlaceOf(vpc)).Version("1.0.0") != nil
		}},
		{"what describes a provider", func(r *registry) error {
			f, err := publish.ParseMetadataFile(demo, tree.MetadataName)
			if err == nil {
				_, err = r.Put(r.t.Context(), f, upload(`description = "one"`))
			}
			return err
		}, "providers/acme/demo/registry.hcl", func(s *index.Snapshot) bool {
			m := s.Metadata(index.PlaceOf(demo))
			return m != nil && m.Description == "one"
		}},
		{"documentation", func(r *registry) error {
			_, err := r.put("docs.zip", indextest.Zip("docs/index.md", "# Demo"))
			return err
		}, "providers/acme/demo/1.0.0/docs/index.md", func(s *index.Snapshot) bool {
			return s.Provider(index.PlaceOf(demo)).Release("1.0.0").Docs() != ""
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var loses atomic.Bool
			bucket := new(treetest.Bucket)
			bucket.Lose = func(_, name string) error {
				if name == test.lost && loses.CompareAndSwap(true, false) {
					return errDown
				}
				return nil
			}
			r := newRegistryInBucket(t, bucket)
			r.putAll(d, d.names()...)
			loses.Store(true)
			if err := test.put(r); !errors.Is(err, tree.ErrStore) {
				t.Fatalf("the answer is %v", err)
			}
			eventually(t, "it is offered", func() bool { return test.offered(r.index.Snapshot()) })
		})
	}
}

// Files that another publication has left in the folder of a version stay until its own
// files are dropped.
func TestDropRemovesWhatAnInterruptedPublicationHasCopied(t *testing.T) {
	d, other := newDist(t, "one"), newDist(t, "two")
	store := newFaults(false)
	r := newRegistryInBucket(t, store.bucket)
	for _, name := range []string{linuxZip, sums, manifest} {
		r.mustPut(name, d[name], publish.Waiting)
	}
	var copies atomic.Int64
	store.bucket.Fail = func(operation, name string) error {
		if operation == "put" && strings.HasSuffix(name, "acme/demo/1.0.0/"+sums) && copies.Add(1) == 1 {
			return errDown
		}
		return nil
	}
	_, err := r.put(darwinZip, d[darwinZip])
	saying(t, err, tree.ErrStore, "503 SlowDown")
	if err := r.Drop(t.Context(), demo, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	if names := store.bucket.Names(); len(names) > 0 {
		t.Errorf("left are %v", names)
	}
	r.putAll(other, other.names()...)
	r.offers(other)
}
