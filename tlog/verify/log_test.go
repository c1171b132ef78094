package verify_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
)

// changed has a server whose answers are changed on their way.
func changed(server http.Handler, change func(r *http.Request, body string) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		body := answer.Body.String()
		if answer.Code == http.StatusOK && strings.Contains(r.URL.Path, "/tlog/") {
			body = change(r, body)
		}
		w.Write([]byte(body))
	})
}

// A log that has changed otherwise than by new entries since the repository saw it is an alarm,
// with both signed checkpoints.
func TestAlarms(t *testing.T) {
	for _, test := range []struct {
		rule   string
		change func(t *testing.T, r *registry, m *machine)
		kind   verify.AlarmKind
		detail string
		now    string // is in the checkpoint that is shown
	}{
		{"an older backup", func(t *testing.T, r *registry, m *machine) {
			old := r.storage.Backup().MustOpen(t)
			r.Write("modules/acme/vpc/aws/1.1.0/main.tf", "")
			r.offer()
			m.verify(func(o *verify.Options) { o.Update = true })
			r.Log = func() *tlog.Log { return old }
		}, verify.Shrank, "it had 5 entries, and has 4", "\n4\n"},
		{"a twin with the same key and as many entries", func(t *testing.T, r *registry, m *machine) {
			m.servers[host] = served{fill(newRegistryIn(t, r.storage.Twin()))}
		}, verify.Forked, "there are two logs with 4 entries", "\n4\n"},
		{"a twin with the same key and more entries", func(t *testing.T, r *registry, m *machine) {
			twin := fill(newRegistryIn(t, r.storage.Twin()))
			twin.Write("modules/acme/vpc/aws/1.1.0/main.tf", "")
			twin.offer()
			m.servers[host] = served{twin}
		}, verify.Forked, "the newer checkpoint does not continue the older one", "\n5\n"},
		{"another key of the same name", func(t *testing.T, r *registry, m *machine) {
			m.servers[host] = served{full(t)}
		}, verify.OtherKey, "the checkpoint is not signed by the key ", "\n4\n"},
		{"another log in its place", func(t *testing.T, r *registry, m *machine) {
			signer, public := tlogtest.NewSigner(t, "evil.example.com/v1/tlog")
			signed, err := tlog.Checkpoint{Origin: signer.Name(), Size: 9}.Sign(signer)
			m.must(err)
			m.servers[host] = changed(m.servers[host], func(r *http.Request, body string) string {
				if strings.HasSuffix(r.URL.Path, "/key") {
					return public
				}
				return string(signed)
			})
		}, verify.Renamed, "the log here was registry.example.com/v1/tlog, and is evil.example.com/v1/tlog", "\n9\n"},
		{"another log at another URL", func(t *testing.T, r *registry, m *machine) {
			signer, public := tlogtest.NewSigner(t, "evil.example.com/v1/tlog")
			signed, err := tlog.Checkpoint{Origin: signer.Name(), Size: 9}.Sign(signer)
			m.must(err)
			m.servers[host] = discovering(`{"tlog.v1":"https://evil.example.com/v1/tlog/"}`, m.servers[host])
			evil := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(signed) })
			m.servers["evil.example.com"] = except(evil, "/key", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(public)) })
		}, verify.Renamed, "the log here was registry.example.com/v1/tlog, and is evil.example.com/v1/tlog", "\n9\n"},
		{"no log any more", func(t *testing.T, r *registry, m *machine) { r.Log = nil }, verify.Gone, "it answers 404 Not Found where the log was", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := full(t)
			m := installed(t, r)
			says(t, m.verify(), demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
			test.change(t, r, m)
			kept, err := os.ReadFile(m.path(verify.PinsName))
			m.must(err)
			for _, cache := range []string{m.cache, t.TempDir()} {
				m.cache = cache
				report := m.verify(func(o *verify.Options) { o.Update = true })
				says(t, report, demo+" 1.2.0 unproven", vpc+" 1.0.0 unproven")
				alarms := report.Alarms()
				if len(alarms) != 1 || alarms[0].Kind != test.kind || !strings.Contains(alarms[0].Detail, test.detail) {
					t.Fatalf("the alarms are %+v", report.Logs)
				}
				if a := alarms[0]; !strings.Contains(string(kept), a.Before) || a.Before == "" || !strings.Contains(a.Now, test.now) || test.now != "" && !strings.Contains(a.Now, "\n\n— ") {
					t.Errorf("the checkpoints are\n%s\n%s", a.Before, a.Now)
				}
			}
			if after, _ := os.ReadFile(m.path(verify.PinsName)); !bytes.Equal(after, kept) {
				t.Errorf("the file has become\n%s", after)
			}
		})
	}
}

