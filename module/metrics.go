package module

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// The metrics of the indexes, read from them when Prometheus asks. Their labels
// have few values: one root for each tree that is configured, and the reasons
// there are for withholding something.
var (
	metricOffered = prometheus.NewDesc("caddy_terraform_registry_offered",
		"Versions of providers and modules that clients are offered.", []string{"root", "kind"}, nil)
	metricWithheld = prometheus.NewDesc("caddy_terraform_registry_withheld",
		"Files that are withheld, by reason.", []string{"root", "reason"}, nil)
	metricPending = prometheus.NewDesc("caddy_terraform_registry_pending",
		"Packages that have not been read yet.", []string{"root"}, nil)
	metricAge = prometheus.NewDesc("caddy_terraform_registry_index_age_seconds",
		"Time since the tree was last looked at.", []string{"root"}, nil)
	metricDuration = prometheus.NewDesc("caddy_terraform_registry_scan_duration_seconds",
		"How long the last scan took.", []string{"root"}, nil)
	metricScans = prometheus.NewDesc("caddy_terraform_registry_scans_total",
		"Scans, by result.", []string{"root", "result"}, nil)
	metricArchives = prometheus.NewDesc("caddy_terraform_registry_archives_total",
		"Archives that scans have read, and those whose digests they knew.", []string{"root", "source"}, nil)
	metricKeyExpiry = prometheus.NewDesc("caddy_terraform_registry_key_expiry_days",
		"Days until the first of the keys that clients are given expires; negative since it has.", []string{"root"}, nil)
)

// A collector has Prometheus read the indexes an app holds.
type collector struct{ app *App }

// registerMetrics adds the collector to the configuration's registry, which is
// a new one with each configuration.
func (a *App) registerMetrics() error {
	registry := a.ctx.GetMetricsRegistry()
	if registry == nil {
		return nil
	}
	if err := registry.Register(collector{a}); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		metricOffered, metricWithheld, metricPending, metricAge, metricDuration,
		metricScans, metricArchives, metricKeyExpiry, metricRequests, metricBytes,
		metricUpstream, metricUpstreamBytes, metricUpstreamSeconds,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	c.app.traffic.collect(to)
	c.app.collectFillers(to)
	for root, x := range c.app.ByRoot() {
		stats := x.Stats()
		counter(metricScans, stats.Scans-stats.Failed, root, "success")
		counter(metricScans, stats.Failed, root, "failure")
		counter(metricArchives, stats.Read, root, "read")
		counter(metricArchives, stats.Recalled, root, "memo")
		gauge(metricDuration, stats.LastScan.Seconds(), root)

		s := x.Snapshot()
		if s == nil {
			continue
		}
		offered, withheld := counts(s.Report)
		for kind, n := range offered {
			gauge(metricOffered, float64(n), root, kind)
		}
		for reason, n := range withheld {
			gauge(metricWithheld, float64(n), root, string(reason))
		}
		gauge(metricPending, float64(s.Report.Pending), root)
		gauge(metricAge, time.Since(s.Taken).Seconds(), root)
		if !s.KeysExpire.IsZero() {
			gauge(metricKeyExpiry, time.Until(s.KeysExpire).Hours()/24, root)
		}
	}
}

func counts(r *index.Report) (offered map[string]int, withheld map[index.Reason]int) {
	offered = map[string]int{index.KindProvider: 0, index.KindModule: 0}
	for _, o := range r.Offered {
		offered[o.Kind]++
	}
	withheld = make(map[index.Reason]int)
	for _, p := range r.Withheld {
		withheld[p.Reason]++
	}
	return offered, withheld
}

// ByRoot are the indexes the app holds. Several of one root, which differ in
// how they judge, are told apart by a number.
func (a *App) ByRoot() map[string]*index.Index {
	a.holding.Lock()
	defer a.holding.Unlock()
	found := make(map[string]*index.Index, len(a.held))
	for _, key := range slices.SortedFunc(maps.Keys(a.held), poolKey.compare) {
		root := key.directories.Root
		for n := 2; found[root] != nil; n++ {
			root = fmt.Sprintf("%s#%d", key.directories.Root, n)
		}
		found[root] = a.held[key].Index
	}
	return found
}

// traffic counts the requests of a configuration, by kind and status, without
// a lock or an allocation on their way.
type traffic struct {
	requests [handlers.Kinds][len(statuses)]atomic.Uint64
	bytes    [handlers.Kinds]atomic.Uint64
}

