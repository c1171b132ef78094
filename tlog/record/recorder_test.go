package record

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func scan(t *testing.T, files *indextest.Tree) *index.Snapshot {
	t.Helper()
	return scanAt(t, files, time.Now)
}

func scanAt(t *testing.T, files *indextest.Tree, now func() time.Time) *index.Snapshot {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := index.Scan(t.Context(), index.Options{Open: files.Open, Signer: key, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// twoVersions returns snapshots of a module with one version, and with two.
func twoVersions(t *testing.T) (before, after *index.Snapshot) {
	t.Helper()
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	before = scan(t, files)
	files.Write("modules/acme/vpc/aws/2.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	return before, scan(t, files)
}

// record has a recorder look at a snapshot for a time, and returns it closed.
func record(t *testing.T, o Options, s *index.Snapshot, wait time.Duration) (r *Recorder) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r = New(o)
		r.Offered(s, nil)
		time.Sleep(wait)
		if state := r.State(); state != (State{}) {
			t.Errorf("it is %+v", state)
		}
		r.Close()
		synctest.Wait()
	})
	return r
}

func entered(t *testing.T, s *tlogtest.Storage) (leaves []tlog.Leaf) {
	t.Helper()
	for _, e := range s.Entries(t) {
		l, err := tlog.ParseLeaf(e)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, l)
	}
	return leaves
}

