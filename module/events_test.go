package module

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// heard is a handler of Caddy's events that records them.
type heard struct {
	mutex  sync.Mutex
	events []caddy.Event
	fails  error
}

func (h *heard) Handle(_ context.Context, e caddy.Event) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.events = append(h.events, e)
	return h.fails
}

// take returns the events since the last call.
func (h *heard) take() []caddy.Event {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	events := h.events
	h.events = nil
	return events
}

// hear records the events of a name.
func (c *configuration) hear(name string) *heard {
	c.t.Helper()
	app, err := c.ctx.App("events")
	if err != nil {
		c.t.Fatal(err)
	}
	h := new(heard)
	if err := app.(*caddyevents.App).On(name, h); err != nil {
		c.t.Fatal(err)
	}
	return h
}

// A configuredHandler is a handler of events that a configuration names, as a plugin is.
type configuredHandler struct{}

var configuredEvents = make(chan caddy.Event, 10)

func init() { caddy.RegisterModule(configuredHandler{}) }

func (configuredHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.terraform_registry_test", New: func() caddy.Module { return new(configuredHandler) }}
}

func (configuredHandler) Handle(_ context.Context, e caddy.Event) error {
	configuredEvents <- e
	return nil
}

// archivesTree writes a tree with a provider and a module, both as archives, and
// returns its root.
func archivesTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	indextest.OnDisk(t, root).
		Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# a module\n")).
		Provider("acme/demo", "1.2.0", "linux_amd64", "darwin_arm64")
	return root
}

