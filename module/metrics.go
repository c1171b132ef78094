package module

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/module/authenticate"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// The metrics of the indexes, collected at each scrape. Their labels have few values:
// the roots of the configured trees, the reasons for withholding, and the names of
// tokens that expire.
var (
	metricOffered = prometheus.NewDesc("caddy_terraform_registry_offered",
		"Versions of providers and modules that are offered to clients.", []string{"root", "kind"}, nil)
	metricWithheld = prometheus.NewDesc("caddy_terraform_registry_withheld",
		"Files that are withheld, by reason.", []string{"root", "reason"}, nil)
	metricChanged = prometheus.NewDesc("caddy_terraform_registry_bytes_changed",
		"Packages and modules that are offered with other bytes than at first.", []string{"root"}, nil)
	metricPending = prometheus.NewDesc("caddy_terraform_registry_pending",
		"Packages that have not been read yet.", []string{"root"}, nil)
	metricAge = prometheus.NewDesc("caddy_terraform_registry_index_age_seconds",
		"Time since the last scan of the tree.", []string{"root"}, nil)
	metricDuration = prometheus.NewDesc("caddy_terraform_registry_scan_duration_seconds",
		"Duration of the last scan.", []string{"root"}, nil)
	metricScans = prometheus.NewDesc("caddy_terraform_registry_scans_total",
		"Scans, by result.", []string{"root", "result"}, nil)
	metricArchives = prometheus.NewDesc("caddy_terraform_registry_archives_total",
		"Archives that scans have read, and those whose digests were in the memo.", []string{"root", "source"}, nil)
	metricBuild = prometheus.NewDesc("caddy_terraform_registry_build_info",
		"What the server was built from; always 1.", []string{"version", "caddy", "go", "commit"}, nil)
	metricKeyExpiry = prometheus.NewDesc("caddy_terraform_registry_key_expiry_days",
		"Days until the first of the offered keys expires; negative if it has expired.", []string{"root"}, nil)
	metricTokenExpiry = prometheus.NewDesc("caddy_terraform_registry_token_expiry_days",
		"Days until a token of a tokens file expires; negative if it has expired. Within 90 days of that only.", []string{"file", "name"}, nil)
)

// tokenExpiryShown is the time before and after the expiry of a token during which it
// has a metric. A file may have thousands of tokens, and each would be a series.
const tokenExpiryShown = 90 * 24 * time.Hour

// A collector collects the metrics of the live app. A configuration has its own registry of metrics, and the admin API
// and sites read that one. But the admin API has the registry of a configuration from before it is live, and keeps it
// if the configuration never becomes live because something in it fails.
type collector struct{ live func() *App } // live may return nil

// registerMetrics adds the collector to the metrics registry of a configuration, if it is not there.
func registerMetrics(ctx caddy.Context) error {
	registry := ctx.GetMetricsRegistry()
	if registry == nil {
		return nil
	}
	err := registry.Register(collector{liveApp})
	if errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		metricBuild, metricOffered, metricWithheld, metricChanged, metricPending, metricAge, metricDuration,
		metricScans, metricArchives, metricKeyExpiry, metricTokenExpiry, metricRequests, metricBytes, metricUploads,
		metricUpstream, metricUpstreamBytes, metricUpstreamSeconds, metricTlogEntries, metricTlogWaiting, metricTlogFailing,
	} {
		to <- d
	}
}

// values takes the values of metrics of one type.
type values func(d *prometheus.Desc, value float64, labels ...string)

func valuesOf(kind prometheus.ValueType, to chan<- prometheus.Metric) values {
	return func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	app := c.live()
	if app == nil {
		return
	}
	gauge, counter := valuesOf(prometheus.GaugeValue, to), valuesOf(prometheus.CounterValue, to)
	v := app.version
	gauge(metricBuild, 1, v.Registry, v.Caddy, v.Go, v.Commit)
	app.traffic.collect(counter)
	app.collectFillers(counter)
	app.collectTlogs(gauge)
	for file, entries := range app.tokens() {
		for _, e := range entries {
			if left := time.Until(e.Expires); !e.Expires.IsZero() && left.Abs() <= tokenExpiryShown {
				gauge(metricTokenExpiry, left.Hours()/24, file, e.Name)
			}
		}
	}
	for root, x := range app.ByRoot() {
		stats := x.Stats()
		counter(metricScans, float64(stats.Scans-stats.Failed), root, "success")
		counter(metricScans, float64(stats.Failed), root, "failure")
		counter(metricArchives, float64(stats.Read), root, "read")
		counter(metricArchives, float64(stats.Recalled), root, "memo")
		gauge(metricDuration, stats.LastScan.Seconds(), root)

		s := x.Snapshot()
		if s == nil {
			continue
		}
		for kind, n := range s.Totals.Offered {
			gauge(metricOffered, float64(n), root, kind)
		}
		for reason, n := range s.Totals.Withheld {
			gauge(metricWithheld, float64(n), root, string(reason))
		}
		gauge(metricChanged, float64(len(s.Changed)), root)
		gauge(metricPending, float64(s.Totals.Pending), root)
		gauge(metricAge, time.Since(s.Taken).Seconds(), root)
		if !s.KeysExpire.IsZero() {
			gauge(metricKeyExpiry, time.Until(s.KeysExpire).Hours()/24, root)
		}
	}
}