// described returns entries without times, hashes and nonces.
func described(t *testing.T, s *tlogtest.Storage) string {
	t.Helper()
	var lines []string
	for _, l := range entered(t, s) {
		line := fmt.Sprint(l.Event, " ", l.Address, " ", l.Version)
		if l.Platform.OS != "" {
			line += " " + l.Platform.String()
		}
		if l.Pack != 0 {
			line += fmt.Sprint(" pack:", l.Pack)
		}
		if l.Key != "" {
			line += " signed"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// A step changes a tree. adds are the entries that the log gets.
type step struct {
	rule string
	do   func(*indextest.Tree)
	adds string
}

func TestWhatIsEntered(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	module := func(f *indextest.Tree, name string) { f.Write("modules/"+name, indextest.TarGz("main.tf", name)) }
	none := func(*indextest.Tree) {}
	for _, test := range []struct {
		name      string
		hostnames []svchost.Hostname
		steps     []step
	}{
		{"modules", nil, []step{
			{"what is there when the log is begun", func(f *indextest.Tree) { module(f, "acme/vpc/aws/1.0.0.tar.gz") }, "found acme/vpc/aws 1.0.0"},
			{"what is known is not entered again", none, ""},
			{"what comes later", func(f *indextest.Tree) { module(f, "acme/vpc/aws/1.1.0.tar.gz") }, "offered acme/vpc/aws 1.1.0"},
			{"a folder that is packed", func(f *indextest.Tree) { f.Write("modules/acme/vpc/aws/1.2.0/main.tf", "# hello") }, "offered acme/vpc/aws 1.2.0 pack:1"},
			{"the same files as an archive of somebody else are no event", func(f *indextest.Tree) {
				f.Remove("modules/acme/vpc/aws/1.2.0").Write("modules/acme/vpc/aws/1.2.0.tar.gz", indextest.TarGz("main.tf", "# hello"))
			}, ""},
			{"of another registry", func(f *indextest.Tree) { module(f, "registry.terraform.io/acme/vpc/aws/1.0.0.tar.gz") }, "offered registry.terraform.io/acme/vpc/aws 1.0.0"},
			{"one that is withdrawn", func(f *indextest.Tree) {
				f.Write("modules/acme/vpc/aws/registry.hcl", `withdrawn "1.1.0" { reason = "a bug" }`)
			}, "withdrawn acme/vpc/aws 1.1.0"},
			{"which is withdrawn still", none, ""},
			{"and back again", func(f *indextest.Tree) { f.Remove("modules/acme/vpc/aws/registry.hcl") }, "restored acme/vpc/aws 1.1.0"},
			{"all versions are withdrawn", func(f *indextest.Tree) {
				f.Write("modules/acme/vpc/aws/registry.hcl", `withdrawn ">= 0" { reason = "a bug" }`)
			}, "withdrawn acme/vpc/aws 1.2.0\nwithdrawn acme/vpc/aws 1.1.0\nwithdrawn acme/vpc/aws 1.0.0"},
			{"what is gone is no event", func(f *indextest.Tree) { f.Remove("modules/registry.terraform.io") }, ""},
			{"what does not verify is not offered", func(f *indextest.Tree) { f.Write("modules/acme/dns/aws/2.0.0.tar.gz", "no archive") }, ""},
		}},
		{"providers", nil, []step{
			{"all platforms", func(f *indextest.Tree) { f.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64") },
				"found acme/demo 1.0.0 darwin_arm64\nfound acme/demo 1.0.0 linux_amd64"},
			{"a further platform", func(f *indextest.Tree) { f.Provider("acme/demo", "1.0.0", "windows_amd64") }, "offered acme/demo 1.0.0 windows_amd64"},
			{"signed by its publisher", func(f *indextest.Tree) {
				f.Keys("other", publisher)
				f.Provider("other/demo", "1.0.0", "linux_amd64").Checksums().Signed(publisher)
			}, "offered other/demo 1.0.0 linux_amd64 signed"},
		}},
		{"own hostnames", []svchost.Hostname{"registry.example.com", "old.example.com"}, []step{
			{"are left out of addresses", func(f *indextest.Tree) {
				module(f, "registry.example.com/acme/vpc/aws/1.0.0.tar.gz")
				module(f, "old.example.com/acme/vpc/aws/1.0.0.tar.gz")
				module(f, "acme/vpc/aws/2.0.0.tar.gz")
			}, "found acme/vpc/aws 2.0.0\nfound acme/vpc/aws 1.0.0"},
			{"a version that is withdrawn under one of them", func(f *indextest.Tree) {
				f.Write("modules/old.example.com/acme/vpc/aws/registry.hcl", `withdrawn "1.0.0" { reason = "a bug" }`)
			}, "withdrawn acme/vpc/aws 1.0.0"},
			{"is not restored by the other", func(f *indextest.Tree) { module(f, "acme/vpc/aws/3.0.0.tar.gz") }, "offered acme/vpc/aws 3.0.0"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			files, storage := indextest.New(t), tlogtest.New(t)
			had := ""
			for _, s := range test.steps {
				s.do(files)
				snapshot := scan(t, files)
				for range 2 { // a recorder that is new, as after a restart
					record(t, Options{Open: storage.Open, Hostnames: test.hostnames}, snapshot, 2*time.Minute)
				}
				has := described(t, storage)
				if got := strings.TrimPrefix(strings.TrimPrefix(has, had), "\n"); got != s.adds {
					t.Errorf("%s: it adds\n%s\nwant\n%s", s.rule, got, s.adds)
				}
				had = has
			}
		})
	}
}

// Entries stay, so a folder is not entered while it is still being copied. Archives beside it
// are.
func TestAFolderRestsBeforeItIsEntered(t *testing.T) {
	files, storage := indextest.New(t), tlogtest.New(t)
	scanWith := func(content string) *index.Snapshot {
		files.Write("modules/acme/vpc/aws/1.0.0/main.tf", content)
		return scan(t, files)
	}
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", ""))
	part, whole := scanWith("# part"), scanWith("# part and the rest")
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	more := scan(t, files)
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Open: storage.Open})
		defer func() {
			r.Close()
			synctest.Wait()
		}()
		entries := func() int64 {
			synctest.Wait()
			return r.Log().Head().Size
		}
		r.Offered(part, nil)
		time.Sleep(50 * time.Second)
		if n, state := entries(), r.State(); n != 1 || state.Waiting != 1 {
			t.Errorf("of the archive alone, there are %d entries, and %d folders wait", n, state.Waiting)
		}
		r.Offered(whole, nil)
		time.Sleep(50 * time.Second)
		if n := entries(); n != 1 {
			t.Errorf("with other files it begins to rest again: there are %d entries", n)
		}
		r.Offered(more, nil)
		time.Sleep(5 * time.Second)
		if n := entries(); n != 2 {
			t.Errorf("others do not wait for it: there are %d entries", n)
		}
		time.Sleep(15 * time.Second)
		if n, state := entries(), r.State(); n != 3 || state != (State{}) {
			t.Errorf("after its rest there are %d entries, %+v", n, state)
		}
		if c := r.Log().Compare(leafOf(t, whole)); c.Record != tlog.OnRecord {
			t.Errorf("it is %+v", c)
		}
		if c := r.Log().Compare(leafOf(t, part)); c.Record != tlog.Replaced {
			t.Errorf("a part of it is %+v", c)
		}
	})
}

func leafOf(t *testing.T, s *index.Snapshot) tlog.Leaf {
	t.Helper()
	a := address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	l := ofModule(s.Module(index.PlaceOf(a)).Version("1.0.0"))
	l.Event, l.Address = tlog.Offered, a
	return l
}

// A snapshot that is older than a withdrawal by another instance does not say that the version
// is restored.
func TestASnapshotThatIsOlderThanTheLog(t *testing.T) {
	files, storage := indextest.New(t), tlogtest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	early := func() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) } // when the bubble's clock begins
	old := scanAt(t, files, early)
	files.Write("modules/acme/vpc/aws/registry.hcl", `withdrawn "1.0.0" { reason = "a backdoor" }`)
	now := scanAt(t, files, early)
	files.Remove("modules/acme/vpc/aws/registry.hcl")
	restored := scanAt(t, files, early)
	synctest.Test(t, func(t *testing.T) {
		one, two := New(Options{Open: storage.Open}), New(Options{Open: storage.Open})
		defer func() {
			one.Close()
			two.Close()
			synctest.Wait()
		}()
		for _, step := range []struct {
			rule string
			who  *Recorder
			sees *index.Snapshot
			adds string
		}{
			{"all see it", one, old, "found acme/vpc/aws 1.0.0"},
			{"one sees that it is withdrawn", one, now, "withdrawn acme/vpc/aws 1.0.0"},
			{"another one has not looked yet", two, old, ""},
			{"and then does", two, now, ""},
			{"until it sees that it is not withdrawn any more", two, restored, "restored acme/vpc/aws 1.0.0"},
		} {
			before := described(t, storage)
			step.who.Offered(step.sees, nil)
			time.Sleep(time.Minute)
			if added := strings.TrimSpace(strings.TrimPrefix(described(t, storage), before)); added != step.adds {
				t.Errorf("%s: added is %q, not %q", step.rule, added, step.adds)
			}
		}
	})
}

