package pull_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/versionlist"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

func readOnly() afero.Fs { return afero.NewReadOnlyFs(afero.NewMemMapFs()) }

const day = 24 * time.Hour

var threeDays = pull.Policy{MinAge: 3 * day}

// lists makes the site list versions, newest first, each of the given age. A version
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
		// 1.0.0 is a backport: its place in the list says nothing about its age.
		lists(s, "1.4.0", time.Hour, "1.3.0", 10*day, "1.2.0", day, "1.1.0", 20*day, "1.0.0", time.Hour, "0.9.0", 40*day)
		if got := versionsOf(t, m); got != "1.3.0 1.1.0 0.9.0" {
			t.Errorf("the first list: %q", got)
		}
		time.Sleep(2 * day)
		versionsOf(t, m)
		if got := versionsOf(t, m); got != "1.3.0 1.2.0 1.1.0 0.9.0" {
			t.Errorf("two days later: %q", got)
		}
		time.Sleep(day)
		versionsOf(t, m)
		if got := versionsOf(t, m); got != "1.4.0 1.3.0 1.2.0 1.1.0 1.0.0 0.9.0" {
			t.Errorf("three days later: %q", got)
		}
		if s.Count(details("1.4.0")) != 1 || s.Count(details("0.9.0")) != 1 {
			t.Error("a known date is requested again")
		}
	})
}

// A list changes when a version reaches the minimum release age, not only when it is
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

// Versions without a date count from when they were first seen. This includes the
// versions of the first list.
func TestMinAgeWithoutDates(t *testing.T) {
	s := newAcme(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		folders := indextest.New(t)
		m := inMemory(t, c, threeDays, folders)
		lists(s, "1.1.0", -day, "1.0.0", -day)
		if got := versionsOf(t, m); got != "" {
			t.Errorf("the first list: %q", got)
		}
		time.Sleep(2 * day)
		lists(s, "1.2.0", -day, "1.1.0", -day, "1.0.0", -day)
		versionsOf(t, m)
		m.Close()
		m = inMemory(t, c, threeDays, folders) // knows from the record when they were seen
		defer m.Close()
		time.Sleep(day)
		if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
			t.Errorf("three days later: %q", got)
		}
		time.Sleep(2 * day)
		if got := versionsOf(t, m); got != "1.2.0 1.1.0 1.0.0" {
			t.Errorf("five days later: %q", got)
		}
		if n := s.Count(details("1.0.0")); n != 1 {
			t.Errorf("the origin was asked %d times for a date that it does not tell", n)
		}
	})
}

// matured makes the record of a tree know two versions without a date for ten days.
func matured(t *testing.T, s *site, c *upstream.Client, folders *indextest.Tree) {
	t.Helper()
	m := inMemory(t, c, threeDays, folders)
	defer m.Close()
	lists(s, "1.1.0", -day, "1.0.0", -day)
	versionsOf(t, m)
	time.Sleep(10 * day)
	versionsOf(t, m)
	if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
		t.Fatalf("ten days later: %q", got)
	}
}

// Without the record all versions would be new. While it cannot be read, there is no list,
// and nothing is written over it.
func TestMinAgeWhileTheRecordCannotBeRead(t *testing.T) {
	for _, policy := range []pull.Policy{threeDays, {}} {
		for _, o := range outages {
			t.Run(fmt.Sprintf("%s, with %v", o.rule, policy.MinAge), func(t *testing.T) {
				s := newAcme(t)
				s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
					folders := indextest.New(t)
					matured(t, s, c, folders)
					o.each(func(n int) int {
						var faults treetest.Faults
						m := faulty(t, c, policy, folders, &faults)
						o.from(&faults, n)
						offering, err := m.Versions(background(), demo)
						asked, failed := faults.End()
						if got := listedIn(offering); err == nil && got != "1.1.0 1.0.0" || err != nil && !errors.Is(err, pull.ErrUnread) {
							t.Errorf("%v: %q, %v", failed, got, err)
						}
						if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
							t.Errorf("%v, and then: %q", failed, got)
						}
						m.Close()
						time.Sleep(time.Hour) // so that its list is out of date
						m = inMemory(t, c, threeDays, folders)
						defer m.Close()
						if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
							t.Errorf("%v, and after a restart: %q", failed, got)
						}
						if t.Failed() {
							return 0
						}
						return asked
					})
				})
			})
		}
	}
}

