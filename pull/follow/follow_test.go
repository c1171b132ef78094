package follow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/follow"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A filler notes what it is asked for. A list takes a second.
type filler struct {
	versions []string      // of every module
	slow     time.Duration // how long it takes to fetch one
	fails    error
	slowFor  string      // a namespace whose lists take an hour
	gone     atomic.Bool // the tree is no longer served

	end func() // of the follower

	mutex sync.Mutex
	asked []string
	left  []string
}

// note notes what was asked for, and for whom unless it is for the client by which hosts are to be shared.
func (f *filler) note(ctx context.Context, client, what string) {
	if is := upstream.ClientOf(ctx); is != client {
		what += " for " + is
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.asked = append(f.asked, what)
}

// taken returns what was asked for since the last call, in order.
func (f *filler) taken() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	asked := f.asked
	f.asked = nil
	slices.Sort(asked)
	return asked
}

func (f *filler) Looked(address.Address, registryhcl.Git) (time.Time, error) {
	return time.Unix(7, 0), f.fails
}

func (f *filler) Renew(ctx context.Context, a address.Address, since time.Time, told bool) error {
	what := "renew " + a.String()
	if told {
		what = "told " + a.String()
	}
	f.note(ctx, a.Namespace, what)
	if a.Namespace == f.slowFor {
		time.Sleep(time.Hour)
	}
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	return f.fails
}

func (f *filler) Versions(context.Context, address.Address) (o pull.Offering, err error) {
	for _, v := range f.versions {
		o.Versions = append(o.Versions, wire.ProviderVersion{Version: v})
	}
	return o, f.fails
}

