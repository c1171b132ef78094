package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// A gate holds up requests until it is opened, and counts those that are there.
// What it waits with is made in the bubble that waits.
type gate struct {
	http.Handler
	holds  func(path string) bool
	opened chan struct{}
	now    atomic.Int32
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.holds(r.URL.Path) {
		g.now.Add(1)
		<-g.opened
		g.now.Add(-1)
	}
	g.Handler.ServeHTTP(w, r)
}

func (s *site) gated(holds func(path string) bool) *gate {
	g := &gate{Handler: s.Handler, holds: holds}
	s.Handler = g
	return g
}

// Only so many packages come in at once, and only so many wait. One that is
// under way already is no further one.
func TestFillsWaitForTheirTurn(t *testing.T) {
	const most = upstream.MostDownloads + upstream.MostWaiting
	s, names := many(t, most+1)
	g := s.gated(func(path string) bool { return strings.HasSuffix(path, ".zip") })
	s.inBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		g.opened = make(chan struct{})
		m := inMemory(t, c, upstream.Policy{}, indextest.New(t))
		defer m.Close()
		var all sync.WaitGroup
		for _, name := range names[:most] {
			all.Go(func() { m.fill(t, name) })
		}
		synctest.Wait()
		if n := g.now.Load(); n != upstream.MostDownloads {
			t.Errorf("%d packages come in at once", n)
		}
		if n := strings.Count(strings.Join(m.files(t), " "), ".part"); n != upstream.MostDownloads {
			t.Errorf("%d files are begun", n)
		}
		if _, err := m.Fill(background(), demo, names[most]); !errors.Is(err, upstream.ErrUnavailable) || !strings.Contains(err.Error(), "waited for already") {
			t.Errorf("one too many: %v", err)
		}
		all.Go(func() { m.fill(t, names[0]) })
		ctx, leave := context.WithCancel(background())
		leave()
		if _, err := m.Fill(ctx, demo, names[most-1]); !errors.Is(err, context.Canceled) {
			t.Errorf("who leaves: %v", err)
		}
		close(g.opened)
		all.Wait()
		m.fill(t, names[most]) // it is not remembered as one that does not come
	})
}

// Close ends those that wait, too.
func TestFillsThatWaitAreClosed(t *testing.T) {
	s, names := many(t, upstream.MostDownloads+2)
	g := s.gated(func(path string) bool { return strings.HasSuffix(path, ".zip") })
	s.inBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		g.opened = make(chan struct{})
		m := inMemory(t, c, upstream.Policy{}, indextest.New(t))
		var all sync.WaitGroup
		for _, name := range names {
			all.Go(func() {
				if _, err := m.Fill(background(), demo, name); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		m.Close()
		all.Wait()
		close(g.opened)
	})
}

// So it is with documents, of whatever providers. That the queue is full says
// nothing about the origin, which goes on being asked.
func TestDocumentsWaitForTheirTurn(t *testing.T) {
	const most = upstream.MostDocuments + upstream.MostWaiting
	s := newAcme(t)
	g := s.gated(func(path string) bool { return strings.HasSuffix(path, "/versions") })
	s.inBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		g.opened = make(chan struct{})
		if _, err := c.Release(background(), demo, v1, nil); err != nil { // it is known how to ask
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range most {
			a := demo
			a.Name = fmt.Sprintf("x%d", i)
			all.Go(func() {
				if _, err := c.Versions(background(), a); !errors.Is(err, upstream.ErrNotFound) {
					t.Errorf("%s: %v", a, err)
				}
			})
		}
		synctest.Wait()
		if n := g.now.Load(); n != upstream.MostDocuments {
			t.Errorf("%d documents are asked for at once", n)
		}
		for range upstream.FailuresInARow {
			_, err := c.Versions(background(), demo)
			mustFail(t, err, upstream.ErrUnavailable, "waited for already")
		}
		close(g.opened)
		all.Wait()
		if _, err := c.Versions(background(), demo); err != nil {
			t.Error(err)
		}
	})
}
