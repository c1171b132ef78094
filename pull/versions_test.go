package pull_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

const listedOne, listedTwo = `{"versions":[{"version":"1.0.0"}]}`, `{"versions":[{"version":"2.0.0"},{"version":"1.0.0"}]}`

// mirrored runs a test with a mirror of the site in a bubble of time.
func mirrored(t *testing.T, s *site, policy pull.Policy, test func(t *testing.T, m *mirroring)) {
	t.Helper()
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		m := inMemory(t, c, policy, indextest.New(t))
		defer m.Close()
		test(t, m)
	})
}

func TestVersions(t *testing.T) {
	s := newAcme(t)
	s.Fault(versions, body(listedOne))
	mirrored(t, s, pull.Policy{}, func(t *testing.T, m *mirroring) {
		first, err := m.Versions(background(), demo)
		if err != nil || listedIn(first) != "1.0.0" || first.Age != 0 || first.Stale {
			t.Fatalf("got %+v, %v", first, err)
		}
		s.Fault(versions, body(listedTwo))

		time.Sleep(10 * time.Minute) // as long as it is fresh
		o, err := m.Versions(background(), demo)
		if err != nil || o.Age != 10*time.Minute || o.Stale || s.Count(versions) != 1 {
			t.Errorf("got %+v, %v", o, err)
		}
		time.Sleep(time.Second) // it is returned once more, and renewed
		o, _ = m.Versions(background(), demo)
		if listedIn(o) != "1.0.0" || !o.Stale {
			t.Errorf("got %q, %+v", listedIn(o), o)
		}
		synctest.Wait()
		if o, _ = m.Versions(background(), demo); listedIn(o) != "2.0.0 1.0.0" || o.Stale || s.Count(versions) != 2 {
			t.Errorf("got %q, %+v", listedIn(o), o)
		}
		s.Fault(versions, body(listedOne))
		time.Sleep(20*time.Minute + time.Second) // too old to be returned without an attempt to renew it
		if o, _ = m.Versions(background(), demo); listedIn(o) != "1.0.0" || o.Age != 0 {
			t.Errorf("got %q, %+v", listedIn(o), o)
		}
	})
}

// Clients do not notice the failure of an origin, and it is logged once.
func TestVersionsWhileTheOriginFails(t *testing.T) {
	for _, test := range []struct {
		rule  string
		fault http.HandlerFunc
		takes time.Duration // at most
		warns string
		over  string
	}{
		{"down", status(503), 4 * time.Second, "does not answer", "answers again"},
		{"silent", upstreamtest.Silence, 3 * time.Second, "does not answer", "answers again"},
		{"forgetful", status(404), 0, "does not list the provider", "lists the provider again"},
		{"failing with status 200", body(`{"errors":["upstream request timeout"]}`), 0, "does not list the provider", "lists the provider again"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(versions, body(listedOne))
			mirrored(t, s, pull.Policy{}, func(t *testing.T, m *mirroring) {
				versionsOf(t, m)
				s.Fault(versions, test.fault)
				for range 5 {
					time.Sleep(time.Hour)
					began := time.Now()
					o, err := m.Versions(background(), demo)
					if err != nil || listedIn(o) != "1.0.0" || !o.Stale || o.Age < time.Hour {
						t.Errorf("got %+v, %v", o, err)
					}
					if took := time.Since(began); took > test.takes {
						t.Errorf("it took %v", took)
					}
					synctest.Wait()
				}
				time.Sleep(time.Minute)
				if n := m.log.count("level=WARN"); n != 1 || m.log.count(test.warns) != 1 {
					t.Errorf("warned %d times: %s", n, m.log.text.String())
				}
				s.Fault(versions, nil)
				time.Sleep(time.Hour)
				m.Versions(background(), demo)
				if m.log.count(test.over) != 1 {
					t.Errorf("the end is not logged: %s", m.log.text.String())
				}
				if len(m.log.observed(pull.VersionsStale)) < 5 {
					t.Error("stale lists are not observed")
				}
			})
		})
	}
}