// A version that the index withholds once the log has been read is not entered as restored, by
// the snapshot before.
func TestWhatIsWithheldIsNotEntered(t *testing.T) {
	files, storage := indextest.New(t), tlogtest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# first"))
	first := scan(t, files)
	files.Write("modules/acme/vpc/aws/registry.hcl", `withdrawn "1.0.0" { reason = "a backdoor" }`)
	withdrawn := scan(t, files)
	files.Remove("modules/acme/vpc/aws/registry.hcl")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# other"))
	swapped := scan(t, files)
	files.Remove("modules/acme/vpc/aws/1.0.0.tar.gz")
	without := scan(t, files) // as the index leaves it out
	synctest.Test(t, func(t *testing.T) {
		before := New(Options{Open: storage.Open})
		before.Offered(first, nil)
		time.Sleep(time.Minute)
		before.Offered(withdrawn, nil)
		time.Sleep(time.Minute)
		before.Close()
		var r *Recorder
		made := make(chan struct{})
		r = New(Options{Open: storage.Open, Learned: func(...address.Address) {
			<-made
			r.Offered(without, nil)
		}})
		close(made)
		r.Offered(swapped, nil)
		time.Sleep(time.Minute)
		r.Close()
		synctest.Wait()
	})
	if got := described(t, storage); got != "found acme/vpc/aws 1.0.0\nwithdrawn acme/vpc/aws 1.0.0" {
		t.Errorf("it has %q", got)
	}
}

