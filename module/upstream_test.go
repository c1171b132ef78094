package module

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

func TestProvisionUpstreamsRefuses(t *testing.T) {
	tests := []struct {
		rule string
		u    Upstream
		want string
	}{
		{"no hostname", Upstream{}, "hostnames: name at least one"},
		{"an invalid hostname", Upstream{Hostnames: []string{"a..b"}}, `hostnames: "a..b" is not a hostname`},
		{"a hostname without a dot", Upstream{Hostnames: []string{"internal"}}, "internal: a tree has no folder for a hostname without a dot"},
		{"one URL for two", Upstream{Hostnames: []string{"a.example.com", "b.example.com"}, URL: "https://c.example.com"}, "url: several hostnames cannot be at one address"},
		{"a URL without TLS", Upstream{Hostnames: []string{"a.example.com"}, URL: "http://a.example.com"}, "must begin with https://"},
		{"a URL and a mirror", Upstream{Hostnames: []string{"a.example.com"}, URL: "https://a.example.com", Mirror: "https://m.example.com/"}, "leave out one of them"},
		{"a pattern with a hostname", Upstream{Hostnames: []string{"a.example.com"}, Allow: []string{"a.example.com/acme"}}, "allow: "},
		{"an invalid pattern", Upstream{Hostnames: []string{"a.example.com"}, Deny: []string{"a/b/c/d"}}, "deny: "},
		{"modules of a network mirror", Upstream{Hostnames: []string{"a.example.com"}, Mirror: "https://m.example.com/", Modules: true}, "add the URL of the module service"},
		{"modules beside a service at its own URL", Upstream{Hostnames: []string{"a.example.com"}, URL: "https://a.example.com/v1/providers/", Modules: true}, "add the URL of the module service"},
		{"a URL of modules that are not mirrored", Upstream{Hostnames: []string{"a.example.com"}, ModulesURL: "https://a.example.com/v1/modules/"}, "modules_url: modules are not mirrored"},
		{"hosts of modules that are not mirrored", Upstream{Hostnames: []string{"a.example.com"}, Hosts: []*UpstreamHost{{Name: "git.example.com"}}}, "hosts: they are for modules"},
		{"one module service for two", Upstream{Hostnames: []string{"a.example.com", "b.example.com"}, Modules: true, ModulesURL: "https://c.example.com/"}, "modules_url: several hostnames cannot have one module service"},
		{"a host's token in a request", Upstream{Hostnames: []string{"a.example.com"}, Modules: true, Hosts: []*UpstreamHost{{Name: "git.example.com", Token: "{http.request.header.X}"}}}, "hosts: token: "},
		{"an invalid repository of a host", Upstream{Hostnames: []string{"a.example.com"}, Modules: true, Hosts: []*UpstreamHost{{Name: "git.example.com", Token: "x", Allow: []string{"https://git.example.com/acme"}}}}, "hosts: allow: "},
		{"repositories of a host without credentials", Upstream{Hostnames: []string{"a.example.com"}, Modules: true, Hosts: []*UpstreamHost{{Name: "git.example.com", Allow: []string{"git.example.com/acme"}}}}, "has no credentials for them: add a token"},
		{"an invalid platform", Upstream{Hostnames: []string{"a.example.com"}, Platforms: []string{"linux"}}, "platforms: "},
		{"unknown signatures", Upstream{Hostnames: []string{"a.example.com"}, Signatures: "never"}, "signatures: "},
		{"a negative versions_ttl", Upstream{Hostnames: []string{"a.example.com"}, VersionsTTL: -1}, "must not be negative"},
		{"a placeholder of a request", Upstream{Hostnames: []string{"a.example.com"}, Token: "{http.request.header.X}"}, "token: "},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			_, err := newConfiguration(t).handle(Handler{Root: sampleTree(t), Upstreams: []*Upstream{&test.u}})
			if err == nil || !strings.Contains(err.Error(), "upstream: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one of upstream with %q", err, test.want)
			}
		})
	}
	t.Run("a hostname twice", func(t *testing.T) {
		_, err := newConfiguration(t).handle(Handler{Root: sampleTree(t), Upstreams: []*Upstream{{Hostnames: []string{"a.example.com"}}, {Hostnames: []string{"A.example.com"}}}})
		if err == nil || !strings.Contains(err.Error(), "is in two upstreams") {
			t.Errorf("got error %v", err)
		}
	})
}

