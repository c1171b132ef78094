package fill_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// Only so many packages come in at once, and only so many wait. One that is
// under way already is no further one.
func TestFillsWaitForTheirTurn(t *testing.T) {
	const most = upstream.MaxDownloads + upstream.MaxWaiting
	s, names := many(t, most+1)
	g := s.Gated(func(path string) bool { return strings.HasSuffix(path, ".zip") })
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		g.Opened = make(chan struct{})
		m := inMemory(t, c, fill.Policy{}, indextest.New(t))
		defer m.Close()
		var all sync.WaitGroup
		for _, name := range names[:most] {
			all.Go(func() { m.fill(t, name) })
		}
		synctest.Wait()
		if n := g.Now.Load(); n != upstream.MaxDownloads {
			t.Errorf("%d packages come in at once", n)
		}
		if n := strings.Count(strings.Join(m.files(t), " "), ".part"); n != upstream.MaxDownloads {
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
		close(g.Opened)
		all.Wait()
		m.fill(t, names[most]) // it is not remembered as one that does not come
	})
}

// Close ends those that wait, too.
func TestFillsThatWaitAreClosed(t *testing.T) {
	s, names := many(t, upstream.MaxDownloads+2)
	g := s.Gated(func(path string) bool { return strings.HasSuffix(path, ".zip") })
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		g.Opened = make(chan struct{})
		m := inMemory(t, c, fill.Policy{}, indextest.New(t))
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
		close(g.Opened)
	})
}
