package pull_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A slowSite is an origin whose package stops in the middle.
type slowSite struct {
	*site
	publisher *indextest.Publisher
	content   string // as it is sent
	size      int    // as it is announced; negative: not at all
	goOn      chan struct{}
	then      http.HandlerFunc // in place of the rest; nil: the rest

}

// half is where the package stops.
func (s *slowSite) half() int { return len(s.content) / 2 }

// newSlowSite serves a release of a package.
func newSlowSite(t *testing.T, content string) *slowSite {
	t.Helper()
	folders, publisher := indextest.New(t), indextest.NewPublisher(t)
	release := folders.Provider("acme/demo", "1.0.0", "linux_amd64")
	folders.Write("providers/acme/demo/"+linuxZip, content)
	release.Signed(publisher)
	folders.Keys("acme", publisher)
	s := &slowSite{site: newSite(t, folders), publisher: publisher, content: content, size: len(content)}
	s.Fault(zipFile, s.answer)
	return s
}

// release has the site release another content, as no registry of this kind would.
func (s *slowSite) release(t *testing.T, content string) {
	t.Helper()
	old, now := s.Sum(t, linuxZip), wire.SHA256Of([]byte(content)).String()
	s.Fault(sumsFile, body(now+"  "+linuxZip+"\n"))
	s.Fault(sigFile, body(s.publisher.Sign(now+"  "+linuxZip+"\n")))
	s.Fault(upstreamtest.DownloadPath, s.Edited(old, now))
	s.content = content
}

func (s *slowSite) answer(w http.ResponseWriter, r *http.Request) {
	if s.size >= 0 {
		w.Header().Set("Content-Length", strconv.Itoa(s.size))
	}
	w.Write([]byte(s.content[:s.half()]))
	w.(http.Flusher).Flush()
	select {
	case <-s.goOn:
	case <-r.Context().Done():
	}
	if s.then != nil {
		s.then(w, r)
		return
	}
	w.Write([]byte(s.content[s.half():]))
}

// rangeFrom returns where the requested range begins.
func rangeFrom(r *http.Request) int {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Range"), "bytes="), "-")
	from, _ := strconv.Atoi(first)
	return from
}

// A client is a request, and what it has received.
type client struct {
	mutex   sync.Mutex
	header  http.Header
	written strings.Builder
	received
}

type received struct {
	code          int
	body          string // set by now
	flushed       bool
	ended, broken bool
}

func (c *client) Header() http.Header { return c.header }

func (c *client) WriteHeader(code int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.code = code
}

func (c *client) Write(b []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.code == 0 {
		c.code = http.StatusOK
	}
	return c.written.Write(b)
}

func (c *client) FlushError() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.flushed = true
	return nil
}

func (c *client) now() received {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	r := c.received
	r.body = c.written.String()
	return r
}

// A mirror is a registry that fetches packages.
type mirror struct {
	*handlers.Registry
	filler *mirroring
	all    sync.WaitGroup
}

func newMirror(t *testing.T, m *mirroring) *mirror {
	t.Helper()
	var snapshot *index.Snapshot
	g := &mirror{filler: m, Registry: &handlers.Registry{
		Upstream: m.Filler, Changed: func(...string) {}, Logger: slog.New(slog.NewTextHandler(m.log, nil)),
	}}
	snapshot = m.scan(t)
	g.Snapshot = func() *index.Snapshot { return snapshot }
	return g
}

// ask requests the package, with header fields given as names and values in turn.
func (m *mirror) ask(ctx context.Context, header ...string) *client {
	return m.askBy(ctx, http.MethodGet, header...)
}

func (m *mirror) askBy(ctx context.Context, method string, header ...string) *client {
	c := &client{header: make(http.Header)}
	r := httptest.NewRequest(method, "https://mirror.example.com"+zipFile, nil).WithContext(ctx)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	m.all.Go(func() {
		defer func() {
			broken := recover() == http.ErrAbortHandler
			c.mutex.Lock()
			defer c.mutex.Unlock()
			c.ended, c.broken = true, broken
		}()
		m.ServeHTTP(c, r)
	})
	return c
}

const (
	followAfter = 3 * time.Second
	heldBack    = 64 << 10
)