func mirrored(ttl time.Duration) []*Upstream {
	return []*Upstream{{Hostnames: []string{"origin.example.com"}, VersionsTTL: caddy.Duration(ttl)}}
}

// A reload neither interrupts downloads nor discards the state of an upstream whose
// options do not change.
func TestFillersOutliveReloads(t *testing.T) {
	root := sampleTree(t)
	before := newConfiguration(t)
	a := before.mustHandle(Handler{Root: root, Upstreams: mirrored(time.Minute)})
	b := before.mustHandle(Handler{Root: root, Prefix: "/b", Upstreams: mirrored(time.Minute)})
	before.mustStart()
	after := newConfiguration(t)
	c := after.mustHandle(Handler{Root: root, Upstreams: mirrored(time.Minute)})
	d := after.mustHandle(Handler{Root: root, Prefix: "/d", Upstreams: mirrored(time.Hour)})
	after.mustStart()
	if a.registry.Upstream != b.registry.Upstream || a.registry.Upstream != c.registry.Upstream {
		t.Error("handlers with the same upstream have different fillers")
	}
	if a.registry.Upstream == d.registry.Upstream {
		t.Error("handlers with different upstreams have one filler")
	}
	filler := a.registry.Upstream.(*pooledFiller)
	if filler.newest() != after.app() {
		t.Error("the filler does not use the newer configuration")
	}
	before.cancel()
	if filler.newest() != after.app() {
		t.Error("the end of the older configuration detached the newer one")
	}
	count := func() (n int) {
		fillerPool.uses.Range(func(key, _ any) bool {
			if key.(fillerKey).source.Directories.Root == root {
				n++
			}
			return true
		})
		return n
	}
	if got := count(); got != 2 {
		t.Errorf("there are %d fillers, want 2", got)
	}
	after.cancel()
	if got := count(); got != 0 {
		t.Errorf("in the end there are %d fillers", got)
	}
	if filler.newest() != nil {
		t.Error("the filler refers to a configuration that is gone")
	}
	if _, err := filler.lock(t.Context(), "x"); err == nil {
		t.Error("it locks in a storage that is gone")
	}
}

// A fetch during which a reload replaces the filler is completed with the storage and the log of
// the new configuration.
func TestFillersGoOnForDownloadsUnderWay(t *testing.T) {
	for _, test := range []struct {
		rule     string
		tlog     *Tlog
		required bool
	}{
		{"without a log", nil, false},
		{"with a log", new(Tlog), false},
		{"with a log that is required", &Tlog{Require: true}, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			storage := t.TempDir()
			h := Handler{Root: treeToLog(t), SigningKey: &SigningKey{Off: true}, Upstreams: mirrored(time.Minute), Tlog: test.tlog, PublicURL: "https://registry.example.com"}
			if h.Tlog != nil {
				h.Tlog.Folder = t.TempDir()
			}
			vpc := address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
			await := func(p *pooledFiller, version string, timeout time.Duration) bool {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				return p.await(ctx, vpc, version, address.Platform{})
			}
			usable := func(p *pooledFiller) bool {
				_, err := p.storage()
				unlock, lockErr := p.lock(t.Context(), "x")
				if lockErr == nil {
					unlock()
				}
				return err == nil && lockErr == nil
			}

			before := liveIn(t, storage, nil, h)[0].registry.Upstream.(*pooledFiller)
			h.Upstreams = mirrored(time.Hour)
			liveIn(t, storage, nil, h)
			if !usable(before) {
				t.Error("after the reload it has no storage")
			}
			if !await(before, "1.0.0", time.Minute) {
				t.Error("after the reload a package is not handed out")
			}
			if await(before, "9.9.9", 50*time.Millisecond) == test.required {
				t.Errorf("what is not on record is handed out: %t", !test.required)
			}

			liveIn(t, storage, nil, Handler{Root: sampleTree(t), SigningKey: &SigningKey{Off: true}})
			if !usable(before) {
				t.Error("without the tree it has no storage")
			}
			if await(before, "1.0.0", time.Minute) == test.required {
				t.Errorf("without the tree a package is handed out: %t", !test.required)
			}

			if err := caddy.Stop(); err != nil {
				t.Fatal(err)
			}
			if usable(before) {
				t.Error("without a configuration it has a storage")
			}
			if await(before, "1.0.0", time.Minute) == test.required {
				t.Errorf("without a configuration a package is handed out: %t", !test.required)
			}
		})
	}
}

