package module

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog/record"
)

var (
	metricTlogEntries = prometheus.NewDesc("caddy_terraform_registry_tlog_entries",
		"Entries of the transparency log, as it was signed last.", []string{"folder"}, nil)
	metricTlogWaiting = prometheus.NewDesc("caddy_terraform_registry_tlog_waiting",
		"Providers and modules with something that may have to be entered in the transparency log.", []string{"folder"}, nil)
	metricTlogFailing = prometheus.NewDesc("caddy_terraform_registry_tlog_failing",
		"Whether nothing can be added to the transparency log, by reason.", []string{"folder", "reason"}, nil)
)

// collectTlogs adds the metrics of all logs.
func (a *App) collectTlogs(gauge values) {
	a.logging.Lock()
	logs := make(map[string]*pooledTlog, len(a.logs))
	for _, t := range a.logged { // in the order of the configuration
		if p := a.logs[t.key]; p != nil {
			logs[unusedName(t.key.folder, logs)] = p
		}
	}
	a.logging.Unlock()
	for folder, p := range logs {
		if l := p.Log(); l != nil {
			gauge(metricTlogEntries, float64(l.Head().Size), folder)
		}
		state := p.State()
		gauge(metricTlogWaiting, float64(state.Waiting), folder)
		for _, reason := range []record.Trouble{record.Behind, record.Forked, record.Failed} {
			value := 0.0
			if state.Trouble == reason {
				value = 1
			}
			gauge(metricTlogFailing, value, folder, string(reason))
		}
	}
}
