package pull_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func madeUp(i int) address.Address {
	a := demo
	a.Name = fmt.Sprintf("x%d", i)
	return a
}

func from(address string) context.Context { return upstream.ForClient(background(), address) }

// A client that requests hundreds of providers that do not exist, from a slow origin,
// does not delay other clients.
func TestRequestsForMadeUpNamesDoNotDelayOtherClients(t *testing.T) {
	s := newAcme(t)
	g := s.Gated(func(path string) bool { return strings.Contains(path, "/acme/x") })
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		g.Opened = make(chan struct{})
		m := inMemory(t, c, pull.Policy{}, indextest.New(t))
		defer m.Close()
		var all sync.WaitGroup
		ask := func(a address.Address) {
			all.Go(func() { m.Versions(from("192.0.2.1"), a) })
			synctest.Wait()
		}
		for i := range 60 {
			ask(madeUp(i))
		}
		ask(demo) // waits behind this client's other requests
		for i := range 300 {
			ask(madeUp(100 + i))
		}
		if o, err := m.Versions(from("192.0.2.2"), demo); err != nil || listedIn(o) != "1.0.0" {
			t.Errorf("another client: got %+v, %v", o, err)
		}
		ask(madeUp(999)) // instead of demo
		_, err := m.Versions(from("192.0.2.1"), madeUp(1000))
		if !errors.Is(err, upstream.ErrBusy) || !errors.Is(err, upstream.ErrUnavailable) {
			t.Errorf("one more: got %v", err)
		}
		close(g.Opened)
		all.Wait()
		if _, err := m.Versions(from("192.0.2.1"), madeUp(1000)); !errors.Is(err, upstream.ErrNotFound) || errors.Is(err, upstream.ErrBusy) {
			t.Errorf("the full queue is remembered: %v", err)
		}
		if n := m.log.count("level=WARN"); n != 0 {
			t.Errorf("%d warnings are logged", n)
		}
	})
}

// Providers that do not exist evict no existing providers.
func TestMadeUpNamesEvictNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, under which tests are short, sees one request after the other")
	}
	s := newAcme(t)
	mirrored(t, s, pull.Policy{}, func(t *testing.T, m *mirroring) {
		versionsOf(t, m)
		m.fill(t, linuxZip)
		for i := range 1200 {
			if _, err := m.Versions(background(), madeUp(i)); !errors.Is(err, upstream.ErrNotFound) {
				t.Fatal(err)
			}
		}
		versionsOf(t, m)
		if n := s.Count(versions); n != 1 {
			t.Errorf("the list of an existing provider was requested %d times", n)
		}
		if _, err := m.Versions(background(), madeUp(1199)); !errors.Is(err, upstream.ErrNotFound) || s.Count("/v1/providers/acme/x1199/versions") != 1 {
			t.Errorf("a provider that does not exist is requested again at once: %v", err)
		}
	})
}

// An origin that hangs, with a full queue, does not delay packages of other origins.
func TestASlowOriginDelaysNoOther(t *testing.T) {
	const most = upstream.MaxDownloads + upstream.MaxWaiting
	s, names := many(t, most+1)
	const other = svchost.Hostname("other.example.com")
	g := s.Gated(func(path string) bool { return strings.HasSuffix(path, ".zip") })
	s.InBubbleOf(t, func(t *testing.T, client func(upstream.Origin) *upstream.Client) {
		g.Opened = make(chan struct{})
		folders := indextest.New(t)
		// The other origin is the same site by another name.
		c, second := client(upstream.Origin{Hostname: host}), client(upstream.Origin{Hostname: other, URL: "https://" + host + "/v1/providers/"})
		m := (&mirroring{Tree: folders}).start(t, c, pull.Options{
			Sources: map[svchost.Hostname]pull.Source{host: {Client: c}, other: {Client: second}}, Open: folders.Open,
		})
		var all sync.WaitGroup
		for _, name := range names[:most] {
			all.Go(func() {
				if _, err := m.Fill(background(), demo, name); !errors.Is(err, context.Canceled) {
					t.Errorf("the end of the test does not end a fill: %v", err)
				}
			})
		}
		synctest.Wait()
		g.Holds = func(path string) bool {
			return !strings.HasSuffix(path, names[most]) && strings.HasSuffix(path, ".zip")
		}
		elsewhere := demo
		elsewhere.Hostname = other
		if _, err := m.Fill(background(), elsewhere, names[most]); err != nil {
			t.Errorf("got %v", err)
		}
		m.Close() // fetching hundreds of packages would prove nothing more
		all.Wait()
		close(g.Opened)
	})
}

// The length of a list of versions is limited, and shared platforms are stored once.
func TestListsAreBounded(t *testing.T) {
	long := func(n int) http.HandlerFunc {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"version":"0.0.%d","platforms":[{"os":"linux","arch":"amd64"},{"os":"darwin","arch":"arm64"}]}`, i)
		}
		return body(`{"versions":[` + b.String() + `]}`)
	}
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	s.Fault(versions, long(wire.MaxVersions))
	list, err := c.Versions(background(), demo)
	if err != nil || len(list) != wire.MaxVersions {
		t.Fatalf("got %d versions, %v", len(list), err)
	}
	if &list[0].Platforms[0] != &list[1].Platforms[0] {
		t.Error("platforms that are the same are kept twice")
	}
	s.Fault(versions, long(wire.MaxVersions+1))
	_, err = c.Versions(background(), demo)
	mustFail(t, err, upstream.ErrTooLarge, "more than 10000 versions")

	mirror := s.Client(t, upstream.Origin{Mirror: mirrorBase})
	var b strings.Builder
	for i := range wire.MaxVersions + 1 {
		fmt.Fprintf(&b, `,"0.0.%d":{}`, i)
	}
	s.Fault(files+"index.json", body(`{"versions":{`+b.String()[1:]+`}}`))
	_, err = mirror.Versions(background(), demo)
	mustFail(t, err, upstream.ErrTooLarge, "more than 10000 versions")
}

// The number of concurrent downloads is limited, and so is the queue for them. A
// package that is requested twice counts once.
func TestFillsWaitForTheirTurn(t *testing.T) {
	const most = upstream.MaxDownloads + upstream.MaxWaiting
	s, names := many(t, most+1)
	g := s.Gated(func(path string) bool { return strings.HasSuffix(path, ".zip") })
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		g.Opened = make(chan struct{})
		m := inMemory(t, c, pull.Policy{}, indextest.New(t))
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
			t.Errorf("a client that has left: got %v", err)
		}
		close(g.Opened)
		all.Wait()
		m.fill(t, names[most]) // it is not remembered as one that does not come
	})
}

// Close also ends the fills that are waiting.
func TestCloseEndsWaitingFills(t *testing.T) {
	s, names := many(t, upstream.MaxDownloads+2)
	g := s.Gated(func(path string) bool { return strings.HasSuffix(path, ".zip") })
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		g.Opened = make(chan struct{})
		m := inMemory(t, c, pull.Policy{}, indextest.New(t))
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
