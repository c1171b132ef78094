package record

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
)

func scan(t *testing.T, files *indextest.Tree) *index.Snapshot {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := index.Scan(t.Context(), index.Options{Open: files.Open, Signer: key})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// described returns entries without times, hashes and nonces.
func described(t *testing.T, s *tlogtest.Storage) string {
	t.Helper()
	var lines []string
	for _, e := range s.Entries(t) {
		l, err := tlog.ParseLeaf(e)
		if err != nil {
			t.Fatal(err)
		}
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

// A step of a story: what is done to a tree, and what the log has gained by it.
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
			{"the same files as an archive are repacked", func(f *indextest.Tree) {
				f.Remove("modules/acme/vpc/aws/1.2.0").Write("modules/acme/vpc/aws/1.2.0.tar.gz", indextest.TarGz("main.tf", "# hello"))
			}, "repacked acme/vpc/aws 1.2.0"},
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
					synctest.Test(t, func(t *testing.T) {
						r := New(Options{Open: storage.Open, Hostnames: test.hostnames})
						r.Offered(snapshot)
						time.Sleep(time.Minute)
						if state := r.State(); state != (State{}) {
							t.Errorf("%s: it is %+v", s.rule, state)
						}
						r.Close()
						synctest.Wait()
					})
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
				r.Offered(snapshot)
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
	files, storage := indextest.New(t), tlogtest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	before := scan(t, files)
	files.Write("modules/acme/vpc/aws/2.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	after := scan(t, files)
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Open: storage.Open})
		r.Offered(before)
		time.Sleep(time.Minute)
		for name := range storage.Bucket.Contents() {
			if err := storage.Bucket.Remove(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		r.Offered(after)
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
