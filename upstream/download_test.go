package upstream_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

func TestDownload(t *testing.T) {
	folders, _ := acme(t)
	zip := folders.Read("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip")
	const timeout = 8 * time.Second
	for _, test := range []struct {
		rule   string
		answer func(s *site, ranges *[]string) http.HandlerFunc
		limit  int64 // bytes of a package; zero: the default
		kind   error // nil: the download succeeds
		says   string
		ranges string
		takes  time.Duration // until it fails; zero: the timeout
	}{
		{rule: "a connection that breaks is resumed", answer: func(s *site, ranges *[]string) http.HandlerFunc {
			return s.Part(100, ranges, upstreamtest.BreakOff)
		}, ranges: "[ bytes=100- bytes=200-]"},
		{rule: "but not forever", answer: func(s *site, ranges *[]string) http.HandlerFunc {
			return s.Part(1, ranges, upstreamtest.BreakOff)
		}, kind: upstream.ErrUnavailable, says: "broke off 5 times", ranges: "[ bytes=1- bytes=2- bytes=3- bytes=4-]"},
		{rule: "an origin without ranges starts again", answer: func(s *site, ranges *[]string) http.HandlerFunc {
			first := true
			return func(w http.ResponseWriter, r *http.Request) {
				*ranges = append(*ranges, r.Header.Get("Range"))
				w.Header().Set("Content-Length", fmt.Sprint(len(zip)))
				if first {
					first = false
					io.WriteString(w, zip[:150])
					w.(http.Flusher).Flush()
					panic(http.ErrAbortHandler)
				}
				io.WriteString(w, zip)
			}
		}, ranges: "[ bytes=150-]"},
		{rule: "a file that has changed", answer: func(s *site, ranges *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				*ranges = append(*ranges, r.Header.Get("Range"))
				if r.Header.Get("Range") == "" {
					s.Part(100, new([]string), upstreamtest.BreakOff)(w, r)
				}
				io.WriteString(w, zip+"more")
			}
		}, kind: upstream.ErrBadChecksum, says: "bytes where", ranges: "[ bytes=100-]"},
		{rule: "another range than requested", answer: func(s *site, ranges *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Range") == "" {
					s.Part(100, new([]string), upstreamtest.BreakOff)(w, r)
				}
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 50-%d/%d", len(zip)-1, len(zip)))
				w.WriteHeader(206)
				io.WriteString(w, zip[50:])
			}
		}, kind: upstream.ErrMalformed, says: "another part"},
		{rule: "the origin stops sending", answer: func(s *site, ranges *[]string) http.HandlerFunc {
			return s.Part(100, ranges, upstreamtest.Silence)
		}, kind: upstream.ErrTimeout, ranges: "[]"},
		{rule: "the origin sends nothing", answer: func(*site, *[]string) http.HandlerFunc { return upstreamtest.Silence }, kind: upstream.ErrTimeout},
		{rule: "the origin sends too slowly", answer: func(*site, *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				for _, b := range []byte(zip) {
					time.Sleep(timeout - time.Second)
					if r.Context().Err() != nil {
						return
					}
					w.Write([]byte{b})
					w.(http.Flusher).Flush()
				}
			}
		}, kind: upstream.ErrTimeout, says: "bytes a second", takes: 3 * (timeout - time.Second)},
		{rule: "slowly, but for less than ten seconds", answer: func(*site, *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				for i := range 8 {
					time.Sleep(time.Second)
					io.WriteString(w, zip[i*len(zip)/8:(i+1)*len(zip)/8])
					w.(http.Flusher).Flush()
				}
			}
		}},
		{rule: "fewer bytes than announced", answer: func(*site, *[]string) http.HandlerFunc { return body(zip[:len(zip)-1]) }, kind: upstream.ErrBadChecksum, says: "announced"},
		{rule: "fewer bytes, of an unknown number", answer: func(*site, *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.(http.Flusher).Flush()
				if r.Header.Get("Range") == "" {
					io.WriteString(w, zip[:len(zip)-1])
				}
			}
		}, kind: upstream.ErrUnavailable, says: "broke off"},
		{rule: "more bytes than announced", answer: func(*site, *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { // it need not end
				w.(http.Flusher).Flush()
				io.WriteString(w, zip+"more")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		}, kind: upstream.ErrBadChecksum, says: "larger than announced"},
		{rule: "other bytes", answer: func(*site, *[]string) http.HandlerFunc {
			return body(strings.Repeat("x", len(zip)))
		}, kind: upstream.ErrBadChecksum, says: "not the file that was released"},
		{rule: "a package over the limit", limit: 99, kind: upstream.ErrTooLarge, says: "99 bytes"},
		{rule: "a package over the limit, of unknown size", answer: func(*site, *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush()
				io.WriteString(w, zip)
			}
		}, limit: 99, kind: upstream.ErrTooLarge, says: "99 bytes"},
		{rule: "a link to a file that does not exist", answer: func(*site, *[]string) http.HandlerFunc { return status(404) }, kind: upstream.ErrMalformed, says: "links to a package"},
		{rule: "a link that has expired", answer: func(*site, *[]string) http.HandlerFunc { return status(403) }, kind: upstream.ErrRefused},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newSite(t, folders)
			var ranges []string
			if test.answer != nil {
				s.Fault(zipFile, test.answer(s, &ranges))
			}
			s.InBubble(t, upstream.Origin{Timeout: timeout}, func(t *testing.T, c *upstream.Client) {
				upstream.LimitPackages(c, cmp.Or(test.limit, upstream.MaxPackage))
				r, err := c.Release(background(), demo, v1, nil)
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				if test.kind == nil {
					mustDownload(t, c, r, zip)
				} else {
					_, err = c.Download(background(), r, linux, io.Discard)
					mustFail(t, err, test.kind, test.says)
				}
				if errors.Is(test.kind, upstream.ErrTimeout) && time.Since(begin) != cmp.Or(test.takes, timeout) {
					t.Errorf("it took %v", time.Since(begin))
				}
				if test.ranges != "" && test.ranges != "[]" && fmt.Sprint(ranges) != test.ranges {
					t.Errorf("requested ranges %v", ranges)
				}
			})
		})
	}
}