// A version that is missing in one list is not new when it is back.
func TestMinAgeAfterAShortList(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("with a restart: %v", restarts), func(t *testing.T) {
			s := newAcme(t)
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				folders := indextest.New(t)
				matured(t, s, c, folders)
				m := inMemory(t, c, threeDays, folders)
				defer func() { m.Close() }()
				lists(s, "1.1.0", -day)
				time.Sleep(day)
				versionsOf(t, m)
				if got := versionsOf(t, m); got != "1.1.0" {
					t.Errorf("the short list: %q", got)
				}
				if restarts {
					m.Close()
					m = inMemory(t, c, threeDays, folders)
				}
				lists(s, "1.2.0", -day, "1.1.0", -day, "1.0.0", -day)
				time.Sleep(day)
				versionsOf(t, m)
				if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
					t.Errorf("it is whole again: %q", got)
				}
			})
		})
	}
}

// Nothing in a damaged record counts. Versions in the tree existed before, and all
// others are new, so that no version counts as older than it is.
func TestMinAgeWithADamagedRecord(t *testing.T) {
	for _, test := range []struct{ rule, content, path, version string }{
		{"it is truncated", `{"format":1,"fetched":"2020-01-01T00:00:00Z","versions":[{"version":"1.1.0","seen":"2020-01-01T00:00:00Z"},`, directory + linuxZip, "1.0.0"},
		{"it is empty", "", directory + "1.0.0/" + darwinZip, "1.0.0"},
		{"it is too large", strings.Repeat(" ", 9<<20), directory + linuxZip, "1.0.0"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				folders := indextest.New(t).Write(record, test.content).Write(test.path, "x")
				before := time.Now().Add(-4 * day)
				if err := folders.Fs.Chtimes(test.path, before, before); err != nil {
					t.Fatal(err)
				}
				lists(s, "1.1.0", -day, "1.0.0", -day)
				m := inMemory(t, c, threeDays, folders)
				defer func() { m.Close() }()
				if got := versionsOf(t, m); got != test.version {
					t.Errorf("got %q", got)
				}
				if m.Read(record+".damaged") != test.content || m.log.count("is damaged") != 1 {
					t.Error("it is not kept aside, with a line in the log")
				}
				time.Sleep(2 * day)
				m.Close()
				m = inMemory(t, c, threeDays, folders)
				if got := versionsOf(t, m); got != test.version {
					t.Errorf("two days later: %q", got)
				}
				time.Sleep(day)
				versionsOf(t, m)
				if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
					t.Errorf("three days later: %q", got)
				}
			})
		})
	}
}

// A record written before versions of a first list had a date of their own counts
// from when its list was fetched.
func TestMinAgeOfAnEarlierRecord(t *testing.T) {
	s := newAcme(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		fetched := time.Now().Add(-2 * day).UTC().Format(time.RFC3339)
		folders := indextest.New(t).Write(record, `{"format":1,"fetched":"`+fetched+`","versions":[{"version":"1.1.0","published":"`+fetched+`"},{"version":"1.0.0"}]}`)
		lists(s, "1.1.0", -day, "1.0.0", -day)
		m := inMemory(t, c, threeDays, folders)
		defer m.Close()
		if got := versionsOf(t, m); got != "" {
			t.Errorf("two days later: %q", got)
		}
		time.Sleep(day)
		if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
			t.Errorf("three days later: %q", got)
		}
	})
}

// If the origin does not answer requests for dates, no version becomes old.
func TestMinAgeWhileDatesFail(t *testing.T) {
	for _, fault := range []struct {
		status int
		kind   error
	}{{500, upstream.ErrUnavailable}, {403, upstream.ErrRefused}} {
		t.Run(strconv.Itoa(fault.status), func(t *testing.T) { testMinAgeWhileDatesFail(t, fault.status, fault.kind) })
	}
}