func (f *filler) FillModule(ctx context.Context, a address.Address, version string, _ *index.Module) (*pull.FilledModule, error) {
	f.note(ctx, a.Namespace+", all versions", "fill "+a.String()+" "+version)
	select {
	case <-time.After(f.slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if version == "0.1.0" {
		return nil, errors.New("it is withdrawn")
	}
	return &pull.FilledModule{Filled: pull.Filled{New: true}}, nil
}

const block = "git {\n  url = \"https://git.example.com/acme/modules.git\"\n"

// following runs a test with a follower of a tree, in a bubble.
func following(t *testing.T, fill *filler, test func(f *follow.Follower, changed func() []string)) {
	synctest.Test(t, func(t *testing.T) {
		files := indextest.New(t)
		files.Write("modules/acme/vpc/aws/registry.hcl", block+"}\n")
		files.Write("modules/acme/all/aws/registry.hcl", block+"  tags  = \"all-{version}\"\n  fetch = \"all\"\n}\n")
		files.Write("modules/acme/all/aws/1.0.0/main.tf", "")
		files.Write("modules/acme/other/aws/registry.hcl", "git {\n  url = \"https://git.example.com/acme/other\"\n}\n")
		files.Write("modules/acme/none/aws/registry.hcl", "owner = \"a\"\n")
		files.Write("modules/acme/none/aws/1.0.0/main.tf", "")
		files.Write("modules/registry.example.com/acme/vpc/aws/registry.hcl", block+"}\n")
		snapshot, err := index.Scan(t.Context(), index.Options{Open: files.Open})
		if err != nil {
			t.Fatal(err)
		}
		var mutex sync.Mutex
		var changed []string
		ctx, cancel := context.WithCancel(t.Context())
		fill.end = cancel
		f := follow.New(ctx, follow.Options{
			Filler: fill, Interval: 5 * time.Minute,
			Left: func(a address.Address) {
				fill.mutex.Lock()
				defer fill.mutex.Unlock()
				fill.left = append(fill.left, a.String())
			},
			Snapshot: func() *index.Snapshot {
				if fill.gone.Load() {
					return nil
				}
				return snapshot
			},
			Changed: func(a address.Address) {
				mutex.Lock()
				defer mutex.Unlock()
				changed = append(changed, a.String())
			},
		})
		test(f, func() []string {
			mutex.Lock()
			defer mutex.Unlock()
			return changed
		})
		cancel()
		synctest.Wait()
	})
}

func must(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRepositoriesAreFollowedAtAnInterval(t *testing.T) {
	fill := &filler{versions: []string{"1.1.0", "1.0.0", "0.1.0"}}
	following(t, fill, func(f *follow.Follower, changed func() []string) {
		go f.Run()
		time.Sleep(time.Minute)
		once := []string{"fill acme/all/aws 0.1.0", "fill acme/all/aws 1.1.0", "renew acme/all/aws", "renew acme/other/aws", "renew acme/vpc/aws"}
		must(t, fill.taken(), once...)
		must(t, changed(), "acme/all/aws")
		time.Sleep(5 * time.Minute)
		must(t, fill.taken(), once...)
	})
}

func TestNothingIsFetchedOfAListThatFails(t *testing.T) {
	fill := &filler{versions: []string{"1.1.0"}, fails: errors.New("the host is away")}
	following(t, fill, func(f *follow.Follower, changed func() []string) {
		go f.Run()
		time.Sleep(time.Minute)
		must(t, fill.taken(), "renew acme/all/aws", "renew acme/other/aws", "renew acme/vpc/aws")
		must(t, changed())
	})
}

// A flood of webhooks is one look under way, and one after it.
func TestWebhooksAreLookedAtOnce(t *testing.T) {
	fill := &filler{versions: []string{"1.1.0", "1.0.0"}}
	following(t, fill, func(f *follow.Follower, changed func() []string) {
		modules := f.ModulesIn("https://git.example.com/acme/modules.git")
		f.Tell(modules...)
		synctest.Wait()
		for range 100 {
			f.Tell(modules...)
		}
		time.Sleep(time.Minute)
		must(t, fill.taken(), "fill acme/all/aws 1.1.0", "fill acme/all/aws 1.1.0", "told acme/all/aws", "told acme/all/aws", "told acme/vpc/aws", "told acme/vpc/aws")
		f.Tell(modules[1])
		time.Sleep(time.Minute)
		must(t, fill.taken(), "told acme/vpc/aws")
		f.Tell(address.Address{Namespace: "acme", Name: "none", System: "aws"})
		time.Sleep(time.Minute)
		must(t, fill.taken())
	})
}

// A reload may end the follower. What it was told, and has not done, is done by the next one.
func TestWhatIsToldIsLeftToTheNextFollower(t *testing.T) {
	vpc := address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	for _, test := range []struct {
		rule string
		do   func(f *follow.Follower, end func())
		want []string
	}{
		{"during a look", func(f *follow.Follower, end func()) {
			f.Tell(vpc)
			synctest.Wait()
			end()
		}, []string{"acme/vpc/aws"}},
		{"after a look, in the pause before the next one", func(f *follow.Follower, end func()) {
			f.Tell(vpc)
			time.Sleep(1500 * time.Millisecond)
			f.Tell(vpc)
			end()
		}, []string{"acme/vpc/aws"}},
		{"after the end", func(f *follow.Follower, end func()) {
			end()
			synctest.Wait()
			f.Tell(vpc)
			synctest.Wait()
			f.Tell(vpc)
		}, []string{"acme/vpc/aws", "acme/vpc/aws"}},
		{"what is done is not", func(f *follow.Follower, end func()) {
			f.Tell(vpc)
			time.Sleep(1500 * time.Millisecond)
			end()
		}, nil},
		{"what is only polled is not", func(f *follow.Follower, end func()) {
			go f.Run()
			synctest.Wait()
			end()
		}, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			fill := new(filler)
			following(t, fill, func(f *follow.Follower, _ func() []string) {
				test.do(f, fill.end)
				synctest.Wait()
				fill.mutex.Lock()
				defer fill.mutex.Unlock()
				must(t, fill.left, test.want...)
			})
		})
	}
}

// The next follower may be told before the tree has been read for it.
func TestWhatIsToldWaitsForTheTree(t *testing.T) {
	fill := new(filler)
	fill.gone.Store(true)
	following(t, fill, func(f *follow.Follower, _ func() []string) {
		if f.Ready() {
			t.Error("it knows the modules")
		}
		f.Tell(address.Address{Namespace: "acme", Name: "vpc", System: "aws"})
		time.Sleep(time.Minute)
		must(t, fill.taken())
		fill.gone.Store(false)
		time.Sleep(5 * time.Second)
		must(t, fill.taken(), "told acme/vpc/aws")
		if !f.Ready() {
			t.Error("it does not know the modules")
		}
	})
}

// Whoever may send webhooks without end has a repository looked at no more than every other second, of
// which the look takes one.
func TestWebhooksWithoutEndAreLooksAtAPace(t *testing.T) {
	fill := new(filler)
	following(t, fill, func(f *follow.Follower, _ func() []string) {
		for range 1000 {
			f.Tell(address.Address{Namespace: "acme", Name: "vpc", System: "aws"})
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if n := len(fill.taken()); n < 5 || n > 6 {
			t.Errorf("in ten seconds there were %d looks", n)
		}
	})
}

// A module of which many versions are fetched does not keep others, or itself, from being looked at.
func TestLongFetchesDelayNoLooks(t *testing.T) {
	fill := &filler{versions: []string{"1.1.0"}, slow: time.Hour}
	following(t, fill, func(f *follow.Follower, _ func() []string) {
		go f.Run()
		time.Sleep(time.Minute)
		must(t, fill.taken(), "fill acme/all/aws 1.1.0", "renew acme/all/aws", "renew acme/other/aws", "renew acme/vpc/aws")
		time.Sleep(5 * time.Minute)
		must(t, fill.taken(), "renew acme/all/aws", "renew acme/other/aws", "renew acme/vpc/aws")
		f.Tell(address.Address{Namespace: "acme", Name: "all", System: "aws"})
		time.Sleep(time.Minute)
		must(t, fill.taken(), "told acme/all/aws")
	})
}

// A webhook about a repository with thousands of modules does not have all of them looked at together:
// only so many may wait for a code host.
func TestSomeAreLookedAtAtOnce(t *testing.T) {
	fill := new(filler)
	synctest.Test(t, func(t *testing.T) {
		files := indextest.New(t)
		var modules []address.Address
		for i := range 200 {
			a := address.Address{Namespace: fmt.Sprintf("n%d", i%20), Name: fmt.Sprintf("m%d", i), System: "aws"}
			files.Write("modules/"+a.String()+"/registry.hcl", block+"}\n")
			modules = append(modules, a)
		}
		snapshot, err := index.Scan(t.Context(), index.Options{Open: files.Open})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f := follow.New(ctx, follow.Options{Filler: fill, Interval: time.Hour, Snapshot: func() *index.Snapshot { return snapshot }})
		f.Tell(modules...)
		synctest.Wait()
		if n := len(fill.taken()); n != 64 {
			t.Errorf("%d are looked at", n)
		}
		time.Sleep(time.Minute)
		if n := len(fill.taken()); n != 200-64 {
			t.Errorf("then %d were", n)
		}
		cancel()
		synctest.Wait()
	})
}

// Whoever may describe the modules of a namespace may name repositories whose hosts never end their answers.
// The modules of others are looked at nevertheless.
func TestSlowRepositoriesOfANamespaceDelayNoOthers(t *testing.T) {
	fill := &filler{slowFor: "slow"}
	synctest.Test(t, func(t *testing.T) {
		files := indextest.New(t)
		var modules []address.Address
		for i := range 200 {
			a := address.Address{Namespace: "slow", Name: fmt.Sprintf("m%d", i), System: "aws"}
			files.Write("modules/"+a.String()+"/registry.hcl", block+"}\n")
			modules = append(modules, a)
		}
		vpc := address.Address{Namespace: "zoo", Name: "vpc", System: "aws"}
		files.Write("modules/"+vpc.String()+"/registry.hcl", block+"}\n")
		snapshot, err := index.Scan(t.Context(), index.Options{Open: files.Open})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f := follow.New(ctx, follow.Options{Filler: fill, Interval: 5 * time.Minute, Snapshot: func() *index.Snapshot { return snapshot }})
		go f.Run()
		f.Tell(append(modules, vpc)...)
		time.Sleep(6 * time.Minute)
		var looks []string
		for _, asked := range fill.taken() {
			if !strings.Contains(asked, " slow/") {
				looks = append(looks, asked)
			}
		}
		must(t, looks, "renew zoo/vpc/aws", "renew zoo/vpc/aws", "told zoo/vpc/aws")
		cancel()
		time.Sleep(24 * time.Hour)
	})
}

// When the tree is no longer served, what is under way ends.
func TestNothingIsFetchedWithoutATree(t *testing.T) {
	fill := &filler{versions: []string{"1.1.0"}}
	following(t, fill, func(f *follow.Follower, _ func() []string) {
		go f.Run()
		synctest.Wait()
		fill.gone.Store(true)
		time.Sleep(time.Minute)
		must(t, fill.taken(), "renew acme/all/aws", "renew acme/other/aws", "renew acme/vpc/aws")
	})
}

// A tree may take long to read, and another configuration may replace its index meanwhile.
func TestRepositoriesAreFollowedAsSoonAsTheTreeHasBeenRead(t *testing.T) {
	fill := new(filler)
	fill.gone.Store(true)
	following(t, fill, func(f *follow.Follower, _ func() []string) {
		go f.Run()
		time.Sleep(time.Minute)
		must(t, fill.taken())
		fill.gone.Store(false)
		time.Sleep(5 * time.Second)
		must(t, fill.taken(), "renew acme/all/aws", "renew acme/other/aws", "renew acme/vpc/aws")
	})
}

func TestModulesOfARepository(t *testing.T) {
	following(t, new(filler), func(f *follow.Follower, _ func() []string) {
		for _, test := range []struct {
			rule string
			urls []string
			want []string
		}{
			{"as in the registry.hcl", []string{"https://git.example.com/acme/modules.git"}, []string{"acme/all/aws", "acme/vpc/aws"}},
			{"without .git, in another case, with the port and a slash", []string{"https://Git.Example.com:443/Acme/Modules/"}, []string{"acme/all/aws", "acme/vpc/aws"}},
			{"of one of several", []string{"https://git.example.com/x", "https://git.example.com/acme/other.git"}, []string{"acme/other/aws"}},
			{"of another host", []string{"https://git.example.org/acme/modules.git"}, nil},
			{"of none", []string{"", "x", "https:///acme/modules"}, nil},
			{"of no URL", nil, nil},
		} {
			var got []string
			for _, a := range f.ModulesIn(test.urls...) {
				got = append(got, a.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: got %q", test.rule, got)
			}
		}
		for name, has := range map[string]bool{"vpc": true, "none": false, "missing": false} {
			if _, ok := f.Has(address.Address{Namespace: "acme", Name: name, System: "aws"}); ok != has {
				t.Errorf("%s: got %v", name, ok)
			}
		}
	})
}