// A publisher is told when the version is on record, although the index is busy with a scan and
// cannot compare it yet.
func TestAwaitWhileTheIndexIsBusy(t *testing.T) {
	files, storage := indextest.New(t), tlogtest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	s, a := scan(t, files), address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	synctest.Test(t, func(t *testing.T) {
		scanned := make(chan struct{})
		r := New(Options{Open: storage.Open, Learned: func(...address.Address) { <-scanned }})
		r.Offered(s, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if !r.Await(ctx, a, "1.0.0", address.Platform{}) {
			t.Error("it is not on record")
		}
		close(scanned)
		r.Close()
		synctest.Wait()
	})
}

// A version that was entered before a hostname became the registry's own counts, in whatever folder it is now.
func TestAVersionUnderAFormerHostname(t *testing.T) {
	files, storage := indextest.New(t), tlogtest.New(t)
	const name = "modules/registry.example.com/acme/vpc/aws/1.0.0.tar.gz"
	files.Write(name, indextest.TarGz("main.tf", "# first"))
	first := scan(t, files)
	files.Write(name, indextest.TarGz("main.tf", "# other"))
	other := scan(t, files)
	record(t, Options{Open: storage.Open}, first, time.Minute)
	l := NewLedger(storage.MustOpen(t), []svchost.Hostname{"new.example.com", "registry.example.com"}, false)
	a := address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "vpc", System: "aws"}
	for rule, test := range map[string]struct {
		s        *index.Snapshot
		replaced bool
	}{"the same bytes": {first, false}, "other bytes": {other, true}} {
		for _, folder := range []address.Address{a, a.WithHostname("")} {
			if _, bad := l.ModuleVersion(folder, test.s.Module(index.PlaceOf(a)).Version("1.0.0")); (bad != nil) != test.replaced {
				t.Errorf("%s of %s: %v", rule, folder, bad)
			}
		}
	}
}

// A folder that cannot be read does not keep a log from beginning for ever.
func TestAFolderThatCannotBeReadWhenALogIsBegun(t *testing.T) {
	dir := t.TempDir()
	files, storage := indextest.OnDisk(t, dir), tlogtest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "modules", "acme", "old")); err != nil {
		t.Skip(err)
	}
	first := scan(t, files)
	if first.Complete() {
		t.Fatal("it is known what the link leads to")
	}
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", ""))
	second := scan(t, files)
	files.Write("modules/acme/vpc/aws/1.2.0.tar.gz", indextest.TarGz("main.tf", ""))
	third := scan(t, files)
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Open: storage.Open})
		r.Offered(first, nil)
		time.Sleep(beginPatience / 2)
		r.Offered(second, nil)
		time.Sleep(beginPatience)
		r.Offered(third, nil)
		time.Sleep(time.Minute)
		r.Close()
		synctest.Wait()
	})
	if got, want := described(t, storage), "found acme/vpc/aws 1.0.0\nfound acme/vpc/aws 1.1.0\noffered acme/vpc/aws 1.2.0"; got != want {
		t.Errorf("it has %q", got)
	}
}

// Nor does a folder in which something works, so that it never rests.
func TestAFolderThatNeverRestsWhenALogIsBegun(t *testing.T) {
	files, storage := indextest.New(t), tlogtest.New(t)
	scanWith := func(content string) *index.Snapshot {
		files.Write("modules/acme/vpc/aws/1.0.0/main.tf", content)
		return scan(t, files)
	}
	restless := []*index.Snapshot{scanWith("# a"), scanWith("# b")}
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	news := scanWith("# a")
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Open: storage.Open})
		began := time.Now()
		for i := 0; time.Since(began) < beginPatience+2*time.Minute; i++ {
			r.Offered(restless[i%2], nil)
			time.Sleep(30 * time.Second)
		}
		r.Offered(news, nil)
		time.Sleep(10 * time.Second)
		r.Close()
		synctest.Wait()
	})
	if got, want := described(t, storage), "offered acme/demo 1.0.0 linux_amd64"; got != want {
		t.Errorf("it has %q, want %q", got, want)
	}
}