// A filler knows what the indexes of its tree have, and writes nothing if all of it is gone.
func TestFillersOfEmptiedTrees(t *testing.T) {
	root := sampleTree(t)
	c := newConfiguration(t)
	upstreams := mirrored(time.Minute)
	upstreams[0].Modules = true
	h := c.mustHandle(Handler{Root: root, Upstreams: upstreams})
	c.mustStart()
	snapshot(t, h)
	defer treetest.Unmount(t, root+"/modules")() // the root may be open already
	vpc := address.Address{Hostname: "origin.example.com", Namespace: "acme", Name: "vpc", System: "aws"}
	if _, err := h.registry.Upstream.(*pooledFiller).FillModule(t.Context(), vpc, "1.0.0", nil); !errors.Is(err, tree.ErrEmptied) {
		t.Errorf("got %v", err)
	}
}

// The live configuration may be about to be replaced by the one of the filler.
func TestFillersWaitForTheirConfiguration(t *testing.T) {
	root := sampleTree(t)
	live(t, Handler{Root: root, SigningKey: &SigningKey{Off: true}})
	h := newConfiguration(t).mustHandle(Handler{Root: root, Upstreams: mirrored(time.Minute)})
	p := h.registry.Upstream.(*pooledFiller)
	if p.newest() != nil || p.await(t.Context(), address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, "1.0.0", address.Platform{}) {
		t.Error("it uses a configuration that does not use it")
	}
}

// A configuration that fails does not say what has to be on record: after that, the filler follows the remaining one.
func TestFillerRequiresARecordAfterAFailedReload(t *testing.T) {
	storage := t.TempDir()
	h := Handler{
		Root: treeToLog(t), Upstreams: mirrored(time.Minute), SigningKey: &SigningKey{Off: true},
		Tlog: &Tlog{Folder: logFolder(t), Require: true}, PublicURL: "https://registry.example.com",
	}
	filler := liveIn(t, storage, nil, h)[0].registry.Upstream.(*pooledFiller)
	failing := newConfigurationIn(t, storage)
	h.Tlog = nil
	if failing.mustHandle(h).registry.Upstream != filler {
		t.Fatal("the configurations have different fillers")
	}
	failing.mustStart()
	failing.cancel()                                                                          // another app has failed to start
	liveIn(t, storage, nil, Handler{Root: sampleTree(t), SigningKey: &SigningKey{Off: true}}) // the tree is not served any more
	if filler.await(t.Context(), address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, "1.0.0", address.Platform{}) {
		t.Error("a package is handed out that nothing enters in the log")
	}
}