func testMinAgeWhileDatesFail(t *testing.T, code int, kind error) {
	s := newAcme(t)
	mirrored(t, s, threeDays, func(t *testing.T, m *mirroring) {
		lists(s, "1.1.0", time.Hour, "1.0.0", 9*day)
		dates := map[string]http.HandlerFunc{details("1.1.0"): nil, details("1.0.0"): nil}
		for path := range dates {
			dates[path] = s.Fault(path, status(code))
		}
		if _, err := m.Versions(background(), demo); !errors.Is(err, kind) {
			t.Fatalf("got %v", err)
		}
		if _, err := m.Fill(background(), demo, linuxZip); err == nil {
			t.Error("the package came in")
		}
		for path, f := range dates {
			s.Fault(path, f)
		}
		time.Sleep(time.Minute)
		if got := versionsOf(t, m); got != "1.0.0" {
			t.Errorf("later: %q", got)
		}
		lists(s, "1.2.0", time.Hour, "1.1.0", time.Hour, "1.0.0", 9*day)
		s.Fault(details("1.2.0"), status(code))
		time.Sleep(time.Hour)
		if got := versionsOf(t, m); got != "1.0.0" {
			t.Errorf("a new one without a date: %q", got)
		}
	})
	mirrored(t, s, threeDays, func(t *testing.T, m *mirroring) {
		lists(s, "1.1.0", time.Hour, "1.0.0", 9*day)
		s.Fault(details("1.1.0"), status(code))
		for range 4 * 24 * 2 { // it never answers for dates
			m.Versions(background(), demo)
			time.Sleep(30 * time.Minute)
		}
		if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
			t.Errorf("three days after the first list: %q", got)
		}
	})
}