// The first read of a large tree may take much longer than the patience with what cannot be
// read: versions from before the log are not new.
func TestALogIsBegunWhenTheTreeHasBeenRead(t *testing.T) {
	dir, publisher := t.TempDir(), indextest.NewPublisher(t)
	// A release is unread for as long as its keys are.
	unread := func(files *indextest.Tree, namespace string) {
		files.Write("keys/other.asc", "")
		if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "keys", namespace+".asc")); err != nil {
			t.Skip(err)
		}
		files.Provider(namespace+"/demo", "1.0.0", "linux_amd64").Signed(publisher)
	}
	read := func(files *indextest.Tree, namespace string) {
		files.Remove("keys/"+namespace+".asc").Keys(namespace, publisher)
	}
	for _, test := range []struct {
		rule  string
		steps []func(*indextest.Tree) // every 24 minutes
		want  string
	}{
		{"while the tree is being read, a log is not begun", []func(*indextest.Tree){
			func(f *indextest.Tree) { unread(f, "a"); unread(f, "b"); unread(f, "c") },
			func(f *indextest.Tree) { read(f, "a") },
			func(f *indextest.Tree) { read(f, "b") },
			func(f *indextest.Tree) { read(f, "c") },
			func(f *indextest.Tree) { f.Provider("d/demo", "1.0.0", "linux_amd64") },
		}, "found a\nfound b\nfound c\noffered d"},
		{"what is published and read meanwhile is no progress", []func(*indextest.Tree){
			func(f *indextest.Tree) { unread(f, "a") },
			func(f *indextest.Tree) { unread(f, "b") },
			func(f *indextest.Tree) { read(f, "b") },
			func(f *indextest.Tree) { f.Provider("d/demo", "1.0.0", "linux_amd64") },
		}, "found b\noffered d"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files, storage := indextest.OnDisk(t, dir), tlogtest.New(t)
			files.Remove("keys").Remove("providers")
			var snapshots []*index.Snapshot
			for _, step := range test.steps {
				step(files)
				snapshots = append(snapshots, scan(t, files))
			}
			synctest.Test(t, func(t *testing.T) {
				r := New(Options{Open: storage.Open})
				for _, s := range snapshots {
					r.Offered(s, nil)
					time.Sleep(beginPatience * 2 / 5)
				}
				r.Close()
				synctest.Wait()
			})
			got := strings.NewReplacer("/demo 1.0.0 linux_amd64", "", " signed", "").Replace(described(t, storage))
			if got != test.want {
				t.Errorf("it has %q, want %q", got, test.want)
			}
		})
	}
}

// While a large tree is read for the first time, hardly any snapshot is handed over.
func TestALogIsNotBegunBetweenTwoSnapshots(t *testing.T) {
	files, storage := indextest.New(t), tlogtest.New(t)
	files.Provider("a/demo", "1.0.0", "linux_amd64")
	first := scan(t, files)
	first.Totals.Pending = 5
	files.Provider("b/demo", "1.0.0", "linux_amd64")
	last := scan(t, files)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := New(Options{Open: storage.Open, Unread: func() int { return 5 - int(time.Since(began)/(beginPatience/2)) }})
		r.Offered(first, nil)
		time.Sleep(5 * beginPatience / 2)
		r.Offered(last, nil)
		synctest.Wait()
		r.Close()
		synctest.Wait()
	})
	got := strings.NewReplacer("/demo 1.0.0 linux_amd64", "", " signed", "").Replace(described(t, storage))
	if got != "found a\nfound b" {
		t.Errorf("it has %q", got)
	}
}

// A log that fails keeps the recorder trying. What could not be entered is entered then.
func TestALogThatFails(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	snapshot := scan(t, files)
	broken := errors.New("the disk fails")
	for _, operation := range []string{"get", "put", "list", "head"} {
		t.Run(operation, func(t *testing.T) {
			storage := tlogtest.New(t)
			var fails atomic.Bool
			fails.Store(true)
			storage.Bucket.Fail = func(does, name string) error {
				if fails.Load() && does == operation {
					return broken
				}
				return nil
			}
			synctest.Test(t, func(t *testing.T) {
				changes := make(chan Trouble, 100)
				r := New(Options{Open: storage.Open, Changed: func(s State) { changes <- s.Trouble }})
				r.Offered(snapshot, nil)
				time.Sleep(10 * time.Minute)
				asked := r.State().Trouble == Failed
				if len(changes) > 1 {
					t.Errorf("it tells of the same trouble %d times", len(changes))
				}
				fails.Store(false)
				time.Sleep(maxRetry + time.Second)
				if state := r.State(); state != (State{}) || asked && (len(changes) != 2 || <-changes != Failed || <-changes != None) {
					t.Errorf("it is %+v afterwards, and tells of %d changes", state, len(changes))
				}
				r.Close()
				synctest.Wait()
			})
			if got := described(t, storage); got != "found acme/vpc/aws 1.0.0" {
				t.Errorf("it has entered %q", got)
			}
		})
	}
}

