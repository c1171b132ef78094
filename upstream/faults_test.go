package upstream_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// What an answer costs: tries, and time.
func TestFaults(t *testing.T) {
	const timeout = 8 * time.Second
	after := func(code int, retryAfter string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", retryAfter)
			w.WriteHeader(code)
		}
	}
	for _, test := range []struct {
		rule   string
		answer http.HandlerFunc
		kind   error
		tries  int
		takes  time.Duration
	}{
		{"it does not exist", status(404), upstream.ErrNotFound, 1, 0},
		{"it is gone", status(410), upstream.ErrNotFound, 1, 0},
		{"a token is asked for", status(401), upstream.ErrRefused, 1, 0},
		{"the token is not enough", status(403), upstream.ErrRefused, 1, 0},
		{"some other error of ours", status(422), upstream.ErrMalformed, 1, 0},
		{"a success that is none", status(204), upstream.ErrMalformed, 1, 0},
		{"half of it, unasked", status(206), upstream.ErrMalformed, 1, 0},
		{"a server error is tried again", status(500), upstream.ErrUnavailable, 3, 750 * time.Millisecond},
		{"but not one that will not pass", status(501), upstream.ErrUnavailable, 1, 0},
		{"too many requests", status(429), upstream.ErrUnavailable, 3, 750 * time.Millisecond},
		{"Retry-After is kept", after(429, "1"), upstream.ErrUnavailable, 3, 2 * time.Second},
		{"not for ever", after(429, "86400"), upstream.ErrUnavailable, 1, 0},
		{"however it is written", after(503, "Fri, 31 Dec 2100 23:59:59 GMT"), upstream.ErrUnavailable, 1, 0},
		{"or large it is", after(503, "9223372037"), upstream.ErrUnavailable, 1, 0},
		{"no answer", upstreamtest.Silence, upstream.ErrTimeout, 1, timeout},
		{"an answer that stops", func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(`{"versions":`))
			w.(http.Flusher).Flush()
			upstreamtest.Silence(w, r)
		}, upstream.ErrTimeout, 1, timeout},
		{"an answer that is cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte(`{"versions":[]}`))
		}, upstream.ErrUnavailable, 1, 0},
		// One more, since net/http tries a connection of before again by itself.
		{"a connection that breaks", upstreamtest.BreakOff, upstream.ErrUnavailable, 4, 750 * time.Millisecond},
		{"a web page", body("<html>"), upstream.ErrMalformed, 1, 0},
		{"another document", body("[]"), upstream.ErrMalformed, 1, 0},
		{"nothing", body(""), upstream.ErrMalformed, 1, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(versions, test.answer)
			s.InBubble(t, upstream.Origin{Timeout: timeout, Token: "secret"}, func(t *testing.T, c *upstream.Client) {
				begin := time.Now()
				_, err := c.Versions(background(), demo)
				mustFail(t, err, test.kind, host)
				if tries, takes := s.Count(versions), time.Since(begin); tries != test.tries || takes != test.takes {
					t.Errorf("%d tries in %v, want %d in %v", tries, takes, test.tries, test.takes)
				}
			})
		})
	}
	t.Run("an error that passes", func(t *testing.T) {
		s := newAcme(t)
		s.Fault(versions, func(w http.ResponseWriter, r *http.Request) {
			s.Fault(versions, nil)
			w.WriteHeader(503)
		})
		s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
			if list, err := c.Versions(background(), demo); err != nil || len(list.Versions) != 1 {
				t.Errorf("got %v, %v", list, err)
			}
		})
	})
}

func TestLargeDocuments(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		block := bytes.Repeat([]byte{' '}, 64<<10)
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	announced := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000000000")
		w.WriteHeader(200)
	}
	for _, path := range []string{discovery, versions, metadata, sumsFile, sigFile} {
		for rule, answer := range map[string]http.HandlerFunc{"endless": endless, "announced": announced} {
			t.Run(rule+" "+path, func(t *testing.T) {
				s := newAcme(t)
				s.Fault(path, answer)
				c := s.Client(t, upstream.Origin{})
				_, err := c.Release(background(), demo, v1, nil)
				if path == versions {
					_, err = c.Versions(background(), demo)
				}
				mustFail(t, err, upstream.ErrTooLarge, "the limit is")
			})
		}
	}
}