// Clients of a slow origin get a package as it arrives, all but its end, which follows when
// it has been verified. It is fetched once for all of them.
func TestClientsFollowASlowOrigin(t *testing.T) { eachTree(t, testClientsFollowASlowOrigin) }

func testClientsFollowASlowOrigin(t *testing.T, on treeKind) {
	s := newSlowSite(t, indextest.Zip("terraform-provider-demo", noise(1<<18)))
	root := on.root(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		s.goOn = make(chan struct{})
		m := newMirror(t, over(t, c, pull.Policy{}, root))
		defer m.filler.Close()
		var followers []*client
		for range 200 {
			followers = append(followers, m.ask(background()))
		}
		const date = "Thu, 01 Jan 2026 00:00:00 GMT"
		waiting := []*client{
			m.ask(background(), "Range", "bytes=10-19"),
			m.ask(background(), "If-Match", `"x"`),
			m.ask(background(), "If-Range", `"x"`),
			m.ask(background(), "If-None-Match", `"x"`),
			m.ask(background(), "If-Modified-Since", date),
			m.ask(background(), "If-Unmodified-Since", date),
		}
		head := m.askBy(background(), http.MethodHead)
		leaving, leave := context.WithCancel(background())
		left := m.ask(leaving)
		time.Sleep(followAfter - time.Millisecond)
		synctest.Wait()
		for _, f := range followers {
			if len(f.now().body) != 0 || f.now().flushed {
				t.Fatalf("within three seconds a client has %d bytes", len(f.now().body))
			}
		}
		if head.now().ended {
			t.Error("within three seconds a HEAD is answered")
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if !head.now().ended || head.now().code != http.StatusOK || head.now().body != "" || !maps.EqualFunc(head.header, followers[0].header, slices.Equal) {
			t.Errorf("after three seconds a HEAD has %d, %q and %d bytes", head.now().code, head.header, len(head.now().body))
		}
		for _, f := range followers {
			if f.now().code != http.StatusOK || f.now().body != s.content[:s.half()] || !f.now().flushed {
				t.Fatalf("after three seconds a client has %d bytes with status %d", len(f.now().body), f.now().code)
			}
		}
		late := m.ask(background())
		leave()
		synctest.Wait()
		if len(late.now().body) != s.half() {
			t.Errorf("a later client has %d bytes", len(late.now().body))
		}
		if !left.now().ended || left.now().broken {
			t.Error("a client that leaves is waited for")
		}
		for _, w := range waiting {
			if w.now().ended || len(w.now().body) != 0 {
				t.Errorf("a client that has to know the whole package has %d", w.now().code)
			}
		}
		close(s.goOn)
		m.all.Wait()
		synctest.Wait()
		for _, f := range append(followers, late) {
			if f.now().body != s.content || f.now().broken {
				t.Fatalf("a client has %d bytes of %d", len(f.now().body), len(s.content))
			}
			for name, value := range map[string]string{
				"Etag": "", "Accept-Ranges": "none", "Cache-Control": "no-store",
				"Content-Length": strconv.Itoa(len(s.content)), "Content-Type": "application/zip",
			} {
				if got := f.header.Get(name); got != value {
					t.Fatalf("%s is %q", name, got)
				}
			}
		}
		if w := waiting[0]; w.now().code != http.StatusPartialContent || w.now().body != s.content[10:20] || w.header.Get("Etag") == "" {
			t.Errorf("a range: got %d, %d bytes", w.now().code, len(w.now().body))
		}
		if w := waiting[1]; w.now().code != http.StatusPreconditionFailed {
			t.Errorf("another package than the client has: got %d", w.now().code)
		}
		for _, w := range waiting[2:] {
			if w.now().code != http.StatusOK || w.now().body != s.content || w.header.Get("Etag") == "" {
				t.Errorf("a condition: got %d, %d bytes", w.now().code, len(w.now().body))
			}
		}
		if n := s.Count(zipFile); n != 1 {
			t.Errorf("the package was requested %d times", n)
		}
	})
}