// An origin that only fails to send dates is up, and other requests must not suffer.
func TestDatesThatFailDoNotCloseTheOrigin(t *testing.T) {
	s := newAcme(t)
	mirrored(t, s, threeDays, func(t *testing.T, m *mirroring) {
		young := []string{"1.5.0", "1.4.0", "1.3.0", "1.2.0", "1.1.0"}
		var all []any
		for _, v := range young {
			all = append(all, v, time.Hour)
		}
		lists(s, append(all, "1.0.0", 9*day)...)
		for _, v := range young {
			s.Fault(details(v), status(501))
		}
		other := demo
		other.Name = "other"
		for range 3 {
			m.Versions(background(), demo)
			for _, v := range young {
				if _, err := m.Available(background(), demo, v); !errors.Is(err, upstream.ErrUnavailable) {
					t.Fatalf("%s: got %v", v, err)
				}
			}
			if _, err := m.Versions(background(), other); !errors.Is(err, upstream.ErrNotFound) {
				t.Fatalf("another provider: got %v", err)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}

// A date that could not be requested is not requested again for each client.
func TestDatesThatFailAreRemembered(t *testing.T) {
	s := newAcme(t)
	mirrored(t, s, threeDays, func(t *testing.T, m *mirroring) {
		lists(s, "1.1.0", time.Hour, "1.0.0", 9*day)
		s.Fault(details("1.1.0"), status(501))
		for range 10 {
			if _, err := m.Available(background(), demo, "1.1.0"); !errors.Is(err, upstream.ErrUnavailable) {
				t.Fatalf("got %v", err)
			}
		}
		if n := s.Count(details("1.1.0")); n > 2 {
			t.Errorf("the origin was asked %d times", n)
		}
		s.Fault(details("1.1.0"), body(fmt.Sprintf(`{"published_at":%q}`, time.Now().Add(-9*day).Format(time.RFC3339))))
		time.Sleep(time.Minute)
		if _, err := m.Available(background(), demo, "1.1.0"); errors.Is(err, upstream.ErrUnavailable) {
			t.Errorf("a minute later: got %v", err)
		}
	})
}

// A version that is too young is not listed, not available, and not filled.
func TestTooYoungAVersion(t *testing.T) {
	s := newAcme(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		lists(s, "1.0.0", time.Hour)
		folders := indextest.New(t)
		m := inMemory(t, c, threeDays, folders)
		defer m.Close()
		if o, err := m.Versions(background(), demo); err != nil || listedIn(o) != "" {
			t.Errorf("got %+v, %v", o, err)
		}
		if _, err := m.Available(background(), demo, "1.0.0"); !errors.Is(err, pull.ErrTooYoung) {
			t.Errorf("got %v", err)
		}
		m.mustRefuse(t, linuxZip, pull.ErrTooYoung, "")
		time.Sleep(3 * day)
		m.fill(t, linuxZip)

		// A minimum release age that is set later applies to versions known before.
		other := inMemory(t, c, pull.Policy{}, indextest.New(t))
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

// Each time a provider's list is renewed, dates are requested for a limited number of
// versions, newest first, and for the others with the next requests. A version without
// a date is not listed, but its date is requested when the version is.
func TestDatesOfManyVersions(t *testing.T) {
	for _, test := range []struct {
		rule  string
		age   time.Duration // of the oldest version; negative: it has no date
		fails bool          // when its date is requested
		want  error
	}{
		{"one that is old is available", 10 * day, false, nil},
		{"one that is too young is not", time.Hour, false, pull.ErrTooYoung},
		{"one without a date is as old as this mirror knows it", -day, false, pull.ErrTooYoung},
		{"one whose date cannot be requested is not for now", 10 * day, true, upstream.ErrUnavailable},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				var all []any
				for i := range pull.MaxDates + 5 {
					all = append(all, fmt.Sprintf("2.0.%d", pull.MaxDates+5-i), 20*day)
				}
				lists(s, append(all, "1.0.0", test.age)...)
				if test.fails {
					s.Fault(details("1.0.0"), status(500))
				}
				folders := indextest.New(t)
				m := inMemory(t, c, threeDays, folders)
				defer m.Close()
				if got := strings.Fields(versionsOf(t, m)); len(got) != pull.MaxDates || s.Count(details("1.0.0")) != 0 {
					t.Errorf("at first %d versions are listed", len(got))
				}
				wait := make(chan error)
				for range 5 { // at the same time
					go func() {
						_, err := m.Available(background(), demo, "1.0.0")
						wait <- err
					}()
				}
				for range 5 {
					if err := <-wait; !errors.Is(err, test.want) {
						t.Errorf("got %v", err)
					}
				}
				// Once for all of them, and perhaps once for the list that is renewed meanwhile.
				if n := s.Count(details("1.0.0")); !test.fails && (n < 1 || n > 2) {
					t.Errorf("its date was requested %d times", n)
				}
				time.Sleep(time.Minute)
				versionsOf(t, m)
				time.Sleep(time.Minute)
				got := strings.Fields(versionsOf(t, m))
				if want := pull.MaxDates + 5; len(got) != want+1 && test.want == nil || len(got) != want && test.want != nil {
					t.Errorf("then %d versions are listed", len(got))
				}
				synctest.Wait() // for the list that is renewed in the background, with its dates
				again := inMemory(t, c, threeDays, folders)
				defer again.Close()
				asked := s.Count(details("2.0.1"))
				if _, err := again.Available(background(), demo, "1.0.0"); !errors.Is(err, test.want) || s.Count(details("2.0.1")) != asked {
					t.Errorf("after a restart: got %v", err)
				}
			})
		})
	}
}

// A tree says when versions were published at their origin, as far as the origin was asked.
func TestDatesInATree(t *testing.T) {
	s := newAcme(t)
	mirrored(t, s, threeDays, func(t *testing.T, m *mirroring) {
		lists(s, "1.1.0", time.Hour, "1.0.0", 9*day, "0.9.0", -day)
		first := time.Now()
		versionsOf(t, m)
		time.Sleep(day)
		lists(s, "1.2.0", 9*day, "1.1.0", time.Hour, "1.0.0", 9*day, "0.9.0", -day)
		versionsOf(t, m)
		files, err := m.Open()
		if err != nil {
			t.Fatal(err)
		}
		dates, err := versionlist.Dates(files, demo)
		if err != nil {
			t.Fatal(err)
		}
		for version, want := range map[string]time.Time{
			"1.0.0": first.Add(-9 * day), "1.1.0": first.Add(-time.Hour), "0.9.0": {},
			"1.2.0": first, // it came after the first list, whatever the origin says
		} {
			if got := dates[version]; !got.Equal(want) {
				t.Errorf("%s was published at %v, want %v", version, got, want)
			}
		}
	})
}