// statuses are all the registry answers with.
var statuses = [...]int{
	http.StatusOK, http.StatusNoContent, http.StatusPartialContent, http.StatusNotModified,
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
	http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable,
	http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

func (t *traffic) count(e *handlers.Exchange) {
	for i, status := range statuses {
		if status == e.Status {
			t.requests[e.Kind][i].Add(1)
			break
		}
	}
	t.bytes[e.Kind].Add(uint64(e.Bytes))
}

var (
	metricRequests = prometheus.NewDesc("caddy_terraform_registry_requests_total",
		"Requests to the registry, by what they ask for and the status of the answer.", []string{"kind", "code"}, nil)
	metricBytes = prometheus.NewDesc("caddy_terraform_registry_response_bytes_total",
		"Bytes of the bodies of answers, by what they answer.", []string{"kind"}, nil)
)

func (t *traffic) collect(to chan<- prometheus.Metric) {
	for kind := range handlers.Kinds {
		for i, status := range statuses {
			if n := t.requests[kind][i].Load(); n > 0 {
				to <- prometheus.MustNewConstMetric(metricRequests, prometheus.CounterValue, float64(n), kind.String(), strconv.Itoa(status))
			}
		}
		if n := t.bytes[kind].Load(); n > 0 {
			to <- prometheus.MustNewConstMetric(metricBytes, prometheus.CounterValue, float64(n), kind.String())
		}
	}
}

// answered counts a request and says in its access log, and to whatever else
// looks at the request, what it was about.
func (h *Handler) answered(r *http.Request, e *handlers.Exchange) {
	h.traffic.count(e)
	if extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Add(zap.Object("terraform_registry", loggable{e}))
	}
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Map(func(key string) (any, bool) { return placeholder(e, key) })
	}
}

// loggable writes an exchange to a log, if it is written at all.
type loggable struct{ *handlers.Exchange }

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (l loggable) MarshalLogObject(to zapcore.ObjectEncoder) error {
	to.AddString("kind", l.Kind.String())
	for _, field := range []struct{ name, value string }{
		{"address", l.Address()},
		{"version", l.Version},
		{"platform", l.Platform},
	} {
		if field.value != "" {
			to.AddString(field.name, field.value)
		}
	}
	return nil
}

func placeholder(e *handlers.Exchange, key string) (any, bool) {
	switch key {
	case "http.terraform_registry.kind":
		return e.Kind.String(), true
	case "http.terraform_registry.address":
		return e.Address(), true
	case "http.terraform_registry.version":
		return e.Version, true
	case "http.terraform_registry.platform":
		return e.Platform, true
	}
	return nil, false
}

// A fillCount is what is counted of a filler: few hostnames, few kinds of
// events, few reasons.
type fillCount struct {
	hostname string
	kind     fill.EventKind
	reason   string
}

type fillCounter struct {
	times uint64
	bytes int64
	took  time.Duration
}

// observe counts what the filler has done, and tells of what an operator should
// know.
func (p *pooledFiller) observe(e fill.Event) {
	p.count(e)
	if e.Kind != fill.KeyAdded && e.Kind != fill.SignatureLost {
		return
	}
	if app := p.newest(); app != nil {
		app.emitUpstream(e)
	}
}

func (p *pooledFiller) count(e fill.Event) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	of := fillCount{e.Hostname.ForDisplay(), e.Kind, e.Reason}
	c := p.counters[of]
	if c == nil {
		c = new(fillCounter)
		p.counters[of] = c
	}
	c.times++
	c.bytes += e.Bytes
	c.took += e.Took
}

var (
	metricUpstream = prometheus.NewDesc("caddy_terraform_registry_upstream_total",
		"What has been asked of the registries that are mirrored, and how it failed; without a reason it did not.", []string{"hostname", "event", "reason"}, nil)
	metricUpstreamBytes = prometheus.NewDesc("caddy_terraform_registry_upstream_bytes_total",
		"Bytes of packages that have come in.", []string{"hostname"}, nil)
	metricUpstreamSeconds = prometheus.NewDesc("caddy_terraform_registry_upstream_fill_seconds_total",
		"Time that packages took to come in.", []string{"hostname"}, nil)
)

// collectFillers adds up fillers that are of the same hostname.
func (a *App) collectFillers(to chan<- prometheus.Metric) {
	sums, filled := make(map[fillCount]uint64), make(map[string]*fillCounter)
	a.holding.Lock()
	for _, p := range a.filling {
		p.mutex.Lock()
		for of, c := range p.counters {
			sums[of] += c.times
			if of.kind != fill.PackageFilled || of.reason != "" {
				continue
			}
			if filled[of.hostname] == nil {
				filled[of.hostname] = new(fillCounter)
			}
			filled[of.hostname].bytes += c.bytes
			filled[of.hostname].took += c.took
		}
		p.mutex.Unlock()
	}
	a.holding.Unlock()
	for of, n := range sums {
		to <- prometheus.MustNewConstMetric(metricUpstream, prometheus.CounterValue, float64(n), of.hostname, string(of.kind), of.reason)
	}
	for hostname, c := range filled {
		to <- prometheus.MustNewConstMetric(metricUpstreamBytes, prometheus.CounterValue, float64(c.bytes), hostname)
		to <- prometheus.MustNewConstMetric(metricUpstreamSeconds, prometheus.CounterValue, c.took.Seconds(), hostname)
	}
}