// Clients follow a package only if they can know that it is wrong, and if there is something to
// follow. Otherwise they get nothing before it has been verified.
func TestWhichPackagesAreFollowed(t *testing.T) {
	large := indextest.Zip("terraform-provider-demo", noise(1<<20))
	for _, test := range []struct {
		rule    string
		content string
		hashes  []string // edits of what a mirror without SHA256SUMS says; nil: a registry
		follows bool
	}{
		{"one of a registry", large, nil, true},
		{"one of less than 64 KiB", indextest.Zip("terraform-provider-demo", noise(1<<15)), nil, false},
		{"one whose mirror has a sha256", large, []string{}, true},
		{"one whose mirror has an h1 alone", large, []string{`"zh:`, `"other:`}, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newSlowSite(t, test.content)
			var origin upstream.Origin
			if test.hashes != nil {
				origin.Mirror = mirrorBase
				s.Fault(sumsFile, status(404))
				s.Fault(files+"1.0.0.json", s.Edited(test.hashes...))
			}
			s.InBubble(t, origin, func(t *testing.T, c *upstream.Client) {
				s.goOn = make(chan struct{})
				m := newMirror(t, onDisk(t, c, pull.Policy{Signatures: pull.PreferSignatures}))
				defer m.filler.Close()
				f := m.ask(background())
				time.Sleep(followAfter + time.Millisecond)
				synctest.Wait()
				if got := f.now(); (got.code != 0) != test.follows || (len(got.body) != 0) != test.follows {
					t.Errorf("before it has been verified: got %d, %d bytes", got.code, len(got.body))
				}
				close(s.goOn)
				m.all.Wait()
				synctest.Wait()
				if got := f.now(); got.body != test.content || got.broken {
					t.Errorf("it has %d bytes of %d, status %d: %.200s", len(got.body), len(test.content), got.code, got.body)
				}
			})
		})
	}
}

// The end of a package is kept back until it has been verified.
func TestTheEndIsHeldBack(t *testing.T) {
	s := newSlowSite(t, indextest.Zip("terraform-provider-demo", noise(1<<20)))

	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		s.goOn = make(chan struct{})
		last := len(s.content) - 1
		s.Fault(zipFile, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(s.content)))
			w.Write([]byte(s.content[:last]))
			w.(http.Flusher).Flush()
			<-s.goOn
			w.Write([]byte(s.content[last:]))
		})
		m := newMirror(t, onDisk(t, c, pull.Policy{}))
		defer m.filler.Close()
		f := m.ask(background())
		time.Sleep(followAfter + time.Millisecond)
		synctest.Wait()
		if len(f.now().body) != len(s.content)-heldBack {
			t.Errorf("it has %d bytes of %d", len(f.now().body), len(s.content))
		}
		close(s.goOn)
		m.all.Wait()
		synctest.Wait()
		if f.now().body != s.content {
			t.Errorf("it has %d bytes of %d at the end", len(f.now().body), len(s.content))
		}
	})
}

// If an origin announces more than its package has, clients still do not get the end of the zip:
// with the end they would have a whole package that has not been verified.
func TestNobodyGetsTheEndOfAZipEarly(t *testing.T) {
	s := newSlowSite(t, indextest.Zip("terraform-provider-demo", noise(1<<20)))
	s.Fault(upstreamtest.DownloadPath, s.Edited(`"packages"`, `"other"`)) // it does not tell the length either
	wrong := indextest.Zip("terraform-provider-demo", "another program"+noise(1<<20))
	end := strings.Index(wrong, endOfZip)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		s.goOn = make(chan struct{})
		padding := strings.Repeat("x", 2*heldBack)
		s.Fault(zipFile, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(wrong)+len(padding)))
			io.WriteString(w, wrong+padding[1:])
			w.(http.Flusher).Flush()
			<-s.goOn
			io.WriteString(w, padding[:1])
		})
		m := newMirror(t, onDisk(t, c, pull.Policy{}))
		defer m.filler.Close()
		f := m.ask(background())
		time.Sleep(followAfter + time.Millisecond)
		synctest.Wait()
		if n := len(f.now().body); n != end {
			t.Errorf("it has %d bytes, and the end of the zip begins after %d", n, end)
		}
		close(s.goOn)
		m.all.Wait()
		if n := len(f.now().body); n != end || !f.now().broken {
			t.Errorf("at the end it has %d bytes, and the end of the zip begins after %d", n, end)
		}
		synctest.Wait()
		m.filler.mustHave(t)
	})
}

// endOfZip begins the record at the end of every zip.
const endOfZip = "PK\x05\x06"