// tokens returns the tokens of all tokens files, by the path of the file.
func (a *App) tokens() map[string][]tokenfile.Entry {
	tokens := make(map[string][]tokenfile.Entry)
	for _, h := range a.handlers {
		for _, authenticator := range h.authenticators {
			if t, ok := authenticator.(*authenticate.Tokens); ok && tokens[t.TokenFile().Path()] == nil {
				tokens[t.TokenFile().Path()] = t.TokenFile().Entries()
			}
		}
	}
	return tokens
}

// traffic counts the requests of a configuration by kind and status, and the uploaded
// files, without locks or allocations.
type traffic struct {
	requests [handlers.Kinds][600]atomic.Uint64 // by status; 0: a bug has kept the request from being answered
	bytes    [handlers.Kinds]atomic.Uint64
	uploads  [publish.Kinds][handlers.UploadOutcomes]atomic.Uint64
}

func (t *traffic) count(e *handlers.Exchange) {
	t.requests[e.Kind][e.Status].Add(1)
	t.bytes[e.Kind].Add(uint64(e.Bytes))
	if u := e.Upload; u != nil {
		t.uploads[u.Kind][u.Outcome].Add(1)
	}
}

var (
	metricRequests = prometheus.NewDesc("caddy_terraform_registry_requests_total",
		"Requests to the registry, by kind and status of the answer.", []string{"kind", "code"}, nil)
	metricBytes = prometheus.NewDesc("caddy_terraform_registry_response_bytes_total",
		"Bytes of the bodies of answers, by kind of request.", []string{"kind"}, nil)
	metricUploads = prometheus.NewDesc("caddy_terraform_registry_publish_total",
		"Files that were sent to be published, by kind of file and what has come of it.", []string{"kind", "outcome"}, nil)
)

func (t *traffic) collect(counter values) {
	for kind := range handlers.Kinds {
		for status := range t.requests[kind] {
			if n := t.requests[kind][status].Load(); n > 0 && status > 0 {
				counter(metricRequests, float64(n), kind.String(), strconv.Itoa(status))
			}
		}
		if n := t.bytes[kind].Load(); n > 0 {
			counter(metricBytes, float64(n), kind.String())
		}
	}
	for kind := range publish.Kinds {
		for outcome := range handlers.UploadOutcomes {
			if n := t.uploads[kind][outcome].Load(); n > 0 {
				counter(metricUploads, float64(n), kind.String(), outcome.String())
			}
		}
	}
}

// A fillEvent identifies a counter of a filler. There are few hostnames, kinds and
// reasons.
type fillEvent struct {
	hostname string
	kind     pull.EventKind
	reason   string
}

type fillCounter struct {
	events   uint64
	bytes    int64
	duration time.Duration
}

// observe counts an event of the filler, and emits events about signatures and keys.
func (p *pooledFiller) observe(e pull.Event) {
	p.count(e)
	app := p.newest()
	switch {
	case app == nil:
	case e.Kind == pull.KeyAdded, e.Kind == pull.SignatureLost:
		app.emitUpstream(e)
	case e.Kind == pull.TagMoved:
		for _, x := range p.indexes() { // reports tell of it
			x.Changed(tree.ReportedFolder(e.Address))
		}
		app.emitTagMoved(e)
	}
}

func (p *pooledFiller) count(e pull.Event) {
	p.counting.Lock()
	defer p.counting.Unlock()
	id := fillEvent{cmp.Or(e.Hostname.ForDisplay(), "git"), e.Kind, e.Reason} // of hosted modules
	c := p.counters[id]
	if c == nil {
		c = new(fillCounter)
		p.counters[id] = c
	}
	c.events++
	c.bytes += e.Bytes
	c.duration += e.Took
}

var (
	metricUpstream = prometheus.NewDesc("caddy_terraform_registry_upstream_total",
		"Requests to upstream registries by kind of event, with the reason of a failure; empty on success.", []string{"hostname", "event", "reason"}, nil)
	metricUpstreamBytes = prometheus.NewDesc("caddy_terraform_registry_upstream_bytes_total",
		"Bytes of packages fetched from upstream registries.", []string{"hostname"}, nil)
	metricUpstreamSeconds = prometheus.NewDesc("caddy_terraform_registry_upstream_fill_seconds_total",
		"Time spent fetching packages from upstream registries.", []string{"hostname"}, nil)
)

// collectFillers adds up the counters of all fillers by hostname.
func (a *App) collectFillers(counter values) {
	sums, filled := make(map[fillEvent]uint64), make(map[string]*fillCounter)
	a.mutex.Lock()
	for _, p := range a.fillers {
		p.counting.Lock()
		for id, c := range p.counters {
			sums[id] += c.events
			if id.kind != pull.PackageFilled || id.reason != "" {
				continue
			}
			if filled[id.hostname] == nil {
				filled[id.hostname] = new(fillCounter)
			}
			filled[id.hostname].bytes += c.bytes
			filled[id.hostname].duration += c.duration
		}
		p.counting.Unlock()
	}
	a.mutex.Unlock()
	for id, n := range sums {
		counter(metricUpstream, float64(n), id.hostname, string(id.kind), id.reason)
	}
	for hostname, c := range filled {
		counter(metricUpstreamBytes, float64(c.bytes), hostname)
		counter(metricUpstreamSeconds, c.duration.Seconds(), hostname)
	}
}