// A log that has lost entries is not added to, and what it has is served.
func TestALogThatIsBehind(t *testing.T) {
	storage := tlogtest.New(t)
	before, after := twoVersions(t)
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Open: storage.Open})
		r.Offered(before, nil)
		time.Sleep(time.Minute)
		for name := range storage.Bucket.Contents() {
			if err := storage.Bucket.Remove(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		r.Offered(after, nil)
		time.Sleep(time.Minute)
		if state := r.State(); state.Trouble != Behind || !errors.Is(state.Err, tlog.ErrBehind) || state.Waiting != 1 {
			t.Errorf("it is %+v", state)
		}
		if size := r.Log().Head().Size; size != 1 {
			t.Errorf("it serves %d entries", size)
		}
		if names := storage.Bucket.Names(); len(names) != 0 {
			t.Errorf("it has written %q", names)
		}
		r.Close()
		synctest.Wait()
	})
}

// A version that waits for its entry is entered like all others.
func TestWhatMustBeOnRecordIsEntered(t *testing.T) {
	files, storage := indextest.New(t), tlogtest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# one"))
	files.Write("modules/registry.example.com/acme/dns/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# two"))
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	withheld := func(r *Recorder) *index.Snapshot {
		s, err := index.Scan(t.Context(), index.Options{Open: files.Open, Signer: key, Ledger: r})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := New(Options{Open: func(context.Context) (*tlog.Log, error) { return nil, errors.New("not yet") }, Require: true})
	first := withheld(r)
	r.Close()
	if len(first.Report().Offered) > 0 || first.Totals.Withheld[tree.NotOnRecord] != 3 {
		t.Errorf("while the log cannot be read, offered are %v", first.Report().Offered)
	}
	required := Options{Open: storage.Open, Require: true, Hostnames: []svchost.Hostname{"registry.example.com"}}
	r = record(t, required, first, time.Minute)
	if s := withheld(r); len(s.Report().Offered) != 3 || s.Totals.Problems() > 0 {
		t.Errorf("on record, offered are %v", s.Report().Offered)
	}
	files.Provider("acme/demo", "1.0.0", "darwin_arm64")
	s := withheld(r)
	if release := s.Provider(index.PlaceOf(address.Address{Namespace: "acme", Name: "demo"})).Release("1.0.0"); release == nil || len(release.Packages) != 1 {
		t.Errorf("with a further platform, offered is %v", release)
	}
	record(t, required, s, time.Minute)
	lines := strings.Split(described(t, storage), "\n")
	slices.Sort(lines[:3])
	if got := strings.Join(lines, "\n"); got != "found acme/demo 1.0.0 linux_amd64\nfound acme/dns/aws 1.0.0\nfound acme/vpc/aws 1.0.0\noffered acme/demo 1.0.0 darwin_arm64" {
		t.Errorf("the log has %s", got)
	}
}

// The commit from which a version was packed is on record with it.
func TestTheCommitOfAVersionIsOnRecord(t *testing.T) {
	const dir = "modules/acme/vpc/aws/"
	commit := strings.Repeat("0a", 20)
	files, storage, content := indextest.New(t), tlogtest.New(t), indextest.TarGz("main.tf", "")
	files.Write(dir+"1.0.0.tar.gz", content).Write(dir+"1.1.0.tar.gz", indextest.TarGz("main.tf", "# published"))
	files.Write(dir+".1.0.0.source.json", fmt.Sprintf(`{"tag":"v1.0.0","commit":%q,"package_sha256":"%x"}`, commit, sha256.Sum256([]byte(content))))
	files.Write(dir+"registry.hcl", "git {\n  url = \"https://github.com/acme/vpc\"\n}\n")
	record(t, Options{Open: storage.Open}, scan(t, files), 10*time.Second) // less than a folder would rest
	commits := make(map[string]string)
	for _, l := range entered(t, storage) {
		commits[l.Version] = l.Commit
	}
	if want := map[string]string{"1.0.0": commit, "1.1.0": ""}; !maps.Equal(commits, want) {
		t.Errorf("the log has %v", commits)
	}
}