// Whatever an origin does: no client has a whole wrong file or takes a part for the whole,
// and the next try works. If it continues what has been broken off, it gets the whole.
func TestOriginsThatFailFollowers(t *testing.T) {
	good := indextest.Zip("terraform-provider-demo", noise(1<<20))
	other := good[:len(good)-10] + "0123456789"
	otherAtFirst := good[:100] + "0123456789" + good[110:]
	noZip := noise(len(good))
	rest := func(w http.ResponseWriter, content string, r *http.Request) {
		from := rangeFrom(r)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
		w.WriteHeader(http.StatusPartialContent)
		w.Write([]byte(content[from:]))
	}
	for _, test := range []struct {
		rule    string
		release string // in place of a good package
		begin   func(s *slowSite)
		again   http.HandlerFunc // how requests for the rest are answered
		whole   bool
		status  int // of an answer that is not a package
	}{
		{rule: "it breaks off, and resumes", begin: func(s *slowSite) { s.then = upstreamtest.BreakOff }, again: func(w http.ResponseWriter, r *http.Request) { rest(w, good, r) }, whole: true},
		{rule: "it breaks off, and resumes with other bytes", begin: func(s *slowSite) { s.then = upstreamtest.BreakOff }, again: func(w http.ResponseWriter, r *http.Request) { rest(w, other, r) }},
		{rule: "it breaks off, and begins again with other bytes", begin: func(s *slowSite) { s.then = upstreamtest.BreakOff }, again: body(other)},
		{rule: "it breaks off after other bytes, and begins again with the right ones", begin: func(s *slowSite) {
			s.content, s.then = otherAtFirst, upstreamtest.BreakOff
		}, again: body(good)},
		{rule: "it breaks off for good", begin: func(s *slowSite) { s.then = upstreamtest.BreakOff }, again: status(503)},
		{rule: "it breaks off, and has another length", begin: func(s *slowSite) { s.then = upstreamtest.BreakOff }, again: func(w http.ResponseWriter, r *http.Request) { rest(w, good+"more", r) }},
		{rule: "it stalls", begin: func(s *slowSite) { s.then = upstreamtest.Silence }, again: upstreamtest.Silence},
		{rule: "other bytes in the last kilobyte", begin: func(s *slowSite) { s.content = other }},
		{rule: "a shorter package than announced", begin: func(s *slowSite) { s.content = good[:len(good)-1]; s.then = nil }, again: status(416)},
		{rule: "an announced length that is wrong", begin: func(s *slowSite) { s.size = len(good) - 1 }, status: http.StatusBadGateway},
		{rule: "a released file that is no package", release: noZip, begin: func(s *slowSite) {}},
		{rule: "it does not answer", begin: func(s *slowSite) { s.Fault(zipFile, upstreamtest.Silence) }, status: http.StatusGatewayTimeout},
		{rule: "no length", begin: func(s *slowSite) {
			s.size, s.content = -1, other
			s.Fault(upstreamtest.DownloadPath, s.Edited(`"packages"`, `"other"`))
		}, status: http.StatusBadGateway},
	} {
		t.Run(test.rule, func(t *testing.T) {
			released := good
			if test.release != "" {
				released = test.release
			}
			s := newSlowSite(t, good)
			if test.release != "" {
				s.release(t, test.release)
			}
			test.begin(s)
			if test.again != nil {
				first := true
				s.Fault(zipFile, func(w http.ResponseWriter, r *http.Request) {
					if first {
						first = false
						s.answer(w, r)
						return
					}
					test.again(w, r)
				})
			}
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				s.goOn = make(chan struct{})
				m := newMirror(t, onDisk(t, c, pull.Policy{}))
				defer m.filler.Close()
				followers := []*client{m.ask(background()), m.ask(background())}
				time.Sleep(followAfter + time.Millisecond)
				synctest.Wait()
				if test.status == 0 && len(followers[0].now().body) == 0 {
					t.Error("nobody follows")
				}
				close(s.goOn)
				m.all.Wait()
				for _, f := range followers {
					switch whole := f.now().body == released; {
					case test.status != 0:
						if f.now().code != test.status || f.now().broken {
							t.Errorf("got %d, broken off: %t", f.now().code, f.now().broken)
						}
					case whole != test.whole, f.now().broken == test.whole:
						t.Errorf("a client has %d bytes of %d, broken off: %t", len(f.now().body), len(released), f.now().broken)
					case !whole && len(f.now().body) > len(released)-heldBack:
						t.Errorf("a client has all but %d bytes", len(released)-len(f.now().body))
					}
				}
				synctest.Wait()
				if test.status == 0 && m.filler.log.count("followers=2") != 1 || m.filler.log.count("broken off") > 1 {
					t.Errorf("the log has not one line for the fill: %s", m.filler.log.text.String())
				}
				if test.whole {
					return
				}
				m.filler.mustHave(t)
				if test.release != "" {
					return
				}
				s.Fault(zipFile, nil)
				time.Sleep(2 * time.Minute) // failures are remembered for a while
				again := m.ask(background())
				m.all.Wait()
				synctest.Wait()
				if again.now().body != good || again.now().broken || again.header.Get("Etag") == "" {
					t.Errorf("the next try: got %d, %d bytes", again.now().code, len(again.now().body))
				}
				etag, followed := again.header.Get("Etag"), test.status == 0
				for _, resumed := range []struct {
					header []string
					whole  bool
				}{
					{[]string{"Range", "bytes=10-"}, followed},
					{[]string{"Range", "bytes=10-", "If-Range", etag}, false},
				} {
					c := m.ask(background(), resumed.header...)
					m.all.Wait()
					if got := c.now(); got.code == http.StatusOK != resumed.whole || !strings.HasSuffix(good, got.body) || len(got.body) < len(good)-10 {
						t.Errorf("%q: got %d, %d bytes of %d", resumed.header, got.code, len(got.body), len(good))
					}
				}
			})
		})
	}
}