// A log that is shown otherwise to the same user is noticed, too, where nothing is committed.
func TestAlarmsWithoutAFile(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	m.verify()
	m.remove(verify.PinsName)
	m.servers[host] = served{fill(newRegistryIn(t, r.storage.Twin()))}
	if alarms := m.verify().Alarms(); len(alarms) != 1 || alarms[0].Kind != verify.Forked {
		t.Errorf("a later run has the alarms %v", alarms)
	}

	m = installed(t, r)
	twin := served{fill(newRegistryIn(t, r.storage.Twin()))}
	m.servers[host] = except(m.servers[host], "/lookup/modules/", twin.ServeHTTP)
	if alarms := m.verify().Alarms(); len(alarms) != 1 || alarms[0].Kind != verify.Forked {
		t.Errorf("a run that is shown two logs has the alarms %v", alarms)
	}
}

// A log grows while it is looked at, and one of two instances may be behind for a moment.
func TestALogThatGrows(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	m.verify()
	old := r.storage.MustOpen(t)
	r.Write("modules/acme/vpc/aws/1.1.0/main.tf", "")
	r.offer()
	m.verify(func(o *verify.Options) { o.Update = true })

	registry, n := m.servers[host], 0
	behind := &handlers.Registry{Snapshot: r.Snapshot, Log: func() *tlog.Log { return old }}
	var mu sync.Mutex
	m.servers[host] = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%2 == 1 && strings.Contains(q.URL.Path, "/tlog/") {
			behind.ServeHTTP(w, q)
			return
		}
		if strings.Contains(q.URL.Path, "/tlog/") && n < 20 {
			leaf, err := tlog.ParseLeaf(fmt.Sprintf("offered 2026-01-01T00:00:00Z module acme/m%d/aws 1.0.0 h1:%s= zh:%064x %032x", n, strings.Repeat("A", 43), n, n))
			if err == nil {
				err = r.log.Append(t.Context(), leaf)
			}
			if err != nil {
				t.Error(err)
			}
		}
		registry.ServeHTTP(w, q)
	})
	report := m.verify(func(o *verify.Options) { o.Update = true })
	says(t, report, demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
	pins, err := verify.ReadPins(m.path(verify.PinsName))
	m.must(err)
	if head := r.log.Head(); len(pins) != 1 || pins[0].Checkpoint != head.Checkpoint || report.Logs[0].Pinned != "updated" {
		t.Errorf("the file has %+v, and the log %+v: %+v", pins, head.Checkpoint, report.Logs)
	}
}