// The date that an origin tells is on record with a package from there, and counts as its age.
func TestWhenAPackageWasPublishedAtItsOrigin(t *testing.T) {
	files, storage := indextest.New(t), tlogtest.New(t)
	for _, name := range []string{"acme/vpc/aws", "registry.terraform.io/acme/vpc/aws"} {
		for _, version := range []string{"1.0.0", "2.0.0", "3.0.0"} {
			files.Write("modules/"+name+"/"+version+".tar.gz", indextest.TarGz("main.tf", name+version))
		}
	}
	snapshot := scan(t, files)
	published := time.Date(1999, 10, 1, 12, 30, 0, 5, time.UTC)
	record(t, Options{Open: storage.Open, Dates: func(a address.Address) map[string]time.Time {
		return map[string]time.Time{"1.0.0": published, "2.0.0": time.Now().Add(time.Hour)} // in the year 2000
	}}, snapshot, time.Minute)
	dated := make(map[string]string)
	for _, l := range entered(t, storage) {
		dated[l.Address.String()+" "+l.Version] = strings.TrimPrefix(l.Origin.Format(time.RFC3339), "0001-01-01T00:00:00Z")
	}
	for what, want := range map[string]string{
		"registry.terraform.io/acme/vpc/aws 1.0.0": "1999-10-01T12:30:00Z",
		"registry.terraform.io/acme/vpc/aws 2.0.0": "", // a date in the future is not believed
		"registry.terraform.io/acme/vpc/aws 3.0.0": "", // the origin does not say
		"acme/vpc/aws 1.0.0":                       "", // it is hosted
	} {
		if got, ok := dated[what]; !ok || got != want {
			t.Errorf("%s was published at %q, want %q", what, got, want)
		}
	}

	l := storage.MustOpen(t)
	ledger := NewLedger(l, nil, false)
	for name, want := range map[string]time.Time{"registry.terraform.io/acme/vpc/aws": published.Truncate(time.Second), "acme/vpc/aws": {}} {
		a, err := address.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		at, finding := ledger.ModuleVersion(a, snapshot.Module(index.PlaceOf(a)).Version("1.0.0"))
		if finding != nil || !at.Equal(want) {
			t.Errorf("%s was first offered at %v, want %v; %v", name, at, want, finding)
		}
	}
}

// A savedMemo is a memo in memory, which has been saved so many times.
type savedMemo struct {
	content []byte
	saves   int
}

func (m *savedMemo) Load() ([]byte, error) {
	if m.content == nil {
		return nil, fs.ErrNotExist
	}
	return m.content, nil
}

func (m *savedMemo) Save(content []byte) error {
	m.content = content
	m.saves++
	return nil
}

// The memo of a log is saved when a recorder is closed, and once an hour while the log grows.
func TestWhenAMemoIsSaved(t *testing.T) {
	files, storage := indextest.New(t), tlogtest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	first := scan(t, files)
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# more"))
	second := scan(t, files)
	files.Write("modules/acme/vpc/aws/1.2.0.tar.gz", indextest.TarGz("main.tf", "# most"))
	third := scan(t, files)
	synctest.Test(t, func(t *testing.T) {
		var memo savedMemo
		r := New(Options{Open: func(ctx context.Context) (*tlog.Log, error) {
			o := storage.Options()
			o.Memo = &memo
			return new(tlog.Opening).Open(ctx, o)
		}})
		for _, step := range []struct {
			rule string
			sees *index.Snapshot
			wait time.Duration
			want int
		}{
			{"when the log has been opened", first, time.Minute, 1},
			{"not for each entry", second, time.Minute, 1},
			{"within the hour", second, time.Hour, 2},
			{"not while nothing is new", second, 90 * time.Minute, 2},
			{"not for each entry later", third, time.Minute, 2},
		} {
			r.Offered(step.sees, nil)
			time.Sleep(step.wait)
			synctest.Wait() // for what the recorder does in this very second
			if memo.saves != step.want {
				t.Errorf("%s: it is saved %d times, not %d", step.rule, memo.saves, step.want)
			}
		}
		r.Close()
		synctest.Wait()
		if memo.saves != 3 {
			t.Errorf("at the end it is saved %d times", memo.saves)
		}
	})
}