// If another process adds the package to the tree meanwhile, followers get the end of that
// package, if it was released.
func TestFollowersOfAPackageThatAnotherAdds(t *testing.T) {
	content := indextest.Zip("terraform-provider-demo", noise(1<<20))
	for _, test := range []struct {
		rule, added string
		whole       bool
	}{
		{"the same package", content, true},
		{"another package", indextest.Zip("terraform-provider-demo", noise(1<<19)), false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newSlowSite(t, content)
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				s.goOn = make(chan struct{})
				m := newMirror(t, onDisk(t, c, pull.Policy{}))
				defer m.filler.Close()
				f := m.ask(background())
				time.Sleep(followAfter + time.Millisecond)
				synctest.Wait()
				m.filler.Write(directory+linuxZip, test.added)
				close(s.goOn)
				m.all.Wait()
				synctest.Wait()
				if f := f.now(); (f.body == content) != test.whole || f.broken == test.whole {
					t.Errorf("it has %d bytes of %d, broken off: %t", len(f.body), len(content), f.broken)
				}
			})
		})
	}
}

// A mirror that stops gives up what it was receiving. Nothing of it is left.
func TestFollowersOfAMirrorThatStops(t *testing.T) {
	s := newSlowSite(t, indextest.Zip("terraform-provider-demo", noise(1<<20)))
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		s.goOn = make(chan struct{})
		m := newMirror(t, onDisk(t, c, pull.Policy{}))
		f := m.ask(background())
		time.Sleep(followAfter + time.Millisecond)
		synctest.Wait()
		m.filler.Close()
		m.all.Wait()
		if !f.now().broken {
			t.Errorf("a client has %d bytes", len(f.now().body))
		}
		close(s.goOn)
		synctest.Wait()
		m.filler.mustHave(t)
	})
}

// A length that an origin tells only when it resumes comes too late: the bytes before have not
// been searched for the end of a zip.
func TestALengthThatComesLate(t *testing.T) {
	s := newSlowSite(t, indextest.Zip("terraform-provider-demo", noise(1<<20)))
	s.Fault(upstreamtest.DownloadPath, s.Edited(`"packages"`, `"other"`))
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		s.goOn = make(chan struct{})
		begun := false
		s.Fault(zipFile, func(w http.ResponseWriter, r *http.Request) {
			if !begun {
				begun = true
				io.WriteString(w, s.content[:s.half()])
				upstreamtest.BreakOff(w, r)
			}
			from := rangeFrom(r)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(s.content)-1, len(s.content)))
			w.WriteHeader(http.StatusPartialContent)
			io.WriteString(w, s.content[from:len(s.content)-1])
			w.(http.Flusher).Flush()
			<-s.goOn
			io.WriteString(w, s.content[len(s.content)-1:])
		})
		m := newMirror(t, onDisk(t, c, pull.Policy{}))
		defer m.filler.Close()
		f := m.ask(background())
		time.Sleep(followAfter + time.Millisecond)
		synctest.Wait()
		if f.now().code != 0 {
			t.Errorf("it has %d bytes before they are verified", len(f.now().body))
		}
		close(s.goOn)
		m.all.Wait()
		synctest.Wait()
		if f.now().body != s.content || f.header.Get("Etag") == "" {
			t.Errorf("it has %d bytes of %d", len(f.now().body), len(s.content))
		}
	})
}

