package upstream_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// So it is with documents, of whatever providers. That the queue is full says
// nothing about the origin, which goes on being asked.
func TestDocumentsWaitForTheirTurn(t *testing.T) {
	const most = upstream.MaxDocuments + upstream.MaxWaiting
	s := newAcme(t)
	g := s.Gated(func(path string) bool { return strings.HasSuffix(path, "/versions") })
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		g.Opened = make(chan struct{})
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
		if n := g.Now.Load(); n != upstream.MaxDocuments {
			t.Errorf("%d documents are asked for at once", n)
		}
		for range upstream.FailuresInARow {
			_, err := c.Versions(background(), demo)
			mustFail(t, err, upstream.ErrUnavailable, "waited for already")
		}
		close(g.Opened)
		all.Wait()
		if _, err := c.Versions(background(), demo); err != nil {
			t.Error(err)
		}
	})
}
