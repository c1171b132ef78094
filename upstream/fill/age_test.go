package fill_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

func readOnly() afero.Fs { return afero.NewReadOnlyFs(afero.NewMemMapFs()) }

const day = 24 * time.Hour

var threeDays = fill.Policy{MinAge: 3 * day}

// lists has the site list versions, the newest first, each as old as given; one
// with a negative age has no date.
func lists(s *site, versionsAndAges ...any) {
	var entries []string
	for i := 0; i < len(versionsAndAges); i += 2 {
		v, age := versionsAndAges[i].(string), versionsAndAges[i+1].(time.Duration)
		entries = append(entries, fmt.Sprintf(`{"version":%q}`, v))
		if age < 0 {
			s.Fault(details(v), status(404))
			continue
		}
		s.Fault(details(v), body(fmt.Sprintf(`{"published_at":%q}`, time.Now().Add(-age).Format(time.RFC3339))))
	}
	s.Fault(versions, body(`{"versions":[`+strings.Join(entries, ",")+`]}`))
}

func details(version string) string { return "/v1/providers/acme/demo/" + version }

func TestMinAge(t *testing.T) {
	s := newAcme(t)
	mirrored(t, s, threeDays, func(t *testing.T, m *mirroring) {
		lists(s, "1.4.0", time.Hour, "1.3.0", 10*day, "1.2.0", day, "1.1.0", 20*day, "1.0.0", 30*day, "0.9.0", 40*day, "0.8.0", 50*day, "0.7.0", 60*day)
		if got := versionsOf(t, m); got != "1.3.0 1.1.0 1.0.0 0.9.0 0.8.0 0.7.0" {
			t.Errorf("at first sight: %q", got)
		}
		if s.Count(details("0.9.0")) != 1 || s.Count(details("0.8.0")) != 0 {
			t.Error("dates are asked for of what is behind three old ones")
		}
		time.Sleep(2 * day)
		versionsOf(t, m)
		if got := versionsOf(t, m); got != "1.3.0 1.2.0 1.1.0 1.0.0 0.9.0 0.8.0 0.7.0" {
			t.Errorf("two days later: %q", got)
		}
		if s.Count(details("1.4.0")) != 1 {
			t.Error("what is known is asked for again")
		}
		time.Sleep(day)
		versionsOf(t, m)
		if got := versionsOf(t, m); !strings.HasPrefix(got, "1.4.0 ") {
			t.Errorf("three days later: %q", got)
		}
	})
}

// A list changes when a version has become old enough, not only when it is
// renewed.
func TestVersionsMature(t *testing.T) {
	s := newAcme(t)
	mirrored(t, s, threeDays, func(t *testing.T, m *mirroring) {
		lists(s, "1.1.0", 3*day-time.Minute, "1.0.0", 9*day)
		first, err := m.Versions(background(), demo)
		if err != nil || listedIn(first) != "1.0.0" {
			t.Fatalf("got %q, %v", listedIn(first), err)
		}
		time.Sleep(time.Minute)
		if got := versionsOf(t, m); got != "1.1.0 1.0.0" || s.Count(versions) != 1 {
			t.Errorf("got %q", got)
		}
	})
}

// Versions that nobody dates count from when they were new.
func TestMinAgeWithoutDates(t *testing.T) {
	s := newAcme(t)
	mirrored(t, s, threeDays, func(t *testing.T, m *mirroring) {
		lists(s, "1.1.0", -day, "1.0.0", -day)
		if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
			t.Errorf("at first sight: %q", got)
		}
		lists(s, "1.2.0", -day, "1.1.0", -day, "1.0.0", -day)
		time.Sleep(time.Hour)
		if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
			t.Errorf("a new one: %q", got)
		}
		time.Sleep(3 * day)
		if got := versionsOf(t, m); got != "1.2.0 1.1.0 1.0.0" {
			t.Errorf("three days later: %q", got)
		}
	})
}

// That the origin does not answer for dates makes nothing old.
func TestMinAgeWhileDatesFail(t *testing.T) {
	s := newAcme(t)
	mirrored(t, s, threeDays, func(t *testing.T, m *mirroring) {
		lists(s, "1.1.0", time.Hour, "1.0.0", 9*day)
		dates := map[string]http.HandlerFunc{details("1.1.0"): nil, details("1.0.0"): nil}
		for path := range dates {
			dates[path] = s.Fault(path, status(500))
		}
		if _, err := m.Versions(background(), demo); !errors.Is(err, upstream.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		if _, err := m.Fill(background(), demo, linuxZip); err == nil {
			t.Error("it came")
		}
		for path, f := range dates {
			s.Fault(path, f)
		}
		time.Sleep(time.Minute)
		if got := versionsOf(t, m); got != "1.0.0" {
			t.Errorf("later: %q", got)
		}
		lists(s, "1.2.0", time.Hour, "1.1.0", time.Hour, "1.0.0", 9*day)
		s.Fault(details("1.2.0"), status(500))
		time.Sleep(time.Hour)
		if got := versionsOf(t, m); got != "1.0.0" {
			t.Errorf("a new one without a date: %q", got)
		}
	})
	mirrored(t, s, threeDays, func(t *testing.T, m *mirroring) {
		lists(s, "1.1.0", time.Hour, "1.0.0", 9*day)
		s.Fault(details("1.1.0"), status(500))
		for range 4 * 24 * 2 { // it never answers for dates
			m.Versions(background(), demo)
			time.Sleep(30 * time.Minute)
		}
		if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
			t.Errorf("three days after first sight: %q", got)
		}
	})
}