// While a store takes a package that has been verified, clients get what has arrived of it.
func TestFollowersOfAPackageThatIsBeingUploaded(t *testing.T) {
	s := newSlowSite(t, indextest.Zip("terraform-provider-demo", noise(1<<20)))
	s.Fault(zipFile, nil)
	root := treeKind{bucket: true}.root(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		taken := make(chan struct{})
		root.bucket.Fail = func(operation, name string) error {
			if operation == "put" && name == directory+linuxZip {
				<-taken
			}
			return nil
		}
		m := newMirror(t, over(t, c, pull.Policy{}, root))
		defer m.filler.Close()
		f := m.ask(background())
		time.Sleep(followAfter + time.Millisecond)
		synctest.Wait()
		if n := len(f.now().body); n != len(s.content)-heldBack {
			t.Errorf("it has %d bytes of %d", n, len(s.content))
		}
		close(taken)
		m.all.Wait()
		synctest.Wait()
		if f.now().body != s.content {
			t.Errorf("it has %d bytes of %d at the end", len(f.now().body), len(s.content))
		}
	})
}

// A fault of the registry itself ends the answers to followers, and nothing else.
func TestFollowersOfAFillThatPanics(t *testing.T) {
	s := newSlowSite(t, indextest.Zip("terraform-provider-demo", noise(1<<20)))
	root := treeKind{}.root(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		s.goOn = make(chan struct{})
		faulty := &mirroring{Tree: root.tree(t), root: root}
		m := newMirror(t, faulty.start(t, c, pull.Options{
			Sources: sourceOf(c, pull.Policy{}), Open: root.open,
			Digests: func() []*index.Digests { panic("a fault") },
		}))
		defer m.filler.Close()
		f, waiting := m.ask(background()), m.ask(background(), "Range", "bytes=0-9")
		time.Sleep(followAfter + time.Millisecond)
		synctest.Wait()
		close(s.goOn)
		m.all.Wait()
		if !f.now().broken {
			t.Errorf("a follower has %d bytes of %d", len(f.now().body), len(s.content))
		}
		if waiting.now().code != http.StatusInternalServerError {
			t.Errorf("a client that waits gets %d", waiting.now().code)
		}
		if m.filler.log.count("panicked: a fault") == 0 || m.filler.log.count("growing_test.go") == 0 {
			t.Error("the log does not say where")
		}
		synctest.Wait()
	})
}

// If the tree is replaced, followers do not get the rest of another fetch. Clients that come
// later follow that one.
func TestFollowersInATreeThatIsReplaced(t *testing.T) {
	s := newSlowSite(t, indextest.Zip("terraform-provider-demo", noise(1<<20)))
	root := treeKind{}.root(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		goOn := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
		s.goOn = goOn[0]
		m := newMirror(t, over(t, c, pull.Policy{}, root))
		defer m.filler.Close()
		first := m.ask(background())
		time.Sleep(followAfter + time.Millisecond)
		synctest.Wait()
		if err := os.RemoveAll(root.dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(root.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		s.goOn = goOn[1]
		close(goOn[0])
		synctest.Wait()
		if f := first.now(); !f.broken || len(f.body) > len(s.content)-heldBack {
			t.Errorf("a client of the first fetch has %d bytes, broken off: %t", len(f.body), f.broken)
		}
		time.Sleep(2 * time.Minute) // failures are remembered for a while
		second := m.ask(background())
		time.Sleep(followAfter + time.Millisecond)
		synctest.Wait()
		if n := len(second.now().body); n != s.half() {
			t.Errorf("a later client has %d bytes", n)
		}
		close(goOn[1])
		m.all.Wait()
		synctest.Wait()
		if second.now().body != s.content {
			t.Errorf("at the end it has %d bytes", len(second.now().body))
		}
	})
}
