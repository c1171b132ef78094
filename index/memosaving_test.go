package index_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

func inAnHour() time.Time { return time.Now().Add(time.Hour) } // files written now are old by then

// saved counts how often a memo was saved.
func (s *memoryStore) saved() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.saves
}

func (s *memoryStore) failWith(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.fails = err
}

// However often a tree was scanned before, a restart opens only the keys.
func TestTheMemoKeepsWhatIsStillTrue(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	const unsigned = "providers/acme/demo/terraform-provider-demo_1.2.0_"
	for _, test := range []struct {
		rule  string
		scans func(t *testing.T, files *indextest.Tree, x *index.Index)
	}{
		{"after one scan", func(*testing.T, *indextest.Tree, *index.Index) {}},
		{"after many", func(t *testing.T, _ *indextest.Tree, x *index.Index) {
			for range 4 {
				rescan(t, x)
			}
		}},
		{"after the keys were touched", func(t *testing.T, files *indextest.Tree, x *index.Index) {
			files.Keys("acme", publisher)
			rescan(t, x)
			rescan(t, x)
		}},
		{"after versions were added", func(t *testing.T, files *indextest.Tree, x *index.Index) {
			files.Provider("acme/demo", "3.0.0", "linux_amd64").Manifest("6.0").Signed(publisher)
			rescan(t, x)
			files.Write("modules/acme/vpc/aws/2.0.0.zip", indextest.Zip("main.tf", "# a module\n"))
			rescan(t, x)
			rescan(t, x)
		}},
		{"after a signed version was withdrawn and restored", func(t *testing.T, files *indextest.Tree, x *index.Index) {
			files.Write("providers/acme/demo/registry.hcl", `withdrawn "1.0.0" {}`)
			rescan(t, x)
			files.Write("providers/acme/demo/registry.hcl", `description = "a provider"`)
			rescan(t, x)
		}},
		{"after a scan that failed", func(t *testing.T, files *indextest.Tree, x *index.Index) {
			if err := files.Fs.Rename("keys/acme.asc", "keys/acme.asc.tmp"); err != nil {
				t.Fatal(err)
			}
			rescan(t, x)
			if err := files.Fs.Rename("keys/acme.asc.tmp", "keys/acme.asc"); err != nil {
				t.Fatal(err)
			}
			rescan(t, x)
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			files.Keys("acme", publisher)
			files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Manifest("5.0").Signed(publisher)
			files.Provider("acme/demo", "1.1.0", "linux_amd64").Checksums()
			files.Write(unsigned+"linux_amd64.zip", "no zip")
			files.Write(unsigned+"SHA256SUMS", strings.Repeat("0", 64)+"  a file that is not here\n")
			files.Write("providers/acme/demo/registry.hcl", `deprecated "1.1.0" {}`)
			files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"))

			store := new(memoryStore)
			o := options(t, files.Open)
			o.Store, o.Now = store, inAnHour
			first := index.New(o)
			rescan(t, first)
			test.scans(t, files, first)
			first.Close()

			var mutex sync.Mutex
			var opened []string
			o.Open = indextest.On(t, opening{files.Fs, func(name string) {
				if info, err := files.Fs.Stat(name); err == nil && !info.IsDir() && path.Dir(name) != "keys" {
					mutex.Lock()
					defer mutex.Unlock()
					opened = append(opened, name)
				}
			}}).Open
			second := newIndex(t, o)
			s := rescan(t, second)
			if verified := second.Stats().Verified; s.Read != 0 || verified != 0 || len(opened) > 0 {
				t.Errorf("%d archives are read, %d signatures verified, and opened are %q", s.Read, verified, opened)
			}
			if !offers("acme/demo", "1.0.0")(s) || !offers("acme/vpc/aws", "1.0.0")(s) {
				t.Errorf("offered is %+v", s.Report().Offered)
			}
			before := store.saved()
			rescan(t, second)
			if second.Close(); store.saved() != before {
				t.Error("it is saved although nothing has changed")
			}
		})
	}
}

// A crash loses the results of at most a minute, and changes cost at most one pass over the
// memo in a minute.
func TestWhenTheMemoIsSaved(t *testing.T) {
	o := options(t, nil) // its key is of the present
	synctest.Test(t, func(t *testing.T) {
		files, store := indextest.New(t), new(memoryStore)
		o.Open, o.Store, o.Now = files.Open, store, inAnHour
		x := newLogged(t, o)
		versions := 0
		change := func() {
			files.Provider("acme/demo", fmt.Sprintf("1.%d.0", versions), "linux_amd64")
			versions++
			rescan(t, x.Index)
		}
		reads := func() int { // after a crash
			o := o
			o.Store = &memoryStore{memo: store.memo}
			other := newIndex(t, o)
			return rescan(t, other).Read
		}
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		for _, test := range []struct {
			rule   string
			do     func()
			saves  int
			unread int // by a process that starts with what is saved
		}{
			{"the first change is saved at once", change, 1, 0},
			{"the next ones are not", func() { change(); change() }, 0, 2},
			{"until a minute has passed", func() { pass(time.Minute) }, 1, 0},
			{"without a change nothing is saved", func() { pass(time.Hour); rescan(t, x.Index) }, 0, 0},
			{"the first one after a quiet minute is again saved at once", change, 1, 0},
			{"a change that a minute later is gone leaves no trace", func() {
				change()
				files.Remove("providers/acme/demo/terraform-provider-demo_1.4.0_linux_amd64.zip")
				rescan(t, x.Index)
				pass(time.Minute)
			}, 1, 0},
			{"what cannot be saved", func() { pass(time.Minute); store.failWith(errors.New("full")); change(); change() }, 0, 2},
			{"is saved a minute after it can", func() { pass(time.Hour); store.failWith(nil); pass(time.Minute) }, 1, 0},
			{"what is not saved yet when the index ends", func() { change() }, 0, 1},
			{"is saved then", func() { x.Close() }, 1, 0},
			{"and no more", func() { x.Close(); pass(time.Hour) }, 0, 0},
		} {
			before := store.saved()
			if test.do(); store.saved()-before != test.saves {
				t.Errorf("%s: it is saved %d times", test.rule, store.saved()-before)
			}
			if n := reads(); n != test.unread {
				t.Errorf("%s: after a crash %d archives are read", test.rule, n)
			}
		}
		if n := strings.Count(x.log.String(), "the memo of digests cannot be kept"); n != 1 {
			t.Errorf("that it cannot be kept is logged %d times", n)
		}
	})
}