// rescan scans and waits for the end.
func rescan(t *testing.T, h *Handler) {
	t.Helper()
	if _, err := h.source.index.Load().Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestEvents(t *testing.T) {
	root := archivesTree(t)
	files := indextest.OnDisk(t, root)
	c := newConfiguration(t)
	rescanned, withheld := c.hear(eventRescanned), c.hear(eventWithheld)
	h := c.mustHandle(Handler{Root: root, Rescan: -1})
	c.mustStart()
	rescan(t, h)
	events := rescanned.take()
	if len(events) == 0 || events[0].Name() != eventRescanned {
		t.Fatalf("got events %v", events)
	}
	for _, e := range events {
		if e.Data["root"] != root || e.Data["offered"] != 2 || e.Data["withheld"] != 0 || e.Data["pending"] != 0 || e.Data["duration"].(float64) <= 0 {
			t.Errorf("its data are %v", e.Data)
		}
	}
	if events := withheld.take(); len(events) > 0 {
		t.Errorf("without anything withheld, got events %v", events)
	}

	const bad = "providers/acme/demo/terraform-provider-demo_1.3.0_linux_amd64.zip"
	files.Write(bad+".tmp", "not a zip") // otherwise it could be seen while it is empty
	if err := files.Fs.Rename(bad+".tmp", bad); err != nil {
		t.Fatal(err)
	}
	rescan(t, h)
	rescan(t, h)
	events = withheld.take()
	if len(events) != 1 {
		t.Fatalf("for one file that is withheld in two scans, got events %v", events)
	}
	for name, want := range map[string]any{
		"root": root, "path": bad, "address": "acme/demo", "version": "1.3.0", "reason": "bad_archive",
	} {
		if got := events[0].Data[name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if detail, _ := events[0].Data["detail"].(string); detail == "" {
		t.Error("the detail is empty")
	}
	if events := rescanned.take(); len(events) == 0 || events[len(events)-1].Data["withheld"] != 1 {
		t.Errorf("for the scans, got events %v", events)
	}
}

// Caddy may start the events app, which takes over its handlers then, after this one.
func TestEventsBeforeTheEventsAppWaitForIt(t *testing.T) {
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: archivesTree(t), Rescan: -1, SigningKey: &SigningKey{Off: true}})
	if err := c.app().Start(); err != nil {
		t.Fatal(err)
	}
	rescan(t, h)
	rescanned := c.hear(eventRescanned)
	if events := rescanned.take(); len(events) > 0 {
		t.Fatalf("before all apps have been started, got events %v", events)
	}
	app := c.app().events.app
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	app.Emit(c.ctx, "started", nil)
	eventually(t, "the events of the scans", func() bool { return len(rescanned.take()) > 0 })
	rescan(t, h)
	if len(rescanned.take()) == 0 {
		t.Error("no event of a later scan")
	}
}

// A file that is offered with other bytes than at first is an event and a metric.
func TestChangedBytesAreAnEvent(t *testing.T) {
	root := archivesTree(t)
	c := newConfiguration(t)
	changed := c.hear(eventBytesChanged)
	h := c.mustHandle(Handler{Root: root, Rescan: -1})
	c.mustStart()
	snapshot(t, h)
	series := "bytes_changed root=" + root
	if n, there := c.gathered()[series]; !there || n != 0 {
		t.Errorf("%s is %v", series, n)
	}
	const name = "providers/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip"
	indextest.OnDisk(t, root).Write(name+".tmp", indextest.Zip("terraform-provider-demo_v1.2.0", "another program"))
	if err := os.Rename(filepath.Join(root, name+".tmp"), filepath.Join(root, name)); err != nil {
		t.Fatal(err)
	}
	rescan(t, h)
	rescan(t, h)
	events := changed.take()
	if len(events) != 1 {
		t.Fatalf("got events %v", events)
	}
	data := events[0].Data
	for name, want := range map[string]any{"root": root, "path": name, "address": "acme/demo", "version": "1.2.0", "platform": "linux_amd64"} {
		if data[name] != want {
			t.Errorf("%s is %v, want %v", name, data[name], want)
		}
	}
	if was, is := data["was"].(string), data["is"].(string); !strings.HasPrefix(was, "zh:") || !strings.HasPrefix(is, "zh:") || was == is {
		t.Errorf("it was %s and is %s", was, is)
	}
	if n := c.gathered()[series]; n != 1 {
		t.Errorf("%s is %v", series, n)
	}
}

// An event handler that fails, or aborts the event, does not affect the scan.
func TestFailingEventHandler(t *testing.T) {
	root := archivesTree(t)
	c := newConfiguration(t)
	rescanned := c.hear(eventRescanned)
	rescanned.fails = errors.Join(caddy.ErrEventAborted, errors.New("nothing works"))
	h := c.mustHandle(Handler{Root: root})
	c.mustStart()
	indextest.OnDisk(t, root).Provider("acme/demo", "1.3.0", "linux_amd64")
	rescan(t, h)
	if got := len(snapshot(t, h).Report().Offered); got != 3 {
		t.Errorf("%d are offered, want 3", got)
	}
}

// An index outlives the configuration that it was created for. Only the event handlers
// of the live configuration are called.
func TestEventsOfAConfigurationThatIsGone(t *testing.T) {
	root := archivesTree(t)
	shared := Handler{Root: root, SigningKey: &SigningKey{Off: true}, Rescan: -1}
	old := newConfiguration(t)
	before := old.hear(eventRescanned)
	old.mustHandle(shared)
	old.mustStart()

	now := newConfiguration(t)
	after := now.hear(eventRescanned)
	h := now.mustHandle(shared)
	now.mustStart()
	rescan(t, h) // one at a time: no scan that the old configuration could receive is left
	old.cancel()
	before.take()
	after.take()
	rescan(t, h)
	if got := before.take(); len(got) > 0 {
		t.Errorf("the old configuration gets events %v", got)
	}
	if got := after.take(); len(got) == 0 {
		t.Error("the new configuration gets no events")
	}

	now.cancel()
	deadline, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	if _, err := h.source.index.Load().Rescan(deadline); err == nil {
		t.Error("an index without references still scans")
	}
	if got := after.take(); len(got) > 0 {
		t.Errorf("a configuration that is gone gets events %v", got)
	}
}

// A lockedBuffer can be written to and read from several goroutines.
type lockedBuffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}

// A root without a tree is logged once, with the folder that is probably meant. A root
// that is filled by upstreams is not logged.
func TestWarningOfAMisplacedRoot(t *testing.T) {
	misplaced := t.TempDir()
	indextest.OnDisk(t, misplaced).ProviderIn("data/providers/acme/demo", "demo", "1.0.0", "linux_amd64")
	for _, test := range []struct {
		rule     string
		handler  Handler
		warnings int
	}{
		{"the folder above the tree", Handler{Root: misplaced}, 1},
		{"an empty root that is filled", Handler{Root: t.TempDir(), Upstreams: mirrored(0)}, 0},
		{"a tree", Handler{Root: sampleTree(t)}, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c := newConfiguration(t)
			log := new(lockedBuffer)
			c.app().logger = slog.New(slog.NewTextHandler(log, nil))
			h := c.mustHandle(test.handler)
			c.mustStart()
			rescan(t, h)
			rescan(t, h)
			if n := strings.Count(log.String(), "level=WARN"); n != test.warnings || test.warnings > 0 && !strings.Contains(log.String(), "make its folder data the root") {
				t.Errorf("the log is\n%s", log)
			}
		})
	}
}
