package module

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
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

// ByRoot returns the indexes of the app by the root of their tree. If several have
// the same root, since they differ in other options, a number is appended to it.
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