// An origin that fails for one provider alone is not down again with each list, and the log names the provider.
func TestOriginsThatFailForOneProvider(t *testing.T) {
	s := newAcme(t)
	other := demo
	other.Name = "other"
	const others = "/v1/providers/acme/other/versions"
	s.Fault(versions, body(listedOne))
	s.Fault(others, body(listedOne))
	mirrored(t, s, pull.Policy{}, func(t *testing.T, m *mirroring) {
		logs := func(when, message string, want int) {
			t.Helper()
			if n := m.log.count(message); n != want {
				t.Errorf("%s, the log has %q %d times: %s", when, message, n, m.log.text.String())
			}
		}
		renew := func() {
			time.Sleep(time.Hour)
			m.Versions(background(), other)
			m.Versions(background(), demo)
			synctest.Wait()
		}
		renew()
		s.Fault(others, status(501))
		for range 10 {
			renew()
		}
		logs("while one fails", "does not answer", 1)
		logs("while one fails", "answers again", 0)
		logs("while one fails", "does not list the provider", 1)

		s.Fault(others, body(listedOne))
		renew()
		logs("when it is listed", "lists the provider again", 1)

		s.Fault(versions, status(501))
		s.Fault(others, status(501))
		for range 3 {
			renew()
		}
		logs("while both fail", "does not answer", 2)
		logs("while both fail", "does not list the provider", 1)
		s.Fault(versions, body(listedOne))
		s.Fault(others, body(listedOne))
		renew()
		logs("when both are listed", "answers again", 1)
		logs("when both are listed", "lists the provider again", 1)
	})
}

// A list is requested once for all clients. If that fails, the error is remembered for
// a while, and then it is requested again.
func TestVersionsOfAFirstRequest(t *testing.T) {
	for _, test := range []struct {
		rule  string
		fault http.HandlerFunc
		kind  error
		life  time.Duration
	}{
		{"down", status(503), upstream.ErrUnavailable, 15 * time.Second},
		{"no such provider", status(404), upstream.ErrNotFound, time.Minute},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(versions, test.fault)
			mirrored(t, s, pull.Policy{}, func(t *testing.T, m *mirroring) {
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						if _, err := m.Versions(background(), demo); !errors.Is(err, test.kind) {
							t.Errorf("got %v", err)
						}
					})
				}
				all.Wait()
				asked := s.Count(versions)
				if len(m.log.observed(pull.VersionsFetched)) != 1 {
					t.Errorf("it was requested %d times", asked)
				}
				s.Fault(versions, body(listedOne))
				time.Sleep(test.life - time.Second)
				if _, err := m.Versions(background(), demo); err == nil || s.Count(versions) != asked {
					t.Errorf("got %v", err)
				}
				time.Sleep(time.Second)
				if got := versionsOf(t, m); got != "1.0.0" {
					t.Errorf("got %q", got)
				}
				m.mustHave(t) // nothing is written
			})
		})
	}
}

// While one request tests whether an origin is up again, others fail. That is not remembered: the origin may
// answer the test.
func TestRequestsWhileAnOriginIsTested(t *testing.T) {
	s := newAcme(t)
	other := demo
	other.Name = "other"
	s.Fault("/v1/providers/acme/other/versions", body(listedOne))
	mirrored(t, s, pull.Policy{}, func(t *testing.T, m *mirroring) {
		s.Fault(discovery, status(501))
		for i := range 3 { // until the origin gets no requests any more
			a := demo
			a.Name = fmt.Sprintf("unknown-%d", i)
			m.Versions(background(), a)
		}
		time.Sleep(time.Minute)
		answer := make(chan struct{})
		s.Fault(discovery, func(w http.ResponseWriter, r *http.Request) {
			<-answer
			s.Handler.ServeHTTP(w, r)
		})
		tested := make(chan error)
		go func() {
			_, err := m.Versions(background(), demo)
			tested <- err
		}()
		synctest.Wait()
		if _, err := m.Versions(background(), other); !errors.Is(err, upstream.ErrUnavailable) {
			t.Errorf("during the test: %v", err)
		}
		close(answer)
		if err := <-tested; err != nil {
			t.Errorf("the test: %v", err)
		}
		if _, err := m.Versions(background(), other); err != nil {
			t.Errorf("after the test: %v", err)
		}
	})
}