// After a failed reload the filler uses the remaining configuration.
func TestFillerAfterAFailedReload(t *testing.T) {
	root := sampleTree(t)
	running := newConfiguration(t)
	h := running.mustHandle(Handler{Root: root, Upstreams: mirrored(time.Minute)})
	running.mustStart()
	failed := newConfiguration(t)
	failed.mustHandle(Handler{Root: root, Upstreams: mirrored(time.Minute)})
	failed.mustStart() // and then another app failed to start
	failed.cancel()
	filler := h.registry.Upstream.(*pooledFiller)
	if filler.newest() != running.app() {
		t.Error("the filler has no configuration")
	}
	unlock, err := filler.lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// A configuration that was not started, or failed, leaves no filler behind.
func TestFillerOfAFailedConfiguration(t *testing.T) {
	root := sampleTree(t)
	c := newConfiguration(t)
	c.mustHandle(Handler{Root: root, Upstreams: mirrored(time.Minute)})
	if _, err := c.handle(Handler{Root: root, Upstreams: []*Upstream{{}}}); err == nil {
		t.Fatal("no error")
	}
	c.cancel()
	fillerPool.uses.Range(func(key, _ any) bool {
		if key.(fillerKey).source.Directories.Root == root {
			t.Error("a filler is left")
		}
		return true
	})
}

func TestUpstreamMetrics(t *testing.T) {
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: sampleTree(t), Upstreams: mirrored(time.Minute)})
	c.mustStart()
	p := h.registry.Upstream.(*pooledFiller)
	p.observe(pull.Event{Kind: pull.PackageFilled, Hostname: "origin.example.com", Bytes: 1000, Took: 2 * time.Second})
	p.observe(pull.Event{Kind: pull.PackageFilled, Hostname: "origin.example.com", Bytes: 500, Took: time.Second})
	p.observe(pull.Event{Kind: pull.PackageFilled, Hostname: "origin.example.com", Reason: "timeout"})
	got := c.gathered()
	for name, want := range map[string]float64{
		"upstream_total event=package_filled hostname=origin.example.com reason=":        2,
		"upstream_total event=package_filled hostname=origin.example.com reason=timeout": 1,
		"upstream_bytes_total hostname=origin.example.com":                               1500,
		"upstream_fill_seconds_total hostname=origin.example.com":                        3,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v, of %v", name, got[name], want, got)
		}
	}
}

// Events are emitted for new keys and for lost signatures.
func TestUpstreamEvents(t *testing.T) {
	c := newConfiguration(t)
	added, lost := c.hear(eventKeyAdded), c.hear(eventSignatureLost)
	h := c.mustHandle(Handler{Root: sampleTree(t), Upstreams: mirrored(time.Minute)})
	c.mustStart()
	p := h.registry.Upstream.(*pooledFiller)
	p.observe(pull.Event{Kind: pull.KeyAdded, Hostname: "origin.example.com", Namespace: "acme", Keys: []string{"ABCD"}})
	p.observe(pull.Event{Kind: pull.SignatureLost, Hostname: "origin.example.com", Namespace: "acme"})
	p.observe(pull.Event{Kind: pull.PackageFilled, Hostname: "origin.example.com"})
	if e := added.take(); len(e) != 1 || e[0].Data["hostname"] != "origin.example.com" || e[0].Data["namespace"] != "acme" || !slices.Equal(e[0].Data["keys"].([]string), []string{"ABCD"}) {
		t.Errorf("for a key: %v", e)
	}
	if e := lost.take(); len(e) != 1 || e[0].Data["namespace"] != "acme" {
		t.Errorf("for a signature: %v", e)
	}
	c.cancel()
	p.observe(pull.Event{Kind: pull.KeyAdded, Hostname: "origin.example.com"}) // without an app
}

// The address of a client is the one that Caddy determines.
func TestClientAddress(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if got := clientAddress(r); got != "" {
		t.Errorf("without Caddy's server: %q", got)
	}
	r = r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, map[string]any{caddyhttp.ClientIPVarKey: "192.0.2.1"}))
	if got := clientAddress(r); got != "192.0.2.1" {
		t.Errorf("got %q", got)
	}
}
