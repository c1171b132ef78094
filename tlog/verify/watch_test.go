package verify_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
)

// leafAt returns a leaf of a module, with other files for each content.
func leafAt(t *testing.T, event string, version, content int) tlog.Leaf {
	t.Helper()
	l, err := tlog.ParseLeaf(fmt.Sprintf("%s 2026-01-01T00:00:00Z module acme/m/aws %d.0.0 h1:%s= zh:%064x %032x", event, version, strings.Repeat(string(rune('A'+4*content)), 43), content, version))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// enter enters versions of a module, whose contents take turns.
func (r *registry) enter(t *testing.T, from, to, contents int) {
	t.Helper()
	var all []tlog.Leaf
	for n := from; n < to; n++ {
		all = append(all, leafAt(t, "offered", n, n%contents))
	}
	if err := r.log.Append(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
}

// watched reads all new entries, as by a monitor that is started for it.
func watched(t *testing.T, m *machine) (news []string, conflicts []verify.Conflict, err error) {
	t.Helper()
	o := m.options()
	w, err := o.Watch(t.Context(), host)
	if err != nil {
		return nil, nil, err
	}
	entries, conflicts, pin, err := w.Next(t.Context())
	if err != nil {
		return nil, nil, err
	}
	m.must(verify.WritePins(m.path(verify.PinsName), []verify.Pin{pin}))
	for _, e := range entries {
		news = append(news, e.Leaf.Address.String()+" "+e.Leaf.Version)
	}
	return news, conflicts, nil
}

// A monitor tells of each entry once, and reads full bundles once.
func TestWatch(t *testing.T) {
	r := newRegistry(t)
	m := newMachine(t, r)
	r.enter(t, 0, 600, 6)
	if news, conflicts, err := watched(t, m); len(news)+len(conflicts) > 0 || err != nil {
		t.Errorf("at the first use there are %d new entries, %v, %v", len(news), conflicts, err)
	}
	r.enter(t, 600, 602, 1)
	m.requests = nil
	news, _, err := watched(t, m)
	if fmt.Sprint(news) != "[acme/m/aws 600.0.0 acme/m/aws 601.0.0]" || err != nil {
		t.Errorf("new are %v, %v", news, err)
	}
	if slices.ContainsFunc(m.requests, func(url string) bool { return strings.Contains(url, "tile/entries/000 ") }) {
		t.Errorf("what has been kept is asked for: %v", m.requests)
	}
	if news, _, err := watched(t, m); len(news) > 0 || err != nil {
		t.Errorf("they are new again: %v, %v", news, err)
	}
}

// Entries that do not make up what is signed are an alarm.
func TestWatchAlarms(t *testing.T) {
	for _, test := range []struct {
		rule   string
		change func(r *registry, m *machine)
		want   string
	}{
		{"an entry is changed", func(r *registry, m *machine) {
			m.servers[host] = changed(m.servers[host], func(q *http.Request, body string) string {
				if strings.Contains(q.URL.Path, "tile/entries") {
					return strings.Replace(body, "1.0.0", "1.0.1", 1)
				}
				return body
			})
		}, "its first 5 entries are not those that were seen before"},
		{"another log with the same key", func(r *registry, m *machine) {
			twin := newRegistryIn(t, r.storage.Twin())
			twin.enter(t, 1, 6, 1)
			m.servers[host] = served{twin}
		}, "forked"},
		{"an older one", func(r *registry, m *machine) {
			twin := newRegistryIn(t, r.storage.Twin())
			m.servers[host] = served{twin}
		}, "shrank: it had 5 entries, and has 1"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := newRegistry(t)
			m := newMachine(t, r)
			r.enter(t, 1, 5, 1)
			if _, _, err := watched(t, m); err != nil {
				t.Fatal(err)
			}
			m.cache = t.TempDir()
			test.change(r, m)
			if _, _, err := watched(t, m); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// The checkpoint of an instance that is behind is older, and its log continues the one that was
// seen.
func TestWatchAnInstanceThatIsBehind(t *testing.T) {
	r := newRegistry(t)
	m := newMachine(t, r)
	old := string(m.get("/v1/tlog/checkpoint"))
	r.enter(t, 1, 3, 1)
	if _, _, err := watched(t, m); err != nil {
		t.Fatal(err)
	}
	m.servers[host] = changed(m.servers[host], func(q *http.Request, body string) string {
		if strings.HasSuffix(q.URL.Path, "/checkpoint") {
			return old
		}
		return body
	})
	if news, conflicts, err := watched(t, m); len(news)+len(conflicts) > 0 || err != nil {
		t.Errorf("new are %v, %v, %v", news, conflicts, err)
	}
}

// Another log in the place of one that is in the cache has no conflicts with it.
func TestWatchAnotherLogThanInTheCache(t *testing.T) {
	r := newRegistry(t)
	m := newMachine(t, r)
	twin := newRegistryIn(t, r.storage.Twin())
	r.enter(t, 0, 300, 1)
	twin.enter(t, 1000, 1001, 2) // others have other numbers
	twin.enter(t, 0, 300, 2)
	if _, _, err := watched(t, m); err != nil {
		t.Fatal(err)
	}
	m.remove(verify.PinsName)
	m.servers[host] = served{twin}
	if _, conflicts, err := watched(t, m); len(conflicts) > 0 || err != nil {
		t.Errorf("it has %d conflicts, %v", len(conflicts), err)
	}
}

// The content of the cache is checked, and read again if it is damaged.
func TestWatchWithADamagedCache(t *testing.T) {
	r := newRegistry(t)
	m := newMachine(t, r)
	r.enter(t, 0, 300, 1)
	if _, _, err := watched(t, m); err != nil {
		t.Fatal(err)
	}
	changeKept(t, m, "tile/entries/000", " 7.0.0 ", " 9.0.0 ")
	if news, conflicts, err := watched(t, m); len(news)+len(conflicts) > 0 || err != nil {
		t.Errorf("new are %v, %v, %v", news, conflicts, err)
	}
}

// A part of the cache that is damaged is read again, without what it said of versions.
func TestWatchWithACacheThatIsDamagedLater(t *testing.T) {
	r := newRegistry(t)
	m := newMachine(t, r)
	r.enter(t, 0, 300, 2)
	w, err := m.options().Watch(t.Context(), host)
	m.must(err)
	if _, _, _, err := w.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.enter(t, 300, 600, 2)
	if _, _, err := watched(t, m); err != nil { // keeps the second bundle
		t.Fatal(err)
	}
	changeKept(t, m, "tile/entries/001", " 400.0.0 ", " 551.0.0 ")
	if news, conflicts, _, err := w.Next(t.Context()); len(news) != 300 || len(conflicts) > 0 || err != nil {
		t.Errorf("%d entries are new, %v, %v", len(news), conflicts, err)
	}
}

// changeKept changes an answer in the cache.
func changeKept(t *testing.T, m *machine, path, from, to string) {
	t.Helper()
	files, err := os.ReadDir(m.cache)
	m.must(err)
	for _, f := range files {
		name := m.cache + "/" + f.Name()
		content, err := os.ReadFile(name)
		m.must(err)
		var kept struct {
			URL, At string
			Time    time.Time
			Body    []byte
		}
		if json.Unmarshal(content, &kept) != nil || !strings.HasSuffix(kept.URL, path) || !bytes.Contains(kept.Body, []byte(from)) {
			continue
		}
		kept.Body = bytes.Replace(kept.Body, []byte(from), []byte(to), 1)
		content, err = json.Marshal(kept)
		m.must(err)
		m.must(os.WriteFile(name, content, 0o600))
		return
	}
	t.Fatalf("the cache has no %s with %s", path, from)
}

// A monitor that cannot reach the log says so: an older checkpoint does not mean that nothing has
// been added. It goes on when the log can be reached again.
func TestWatchWithoutANetwork(t *testing.T) {
	r := newRegistry(t)
	m := newMachine(t, r)
	w, err := m.options().Watch(t.Context(), host)
	m.must(err)
	if _, _, _, err := w.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.enter(t, 1, 2, 1)
	server := m.servers[host]
	delete(m.servers, host)
	unreachable := func(err error) {
		t.Helper()
		if _, ok := errors.AsType[*verify.UnansweredError](err); !ok || !strings.Contains(err.Error(), "no route to host") {
			t.Errorf("it says %v", err)
		}
	}
	_, _, _, err = w.Next(t.Context())
	unreachable(err)
	_, _, err = watched(t, m)
	unreachable(err)
	m.servers[host] = server
	if news, _, _, err := w.Next(t.Context()); len(news) != 1 || err != nil {
		t.Errorf("new are %v, %v", news, err)
	}
}

// Who may not read everything is told so.
func TestWatchWithoutRights(t *testing.T) {
	r := newRegistry(t)
	m := newMachine(t, r)
	m.servers[host] = except(m.servers[host], "/tile/", http.NotFound)
	if _, _, err := watched(t, m); err == nil || !strings.Contains(err.Error(), "who watches a log must be allowed to read everything") {
		t.Errorf("it says %v", err)
	}
}

// zipAt is an entry of a provider with always the same files.
func zipAt(digit, pack string) string {
	return fmt.Sprintf("offered 2000-01-01T00:00:00Z provider acme/demo 1.2.0 linux_amd64 %s zh:%s %s%s", noH1, strings.Repeat(digit, 64), pack, strings.Repeat(digit, 32))
}

// No version has two packages with other files.
func TestConflicts(t *testing.T) {
	text := func(event string, version, content int) string { return leafAt(t, event, version, content).String() }
	for _, test := range []struct {
		rule    string
		entries []string
		want    string
	}{
		{"another package later", []string{text("offered", 1, 1), text("offered", 2, 1), text("offered", 1, 2)}, "[0-2]"},
		{"after it was found", []string{text("found", 1, 1), text("offered", 1, 2)}, "[0-1]"},
		{"called the same files", []string{text("offered", 1, 1), text("repacked", 1, 2)}, "[0-1]"},
		{"the same files", []string{text("offered", 1, 1), text("repacked", 1, 1)}, "[]"},
		{"other bytes of a module, called the same files", []string{text("offered", 1, 1), strings.Replace(text("repacked", 1, 1), "zh:0", "zh:1", 1)}, "[0-1]"},
		{"other bytes of a provider, called the same files", []string{zipAt("1", ""), zipAt("2", "")}, "[0-1]"},
		{"a provider that is packed in another way", []string{zipAt("1", "pack:1 "), zipAt("2", "pack:2 ")}, "[]"},
		{"a provider's packed folder, and then a zip", []string{zipAt("1", "pack:1 "), zipAt("2", "")}, "[0-1]"},
		{"the same package of a provider twice", []string{zipAt("1", ""), zipAt("1", "")}, "[]"},
		{"a module with other files beside its own", []string{text("offered", 1, 1), strings.Replace(text("offered", 1, 1), " zh:", " "+noH1+" zh:", 1)}, "[0-1]"},
		{"a module with the files of two packages in its only entry", []string{strings.Replace(text("offered", 1, 1), " zh:", " "+noH1+" zh:", 1)}, "[0-0]"},
		{"a packed folder with other files beside its own", []string{zipAt("1", "pack:1 "), strings.Replace(zipAt("2", "pack:1 "), " zh:", " h1:B"+noH1[4:]+" zh:", 1)}, "[0-1]"},
		{"under the hostname of the registry", []string{text("offered", 1, 1), strings.Replace(text("offered", 1, 2), "acme/m", host+"/acme/m", 1)}, "[0-1]"},
		{"under the hostname of another registry", []string{text("offered", 1, 1), strings.Replace(text("offered", 1, 2), "acme/m", "other.example.com/acme/m", 1)}, "[]"},
		{"other versions, and an entry of a later release of the registry", []string{text("offered", 1, 1), "replaced in a form of its own", text("offered", 2, 2)}, "[]"},
	} {
		m := &machine{t: t, dir: t.TempDir(), cache: t.TempDir(), network: &network{servers: make(map[string]http.Handler)}}
		foeAt(m, host).Entries = test.entries
		_, conflicts, err := watched(t, m)
		got := []string{}
		for _, c := range conflicts {
			got = append(got, fmt.Sprintf("%d-%d", c.First, c.Second.Index))
		}
		if fmt.Sprint(got) != test.want || err != nil {
			t.Errorf("%s: %v, %v", test.rule, got, err)
		}
	}
}

// A monitor takes over the next key when the user says so, and goes on when the first one has ceased.
func TestWatchWhileKeysRotate(t *testing.T) {
	r := newRegistry(t)
	m := newMachine(t, r)
	if _, _, err := watched(t, m); err != nil {
		t.Fatal(err)
	}
	signer, public := tlogtest.NewSigner(t, tlogtest.Origin)
	plain := m.servers[host]
	signed := func(both bool) { m.servers[host] = signedAlso(t, r, plain, signer, public, both) }
	signed(true)
	moreKeys := func(update bool) int {
		t.Helper()
		o := m.options()
		o.Update = update
		w, err := o.Watch(t.Context(), host)
		m.must(err)
		_, _, pin, err := w.Next(t.Context())
		m.must(err)
		m.must(verify.WritePins(m.path(verify.PinsName), []verify.Pin{pin}))
		return len(w.MoreKeys())
	}
	if more := moreKeys(false); more != 1 {
		t.Errorf("it says that %d more keys sign", more)
	}
	if more := moreKeys(true); more != 0 {
		t.Errorf("after the update it says that %d more keys sign", more)
	}
	signed(false)
	r.enter(t, 1, 2, 1)
	if news, _, err := watched(t, m); len(news) != 1 || err != nil {
		t.Errorf("when the first key has ceased, it says %v, %v", news, err)
	}
}

// An update takes over the next key before it reads anything else: an instance whose first key has
// ceased to sign may give the answers that follow.
func TestUpdateTakesOverTheKeyFirst(t *testing.T) {
	signer, public := tlogtest.NewSigner(t, tlogtest.Origin)
	rotating := func(t *testing.T) (*registry, *machine) {
		t.Helper()
		r := full(t)
		m := installed(t, r)
		says(t, m.verify(), demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
		r.Write("modules/acme/vpc/aws/1.1.0/main.tf", "")
		r.offer()
		both, next := signedAlso(t, r, m.servers[host], signer, public, true), signedAlso(t, r, m.servers[host], signer, public, false)
		m.servers[host] = except(next, "/checkpoint", both.ServeHTTP)
		return r, m
	}
	r, m := rotating(t)
	report := m.verify(func(o *verify.Options) { o.Update = true })
	says(t, report, demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
	pins, err := verify.ReadPins(m.path(verify.PinsName))
	m.must(err)
	if want := []string{r.storage.Public, public}; len(pins) != 1 || !slices.Equal(pins[0].Keys, want) || len(report.Logs[0].More) > 0 {
		t.Errorf("kept is %+v, and %v also sign", pins, report.Logs[0].More)
	}
	says(t, m.verify(), demo+" 1.2.0 ok", vpc+" 1.0.0 ok")

	_, m = rotating(t)
	says(t, m.verify(), demo+" 1.2.0 unproven", vpc+" 1.0.0 unproven")
}

// A key that the registry does not tell at the moment is not taken over, and an update says so.
func TestUpdateWithoutTheKey(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	says(t, m.verify(), demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
	signer, public := tlogtest.NewSigner(t, tlogtest.Origin)
	rotates := signedAlso(t, r, m.servers[host], signer, public, true)
	m.servers[host] = except(rotates, "/key", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	update := func(o *verify.Options) { o.Update = true }
	says(t, m.verify(update), demo+" 1.2.0 unanswered", vpc+" 1.0.0 unanswered")
	o := m.options()
	o.Update = true
	if _, err := o.Watch(t.Context(), host); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a monitor says %v", err)
	}
	m.servers[host] = rotates
	says(t, m.verify(update), demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
	pins, err := verify.ReadPins(m.path(verify.PinsName))
	m.must(err)
	if len(pins) != 1 || len(pins[0].Keys) != 2 {
		t.Errorf("kept is %+v", pins)
	}
}

// No other key counts than those that the user names, also for an update.
func TestUpdateWithKeysThatTheUserNames(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	says(t, m.verify(), demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
	signer, public := tlogtest.NewSigner(t, tlogtest.Origin)
	m.servers[host] = signedAlso(t, r, m.servers[host], signer, public, true)
	report := m.verify(func(o *verify.Options) { o.Update, o.Keys = true, []string{r.storage.Public} })
	says(t, report, demo+" 1.2.0 ok", vpc+" 1.0.0 ok")
	pins, err := verify.ReadPins(m.path(verify.PinsName))
	m.must(err)
	if len(pins) != 1 || len(pins[0].Keys) != 1 || len(report.Logs[0].More) != 1 {
		t.Errorf("kept is %+v, and %v also sign", pins, report.Logs[0].More)
	}
}