func mustDownload(t testing.TB, c *upstream.Client, r *upstream.Release, want string) {
	t.Helper()
	var got bytes.Buffer
	digest, err := c.Download(background(), r, linux, &got)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != want || digest.Size != int64(len(want)) || digest.SHA256 != sha256.Sum256([]byte(want)) {
		t.Errorf("downloaded %d bytes, %+v, want %d", got.Len(), digest, len(want))
	}
}

// The origin's link to a package is compared with the release again.
func TestLinkDisagreesWithRelease(t *testing.T) {
	for _, test := range []struct {
		rule   string
		origin upstream.Origin
		path   string
		answer func(*site) http.HandlerFunc
		kind   error
		says   string
	}{
		{"another checksum", upstream.Origin{}, metadata, func(s *site) http.HandlerFunc { return s.Edited(`"shasum":"`, `"shasum":"0`) }, upstream.ErrBadChecksum, "another package"},
		{"another platform's file", upstream.Origin{}, metadata, func(s *site) http.HandlerFunc { return s.Edited(`_linux_amd64.zip"`, `_darwin_arm64.zip"`) }, upstream.ErrMalformed, "another name for the package"},
		{"no such package", upstream.Origin{}, metadata, func(*site) http.HandlerFunc { return status(404) }, upstream.ErrNotFound, ""},
		{"no such version", upstream.Origin{Mirror: mirrorBase}, files + "1.0.0.json", func(*site) http.HandlerFunc { return body(`{"archives":{}}`) }, upstream.ErrNotFound, ""},
		{"no such archive", upstream.Origin{Mirror: mirrorBase}, files + "1.0.0.json", func(*site) http.HandlerFunc { return body(`{"archives":{"plan9_arm":{"url":"a.zip"}}}`) }, upstream.ErrNotFound, "this platform"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			c := s.Client(t, test.origin)
			r, err := c.Release(background(), demo, v1, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.Fault(test.path, test.answer(s))
			_, err = c.Download(background(), r, linux, io.Discard)
			mustFail(t, err, test.kind, test.says)
		})
	}
	t.Run("a platform without a package", func(t *testing.T) {
		c := newAcme(t).Client(t, upstream.Origin{})
		r, err := c.Release(background(), demo, v1, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Download(background(), r, address.Platform{OS: "plan9", Arch: "arm"}, io.Discard)
		mustFail(t, err, upstream.ErrNotFound, "plan9_arm")
	})
}

// A resumed download continues the same file, which If-Range identifies.
func TestResumeSendsIfRange(t *testing.T) {
	s := newAcme(t)
	var ranges []string
	s.Fault(zipFile, s.Part(200, &ranges, upstreamtest.BreakOff))
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		r, err := c.Release(background(), demo, v1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Download(background(), r, linux, io.Discard); err != nil {
			t.Fatal(err)
		}
	})
	for i, r := range s.Requests(zipFile) {
		if got := r.Header.Get("If-Range"); (got != "") != (i > 0) {
			t.Errorf("request %d has If-Range %q", i, got)
		}
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("request %d accepts encodings %q", i, r.Header.Get("Accept-Encoding"))
		}
	}
}