// The file is written at the first use and for an update alone. Keys are added for an update
// alone, while a known key signs, too.
func TestWhatIsKept(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	file := func() string {
		t.Helper()
		content, err := os.ReadFile(m.path(verify.PinsName))
		m.must(err)
		return string(content)
	}
	pinned := func(want string, change ...func(*verify.Options)) verify.LogReport {
		t.Helper()
		report := m.verify(change...)
		says(t, report, demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
		if got := report.Logs[0].Pinned; got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
		return report.Logs[0]
	}
	pinned("first use")
	first := file()
	if want := "log https://registry.example.com/v1/tlog/\nhost registry.example.com\nkey " + r.storage.Public + "\n\n" + string(r.log.Head().Signed); !strings.HasSuffix(first, want) {
		t.Errorf("the file is\n%s\nand ends not with\n%s", first, want)
	}
	r.Write("modules/acme/vpc/aws/1.1.0/main.tf", "")
	r.offer()
	pinned("unchanged")
	if file() != first {
		t.Error("it is rewritten")
	}
	update := func(o *verify.Options) { o.Update = true }
	pinned("updated", update)
	pinned("unchanged", update)

	signer, public := tlogtest.NewSigner(t, tlogtest.Origin)
	plain := m.servers[host]
	m.servers[host] = signedAlso(t, r, plain, signer, public, true)
	if report := pinned("unchanged"); len(report.More) != 1 || report.More[0] != fmt.Sprintf("%08x", signer.KeyHash()) {
		t.Errorf("the keys that also sign are %v", report.More)
	}
	pinned("updated", update)
	if !strings.Contains(file(), "\nkey "+public+"\n") || !strings.Contains(file(), "\nkey "+r.storage.Public+"\n") {
		t.Errorf("the file has not both keys:\n%s", file())
	}
	if report := pinned("unchanged"); len(report.More) != 0 {
		t.Errorf("the keys that also sign are %v", report.More)
	}
	m.servers[host] = signedAlso(t, r, plain, signer, public, false)
	pinned("unchanged")
}

// Who has been told a key accepts no other one.
func TestKeysThatTheUserNames(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	_, other := tlogtest.NewSigner(t, tlogtest.Origin)
	_, elsewhere := tlogtest.NewSigner(t, "evil.example.com/v1/tlog")
	for _, test := range []struct{ rule, key, want string }{
		{"the key of the log", r.storage.Public, "ok"},
		{"another key", other, "unproven"},
		{"a key of another log", elsewhere, "unanswered"},
	} {
		report := m.verify(func(o *verify.Options) { o.Keys = []string{test.key} })
		says(t, report, demo+" 1.2.0 "+test.want, vpc+" 1.0.0 "+test.want)
	}
}

// An answer of a registry counts if it is proved.
func TestAnswersThatAreNotProved(t *testing.T) {
	for _, test := range []struct {
		rule, path string
		change     func(body string) string
		want       string
	}{
		{"an entry with another hash", "lookup/modules", func(body string) string { return strings.Replace(body, " zh:", " zh:0", 1) }, "unanswered"},
		{"an entry at another time", "lookup/modules", func(body string) string { return strings.Replace(body, "2000", "1999", 1) }, "unproven"},
		{"another number", "lookup/modules", func(body string) string { return strings.Replace(body, "index 1", "index 0", 1) }, "unproven"},
		{"the entries of another version", "lookup/modules", nil, "not on record"},
		{"no look-up", "lookup/modules", func(string) string { return "\x1b[2J" }, "unanswered"},
		{"an answer without end", "lookup/modules", func(string) string { return strings.Repeat("x", 9<<20) }, "unanswered"},
		{"no checkpoint", "checkpoint", func(string) string { return "<html>" }, "unanswered"},
		{"no key", "key", func(string) string { return "" }, "unanswered"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := full(t)
			m := newMachine(t, r)
			m.module(r, "vpc", vpc, "1.0.0")
			other := string(m.get("/v1/tlog/lookup/modules/acme/first/any/0.0.1"))
			m.servers[host] = changed(m.servers[host], func(q *http.Request, body string) string {
				if !strings.Contains(q.URL.Path, test.path) {
					return body
				}
				if test.change == nil {
					return other
				}
				again := test.change(body)
				if again == body {
					index := body[strings.Index(body, "index ")+6:]
					n, err := strconv.Atoi(index[:strings.Index(index, "\n")])
					m.must(err)
					again = strings.Replace(body, fmt.Sprintf("index %d\n", n), fmt.Sprintf("index %d\n", (n+1)%4), 1)
				}
				return again
			})
			says(t, m.verify(), vpc+" 1.0.0 "+test.want)
		})
	}
}

// signedAlso serves a log that another key signs: beside the first one, or instead of it.
func signedAlso(t *testing.T, r *registry, plain http.Handler, signer note.Signer, public string, both bool) http.Handler {
	t.Helper()
	return changed(plain, func(q *http.Request, body string) string {
		switch {
		case strings.HasSuffix(q.URL.Path, "/key"):
			return public + "\n" + r.storage.Public + "\n"
		case strings.Contains(q.URL.Path, "/tile/"):
			return body
		}
		text, first := r.log.Head().String(), string(r.log.Head().Signed)
		second, err := note.Sign(&note.Note{Text: text}, signer)
		if err != nil {
			t.Error(err)
		}
		if both {
			return strings.Replace(body, first, first+strings.TrimPrefix(string(second), text+"\n"), 1)
		}
		return strings.Replace(body, first, string(second), 1)
	})
}