// A version too young is nowhere: not listed, not obtainable, not filled.
func TestTooYoungAVersion(t *testing.T) {
	s := newAcme(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		lists(s, "1.0.0", time.Hour)
		tree := indextest.New(t)
		m := inMemory(t, c, threeDays, tree)
		defer m.Close()
		if o, err := m.Versions(background(), demo); err != nil || listedIn(o) != "" {
			t.Errorf("got %+v, %v", o, err)
		}
		if _, err := m.Available(background(), demo, "1.0.0"); !errors.Is(err, fill.ErrTooYoung) {
			t.Errorf("got %v", err)
		}
		m.mustRefuse(t, linuxZip, fill.ErrTooYoung, "")
		time.Sleep(3 * day)
		m.fill(t, linuxZip)

		// The least age of versions is not only for those that come later.
		other := inMemory(t, c, fill.Policy{}, indextest.New(t))
		defer other.Close()
		lists(s, "1.0.0", time.Hour)
		versionsOf(t, other)
		strict := inMemory(t, c, threeDays, other.Tree)
		defer strict.Close()
		if got := versionsOf(t, strict); got != "" {
			t.Errorf("got %q", got)
		}
	})
}

// A backport is new, and stands behind versions that are old. Its date is asked
// for before anybody gets it.
func TestMinAgeOfBackports(t *testing.T) {
	backport := []any{"3.0.0", 20 * day, "2.1.0", 30 * day, "2.0.0", 40 * day, "1.0.0", time.Hour, "0.9.0", 50 * day}
	tests := []struct {
		rule  string
		age   time.Duration // of 1.0.0; negative: it has no date
		fails bool          // while it is asked for
		want  error
		then  string // what is listed afterwards
	}{
		{"one that is too young does not come, and is not listed any more", time.Hour, false, fill.ErrTooYoung, "3.0.0 2.1.0 2.0.0 0.9.0"},
		{"one that is old comes", 10 * day, false, nil, "3.0.0 2.1.0 2.0.0 1.0.0 0.9.0"},
		{"one whose date the origin does not tell is old", -day, false, nil, "3.0.0 2.1.0 2.0.0 1.0.0 0.9.0"},
		{"one whose date cannot be asked for does not come for now", time.Hour, true, upstream.ErrUnavailable, "3.0.0 2.1.0 2.0.0 1.0.0 0.9.0"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				backport[7] = test.age
				lists(s, backport...)
				if test.fails {
					s.Fault(details("1.0.0"), status(500))
				}
				tree := indextest.New(t)
				m := inMemory(t, c, threeDays, tree)
				defer m.Close()
				listed := versionsOf(t, m)
				asked := s.Count(details("1.0.0"))
				for range 3 {
					if _, err := m.Available(background(), demo, "1.0.0"); !errors.Is(err, test.want) {
						t.Errorf("got %v", err)
					}
				}
				if listed != "3.0.0 2.1.0 2.0.0 1.0.0 0.9.0" || asked != 0 || !test.fails && s.Count(details("1.0.0")) != 1 {
					t.Errorf("at first %q is listed; its date is asked for %d times, and then %d", listed, asked, s.Count(details("1.0.0")))
				}
				if got := versionsOf(t, m); got != test.then {
					t.Errorf("then %q is listed", got)
				}
				time.Sleep(time.Hour) // the list is renewed
				versionsOf(t, m)
				if got := versionsOf(t, m); got != test.then {
					t.Errorf("later %q is listed", got)
				}

				for name, tree := range map[string]*indextest.Tree{"with its record": tree, "without": indextest.New(t)} {
					again := inMemory(t, c, threeDays, tree)
					if _, err := again.Available(background(), demo, "1.0.0"); !errors.Is(err, test.want) {
						t.Errorf("after a restart, %s: got %v", name, err)
					}
					if got := versionsOf(t, again); got != test.then {
						t.Errorf("after a restart, %s: %q is listed", name, got)
					}
					again.Close()
				}
				if test.want == fill.ErrTooYoung {
					m.mustRefuse(t, linuxZip, fill.ErrTooYoung, "")
					time.Sleep(3 * day)
					m.fill(t, linuxZip)
				}
			})
		})
	}
}

// Who wants a version at the same time waits for one question, and a list that
// is renewed meanwhile does not lose the answer.
func TestMinAgeIsAskedForOnce(t *testing.T) {
	s := newAcme(t)
	mirrored(t, s, threeDays, func(t *testing.T, m *mirroring) {
		lists(s, "3.0.0", 20*day, "2.1.0", 30*day, "2.0.0", 40*day, "1.0.0", time.Hour)
		versionsOf(t, m)
		time.Sleep(time.Hour)
		young := body(fmt.Sprintf(`{"published_at":%q}`, time.Now().Add(-2*time.Hour).Format(time.RFC3339)))
		s.Fault(details("1.0.0"), func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * time.Second)
			young(w, r)
		})
		errs := make(chan error)
		for range 5 {
			go func() {
				_, err := m.Available(background(), demo, "1.0.0")
				errs <- err
			}()
		}
		for range 5 {
			if err := <-errs; !errors.Is(err, fill.ErrTooYoung) {
				t.Errorf("got %v", err)
			}
		}
		if got := versionsOf(t, m); got != "3.0.0 2.1.0 2.0.0" || s.Count(details("1.0.0")) != 1 {
			t.Errorf("%q is listed, and its date was asked for %d times", got, s.Count(details("1.0.0")))
		}
	})
}