// A large package over a line that breaks off now and then arrives all the same: what counts is how
// often a connection breaks off that has brought next to nothing.
func TestDownloadOfManyConnections(t *testing.T) {
	const part = 1 << 20
	noise := make([]byte, 8*part)
	rand.NewChaCha8([32]byte{}).Read(noise)
	content := indextest.Zip("terraform-provider-demo", string(noise))
	folders, publisher := indextest.New(t), indextest.NewPublisher(t)
	release := folders.Provider("acme/demo", "1.0.0", "linux_amd64")
	folders.Write("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", content)
	release.Signed(publisher)
	folders.Keys("acme", publisher)
	for _, test := range []struct {
		rule        string
		brings      []int // bytes of each connection; then the last of them
		again       bool  // each begins again
		connections int
		arrives     bool
	}{
		{"many that bring much", []int{part}, false, len(content)/part + 1, true},
		{"many that bring nearly as much", []int{part - 1}, false, 5, false},
		{"one that brings much among many that do not", []int{1, 1, 1, 1, part, 1}, false, 9, false},
		{"many that begin again", []int{part, 2 * part, 3 * part, 4 * part, 5 * part, 6 * part, 7 * part, 8 * part}, true, 5, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newSite(t, folders)
			n := 0
			s.Fault(zipFile, func(w http.ResponseWriter, r *http.Request) {
				brings := test.brings[min(n, len(test.brings)-1)]
				n++
				if test.again {
					r.Header.Del("Range")
				}
				s.Part(brings, new([]string), upstreamtest.BreakOff)(w, r)
			})
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				r, err := c.Release(background(), demo, v1, nil)
				if err != nil {
					t.Fatal(err)
				}
				if test.arrives {
					mustDownload(t, c, r, content)
				} else {
					_, err = c.Download(background(), r, linux, io.Discard)
					mustFail(t, err, upstream.ErrUnavailable, "broke off 5 times")
				}
			})
			if n != test.connections {
				t.Errorf("it took %d connections, want %d", n, test.connections)
			}
		})
	}
}

// A link may be valid for seconds only, and a package take minutes. The rest of it is requested by
// a new link then, once.
func TestDownloadIsResumedByANewLink(t *testing.T) {
	for _, code := range []int{400, 403, 404} { // by Google's, Amazon's and other object stores
		folders, _ := acme(t)
		s := newSite(t, folders)
		links := 0
		s.Fault(metadata, func(w http.ResponseWriter, r *http.Request) {
			links++
			s.Edited(`_linux_amd64.zip","shasum"`, fmt.Sprintf(`_linux_amd64.zip?link=%d","shasum"`, links))(w, r)
		})
		var requested []string
		s.Fault(zipFile, func(w http.ResponseWriter, r *http.Request) {
			requested = append(requested, r.URL.RawQuery+" "+r.Header.Get("Range"))
			switch {
			case r.URL.RawQuery != fmt.Sprintf("link=%d", links) || len(requested) == 2:
				w.WriteHeader(code)
			case len(requested) == 1:
				s.Part(100, new([]string), upstreamtest.BreakOff)(w, r)
			default:
				s.Handler.ServeHTTP(w, r)
			}
		})
		s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
			r, err := c.Release(background(), demo, v1, nil)
			if err != nil {
				t.Fatal(err)
			}
			mustDownload(t, c, r, folders.Read("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"))
		})
		if got := fmt.Sprint(requested); got != "[link=2  link=2 bytes=100- link=3 bytes=100-]" {
			t.Errorf("%d: requested %s", code, got)
		}
	}
}

func TestDownloadFailsWithItsWriter(t *testing.T) {
	full := errors.New("no space left")
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	r, err := c.Release(background(), demo, v1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var f *upstream.Failure
	if _, err = c.Download(background(), r, linux, broken{full}); !errors.Is(err, full) || errors.As(err, &f) {
		t.Errorf("got %v", err)
	}
	if n := s.Count(zipFile); n != 1 {
		t.Errorf("it was requested %d times, want 1", n)
	}
}

type broken struct{ error }

func (b broken) Write([]byte) (int, error) { return 0, b.error }

func TestPace(t *testing.T) {
	const patience = 10 * time.Second
	for _, test := range []struct {
		rule  string
		bytes int // of each read
		every time.Duration
		slow  bool
	}{
		{"just enough", upstream.MinRate, time.Second, false},
		{"too little, from the beginning", upstream.MinRate - 1, time.Second, true},
		{"enough, in large reads", 9 * upstream.MinRate, 9 * time.Second, false},
		{"one byte at a time", 1, 9 * time.Second, true},
	} {
		p := upstream.NewPace(patience)
		slow := false
		var took time.Duration
		for ; took < 10*time.Minute && !slow; took += test.every {
			slow = p.TooSlow(test.bytes, test.every)
		}
		if slow != test.slow || slow && took > patience+test.every {
			t.Errorf("%s: got slow %v after %v", test.rule, slow, took)
		}
	}
	p := upstream.NewPace(patience) // earlier fast bytes do not count for long
	p.TooSlow(1<<30, upstream.RateWindow)
	p.TooSlow(1, patience/2)
	if !p.TooSlow(1, patience/2) {
		t.Error("a fast start makes up for a slow rest")
	}
	p = upstream.NewPace(patience)
	p.TooSlow(30*upstream.MinRate, time.Second)
	if p.TooSlow(1, 20*time.Second) {
		t.Error("a pause ends a download that is fast enough")
	}
	if p = upstream.NewPace(time.Hour); p.TooSlow(1, 50*time.Second) || !p.TooSlow(1, 10*time.Second) {
		t.Error("an origin with a long timeout has another time than a window")
	}
}