// Whatever origins send, the documents of a release are small.
func TestLargeChecksumsAreRefused(t *testing.T) {
	tree, publisher := indextest.New(t), indextest.NewPublisher(t)
	release := tree.Provider("acme/demo", "1.0.0", "linux_amd64").Checksums()
	tree.Keys("acme", publisher)
	list := tree.Read(release.ChecksumsName())
	for i := 0; len(list) <= upstream.MaxChecksums; i++ {
		list += fmt.Sprintf("%064x  terraform-provider-demo_1.0.0_linux_cpu%d.zip\n", i, i)
	}
	tree.Write(release.ChecksumsName(), list)
	release.Signed(publisher)
	_, err := newSite(t, tree).Client(t, upstream.Origin{}).Release(background(), demo, v1, nil)
	mustFail(t, err, upstream.ErrTooLarge, "the limit is")
}

// An origin that is down is asked no more until its pause is over, and then
// once.
func TestBreaker(t *testing.T) {
	s := newAcme(t)
	s.Fault(versions, status(501))
	s.InBubble(t, upstream.Origin{Pause: time.Minute}, func(t *testing.T, c *upstream.Client) {
		fails := func(asked bool) {
			t.Helper()
			before := s.Count(versions)
			_, err := c.Versions(background(), demo)
			mustFail(t, err, upstream.ErrUnavailable, "")
			if (s.Count(versions) > before) != asked {
				t.Errorf("asked: %v", !asked)
			}
		}
		for range upstream.FailuresInARow {
			fails(true)
		}
		fails(false)
		time.Sleep(time.Minute + time.Millisecond)
		fails(true)
		fails(false)
		s.Fault(versions, nil)
		fails(false)
		time.Sleep(time.Minute + time.Millisecond)
		if _, err := c.Versions(background(), demo); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatDoesNotOpenTheBreaker(t *testing.T) {
	for rule, answer := range map[string]http.HandlerFunc{
		"404": status(404), "401": status(401), "422": status(422), "garbage": body("?"),
	} {
		t.Run(rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(versions, answer)
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				for range 10 {
					c.Versions(background(), demo)
				}
				if n := s.Count(versions); n != 10 {
					t.Errorf("it was asked %d times", n)
				}
			})
		})
	}
	t.Run("callers who go away", func(t *testing.T) {
		s := newAcme(t)
		s.Fault(versions, upstreamtest.Silence)
		s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
			for range 10 {
				ctx, cancel := context.WithTimeout(background(), time.Second)
				_, err := c.Versions(ctx, demo)
				mustFail(t, err, context.DeadlineExceeded, "")
				cancel()
			}
			if n := s.Count(versions); n != 10 {
				t.Errorf("it was asked %d times", n)
			}
		})
	})
}

func TestDiscoveryIsRemembered(t *testing.T) {
	s := newAcme(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		ask := func(discoveries int) {
			t.Helper()
			if _, err := c.Versions(background(), demo); err != nil {
				t.Error(err)
			}
			if n := s.Count(discovery); n != discoveries {
				t.Errorf("it was discovered %d times, want %d", n, discoveries)
			}
		}
		ask(1)
		time.Sleep(upstream.DiscoveryLife - time.Millisecond)
		ask(1)
		time.Sleep(time.Millisecond)
		ask(2)
		time.Sleep(upstream.DiscoveryLife)
		s.Fault(discovery, status(501)) // it is where it was
		ask(3)
		s.Fault(discovery, status(404)) // it is a registry no more
		_, err := c.Versions(background(), demo)
		mustFail(t, err, upstream.ErrMalformed, "not a registry")
	})
}

