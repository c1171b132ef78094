package publish_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

// Many clients send two builds of one version at the same time. One build wins, and the
// answers to the publishers of the other are true.
func TestPublishersOfOneVersion(t *testing.T) { eachTree(t, testPublishersOfOneVersion) }

func testPublishersOfOneVersion(t *testing.T, on treeKind) {
	author := indextest.NewPublisher(t)
	builds := []dist{newDist(t, "one").signed(author), newDist(t, "two").signed(author)}
	rounds := 10
	if testing.Short() { // with the race detector, which sees the same goroutines in each round
		rounds = 3
	}
	for round := range rounds {
		r := on.newRegistry(t)
		r.Keys("acme", author)
		random := rand.New(rand.NewPCG(uint64(round), 1))
		type put struct {
			build int
			name  string
		}
		var puts []put
		for build, d := range builds {
			for _, name := range d.names() {
				for range 10 {
					puts = append(puts, put{build, name})
				}
			}
		}
		random.Shuffle(len(puts), func(i, j int) { puts[i], puts[j] = puts[j], puts[i] })

		var whole, mixed atomic.Int64
		watching := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		go func() { // a client
			defer close(watching)
			for s := r.index.Snapshot(); s != nil; s = r.index.Next(ctx, s) {
				if release := s.Provider(index.PlaceOf(demo)).Release("1.0.0"); release != nil {
					whole.Add(1)
					if len(release.Packages) != 2 || release.Signature.KeyID != author.ID() {
						mixed.Add(1)
					}
				}
			}
		}()
		var g sync.WaitGroup
		for _, p := range puts {
			g.Go(func() {
				_, err := r.put(p.name, builds[p.build][p.name])
				if err != nil && !errors.Is(err, publish.ErrConflict) && !errors.Is(err, publish.ErrRefused) {
					t.Errorf("%s: %v", p.name, err)
				}
			})
		}
		g.Wait()
		stop()
		<-watching

		winner := 0
		if r.Read("providers/acme/demo/1.0.0/"+sums) == builds[1][sums] {
			winner = 1
		}
		r.offers(builds[winner])
		r.isClean()
		for name, content := range builds[winner] {
			r.mustPut(name, content, publish.Unchanged)
		}
		if mixed.Load() > 0 {
			t.Errorf("round %d: a client has seen a half release %d of %d times", round, mixed.Load(), whole.Load())
		}
	}
}

// Many versions at once disturb neither each other nor the folder of the stages.
func TestManyVersionsAtOnce(t *testing.T) { eachTree(t, testManyVersionsAtOnce) }

func testManyVersionsAtOnce(t *testing.T, on treeKind) {
	r := on.newRegistry(t)
	content := indextest.TarGz("main.tf", `output "a" { value = 1 }`)
	var g sync.WaitGroup
	for i := range 100 {
		g.Go(func() {
			result, err := r.putModule(fmt.Sprintf("1.%d.0.tar.gz", i), content)
			if err != nil || result.Outcome != publish.Added {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
	g.Wait()
	r.isClean()
	if n := len(r.index.Snapshot().Module(index.PlaceOf(vpc)).Versions); n != 100 {
		t.Errorf("%d versions are offered", n)
	}
}