func TestVersionsWithoutTheirClient(t *testing.T) {
	s := newAcme(t)
	rest := make(chan struct{})
	s.Fault(versions, func(w http.ResponseWriter, r *http.Request) {
		<-rest
		body(listedOne)(w, r)
	})
	m := onDisk(t, s.Client(t, upstream.Origin{}), pull.Policy{})
	ctx, leave := context.WithCancel(background())
	leave()
	if _, err := m.Versions(ctx, demo); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(rest)
	if got := versionsOf(t, m); got != "1.0.0" || s.Count(versions) != 1 {
		t.Errorf("got %q, asked %d times", got, s.Count(versions))
	}
}

// Lists survive a restart, and are shared by instances over one tree.
func TestVersionsAreKept(t *testing.T) {
	s := newAcme(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		folders := indextest.New(t).Write(directory+".keep", "")
		start := func() *mirroring {
			m := inMemory(t, c, pull.Policy{}, folders)
			return m
		}
		s.Fault(versions, body(`{"versions":[{"version":"1.0.0","protocols":["6.0"],"platforms":[{"os":"linux","arch":"amd64"}]}]}`))
		one := start()
		defer one.Close()
		versionsOf(t, one)

		two := start()
		defer two.Close()
		o, err := two.Versions(background(), demo)
		if err != nil || s.Count(versions) != 1 || len(o.Versions) != 1 {
			t.Fatalf("got %+v, %v", o, err)
		}
		if v := o.Versions[0]; v.Protocols[0] != "6.0" || v.Platforms[0] != linux {
			t.Errorf("got %+v", v)
		}

		time.Sleep(25 * time.Minute)
		versionsOf(t, one)
		if versionsOf(t, two); s.Count(versions) != 2 {
			t.Errorf("asked %d times", s.Count(versions))
		}

		// Without its origin, after a restart.
		s.Fault(versions, status(500))
		time.Sleep(24 * time.Hour)
		three := start()
		defer three.Close()
		if o, err := three.Versions(background(), demo); err != nil || o.Age < 24*time.Hour || listedIn(o) != "1.0.0" {
			t.Errorf("got %+v, %v", o, err)
		}
		s.Fault(versions, nil)

		for _, damaged := range []string{"", "{", `{"format":2}`, folders.Read(record)[:50], `{"format":1,"fetched":"2999-01-01T00:00:00Z","versions":[]}`} {
			folders.Write(record, damaged)
			asked := s.Count(versions)
			m := start()
			if versionsOf(t, m); s.Count(versions) == asked {
				t.Errorf("%q is accepted", damaged)
			}
			m.Close()
		}
	})
}

// Lists are served from a tree that is not writable, too.
func TestVersionsThatCannotBeKept(t *testing.T) {
	s := newAcme(t)
	lists(s, "1.0.0", 9*day)
	m := inMemory(t, s.Client(t, upstream.Origin{}), threeDays, indextest.On(t, readOnly()))
	if versionsOf(t, m) != "1.0.0" || m.log.count("cannot be kept") != 1 {
		t.Error("it is not logged")
	}
}

// A request for a provider leaves nothing in the tree. Its list is written with its
// first package, or if there is a minimum release age.
func TestVersionsOfProvidersThatAreNotInTheTree(t *testing.T) {
	for _, test := range []struct {
		rule   string
		policy pull.Policy
		kept   bool
	}{
		{"nothing is kept", pull.Policy{}, false},
		{"but of when versions were seen", pull.Policy{MinAge: time.Nanosecond}, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m := onDisk(t, newAcme(t).Client(t, upstream.Origin{}), test.policy)
			m.mustRefuse(t, strings.Replace(linuxZip, "1.0.0", "9.0.0", 1), upstream.ErrNotFound, "")
			versionsOf(t, m)
			if _, err := os.Stat(filepath.Join(m.root.dir, directory)); (err == nil) != test.kept {
				t.Errorf("its folder: %v", err)
			}
			m.fill(t, linuxZip)
			m.mustHave(t, directory+linuxZip, directory+sums, directory+sums+".sig", keysFile, record)
		})
	}
}