func TestDownload(t *testing.T) {
	tree, _ := acme(t)
	zip := tree.Read("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip")
	const timeout = 8 * time.Second
	for _, test := range []struct {
		rule   string
		answer func(s *site, ranges *[]string) http.HandlerFunc
		origin upstream.Origin
		kind   error // nil: it arrives whole
		says   string
		ranges string
		takes  time.Duration // until it is given up; zero: the timeout
	}{
		{rule: "a connection that breaks is resumed", answer: func(s *site, ranges *[]string) http.HandlerFunc {
			return s.Part(100, ranges, upstreamtest.BreakOff)
		}, ranges: "[ bytes=100- bytes=200-]"},
		{rule: "not for ever", answer: func(s *site, ranges *[]string) http.HandlerFunc {
			return s.Part(1, ranges, upstreamtest.BreakOff)
		}, kind: upstream.ErrUnavailable, says: "broke off 5 times", ranges: "[ bytes=1- bytes=2- bytes=3- bytes=4-]"},
		{rule: "an origin that knows no ranges begins again", answer: func(s *site, ranges *[]string) http.HandlerFunc {
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
		{rule: "a file that changes meanwhile", answer: func(s *site, ranges *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				*ranges = append(*ranges, r.Header.Get("Range"))
				if r.Header.Get("Range") == "" {
					s.Part(100, new([]string), upstreamtest.BreakOff)(w, r)
				}
				io.WriteString(w, zip+"more")
			}
		}, kind: upstream.ErrBadChecksum, says: "bytes where", ranges: "[ bytes=100-]"},
		{rule: "another part than asked for", answer: func(s *site, ranges *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Range") == "" {
					s.Part(100, new([]string), upstreamtest.BreakOff)(w, r)
				}
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 50-%d/%d", len(zip)-1, len(zip)))
				w.WriteHeader(206)
				io.WriteString(w, zip[50:])
			}
		}, kind: upstream.ErrMalformed, says: "another part"},
		{rule: "bytes stop coming", answer: func(s *site, ranges *[]string) http.HandlerFunc {
			return s.Part(100, ranges, upstreamtest.Silence)
		}, kind: upstream.ErrTimeout, ranges: "[]"},
		{rule: "bytes never come", answer: func(*site, *[]string) http.HandlerFunc { return upstreamtest.Silence }, kind: upstream.ErrTimeout},
		{rule: "bytes come slowly", answer: func(*site, *[]string) http.HandlerFunc {
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
		}, kind: upstream.ErrTimeout, says: "bytes a second", takes: 10 * (timeout - time.Second)},
		{rule: "bytes come slowly, but for a minute only", answer: func(*site, *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				for i := range 8 {
					time.Sleep(timeout - time.Second)
					io.WriteString(w, zip[i*len(zip)/8:(i+1)*len(zip)/8])
					w.(http.Flusher).Flush()
				}
			}
		}},
		{rule: "fewer than announced", answer: func(*site, *[]string) http.HandlerFunc { return body(zip[:len(zip)-1]) }, kind: upstream.ErrBadChecksum, says: "announced"},
		{rule: "fewer, and nobody says so", answer: func(*site, *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.(http.Flusher).Flush()
				if r.Header.Get("Range") == "" {
					io.WriteString(w, zip[:len(zip)-1])
				}
			}
		}, kind: upstream.ErrUnavailable, says: "broke off"},
		{rule: "more than announced", answer: func(*site, *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush()
				io.WriteString(w, zip+"more")
			}
		}, kind: upstream.ErrBadChecksum, says: "larger than announced"},
		{rule: "other bytes", answer: func(*site, *[]string) http.HandlerFunc {
			return body(strings.Repeat("x", len(zip)))
		}, kind: upstream.ErrBadChecksum, says: "not the file that was released"},
		{rule: "more than allowed", origin: upstream.Origin{MaxPackage: 99}, kind: upstream.ErrTooLarge, says: "99 bytes"},
		{rule: "more than allowed, and nobody says so", answer: func(*site, *[]string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush()
				io.WriteString(w, zip)
			}
		}, origin: upstream.Origin{MaxPackage: 99}, kind: upstream.ErrTooLarge, says: "99 bytes"},
		{rule: "a link to nothing", answer: func(*site, *[]string) http.HandlerFunc { return status(404) }, kind: upstream.ErrMalformed, says: "links to a package"},
		{rule: "a link that expired", answer: func(*site, *[]string) http.HandlerFunc { return status(403) }, kind: upstream.ErrRefused},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newSite(t, tree)
			var ranges []string
			if test.answer != nil {
				s.Fault(zipFile, test.answer(s, &ranges))
			}
			test.origin.Timeout = timeout
			s.InBubble(t, test.origin, func(t *testing.T, c *upstream.Client) {
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
					t.Errorf("asked for %v", ranges)
				}
			})
		})
	}
}

// A resumed package is of the same file: If-Range says which.
func TestResumeIsOfTheSameFile(t *testing.T) {
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
			t.Errorf("request %d takes %s", i, r.Header.Get("Accept-Encoding"))
		}
	}
}

func TestDownloadEndsWithItsWriter(t *testing.T) {
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
		t.Errorf("it was asked for %d times", n)
	}
}

type broken struct{ error }

func (b broken) Write([]byte) (int, error) { return 0, b.error }
