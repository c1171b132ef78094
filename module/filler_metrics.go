package module

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

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
