package module

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// gathered are the values of the registry's metrics, by name and labels in
// order.
func (c *configuration) gathered() map[string]float64 {
	c.t.Helper()
	families, err := c.ctx.GetMetricsRegistry().Gather()
	if err != nil {
		c.t.Fatal(err) // a pedantic registry complains of doubles and of disorder
	}
	values := make(map[string]float64)
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "caddy_terraform_registry_")
		if !ours {
			continue
		}
		if family.GetHelp() == "" {
			c.t.Errorf("%s has no help", name)
		}
		for _, m := range family.GetMetric() {
			series := name
			for _, label := range m.GetLabel() {
				series += " " + label.GetName() + "=" + label.GetValue()
			}
			switch {
			case m.GetGauge() != nil:
				values[series] = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				values[series] = m.GetCounter().GetValue()
			}
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	root := archivesTree(t)
	tree := indextest.OnDisk(t, root)
	life := 365 * 24 * time.Hour
	expiring := indextest.NewExpiringPublisher(t, life, time.Hour)
	tree.Keys("acme", expiring, indextest.NewPublisher(t))
	tree.Provider("acme/signed", "1.0.0", "linux_amd64").Signed(expiring)
	tree.Write("providers/acme/demo/terraform-provider-demo_1.3.0_linux_amd64.zip", "not a zip")
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: root, Rescan: -1})
	c.mustHandle(Handler{Root: root, Rescan: -1}) // a second one on the same tree counts nothing twice
	c.mustStart()
	snapshot(t, h)
	rescan(t, h)

	values := c.gathered()
	for series, want := range map[string]float64{
		"offered kind=provider root=" + root:       2,
		"offered kind=module root=" + root:         1,
		"withheld reason=bad_archive root=" + root: 1,
		"pending root=" + root:                     0,
		"scans_total result=failure root=" + root:  0,
	} {
		if got, there := values[series]; !there || got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	for series, atLeast := range map[string]float64{
		"scans_total result=success root=" + root:      2,
		"archives_total root=" + root + " source=read": 5,
		"index_age_seconds root=" + root:               0,
		"scan_duration_seconds root=" + root:           0,
	} {
		if got, there := values[series]; !there || got < atLeast {
			t.Errorf("%s is %v, want %v or more", series, got, atLeast)
		}
	}
	want := time.Until(indextest.Born.Add(life)).Hours() / 24
	if got := values["key_expiry_days root="+root]; got < want-1 || got > want+1 {
		t.Errorf("the first key expires in %v days, want %v", got, want)
	}

	t.Run("counters go on over a reload", func(t *testing.T) {
		next := newConfigurationIn(t, c.storage)
		next.mustHandle(Handler{Root: root, Rescan: -1})
		next.mustStart()
		c.cancel()
		series := "archives_total root=" + root + " source=read"
		if got := next.gathered()[series]; got < values[series] {
			t.Errorf("%s is %v, was %v", series, got, values[series])
		}
	})
}

// Indexes of one root that judge differently are told apart.
func TestMetricsOfOneRootTwice(t *testing.T) {
	root := archivesTree(t)
	c := newConfiguration(t)
	c.mustHandle(Handler{Root: root})
	strict := c.mustHandle(Handler{Root: root, Signatures: RequireSignatures})
	c.mustStart()
	snapshot(t, strict)
	var roots []string
	for series := range c.gathered() {
		if name, labels, _ := strings.Cut(series, " "); name == "scan_duration_seconds" {
			roots = append(roots, labels)
		}
	}
	if len(roots) != 2 {
		t.Errorf("they are %v", roots)
	}
}

// What a scrape finds before there is anything to tell is no error.
func TestMetricsBeforeTheStart(t *testing.T) {
	c := newConfiguration(t)
	c.mustHandle(Handler{Root: archivesTree(t)})
	if values := c.gathered(); len(values) > 0 {
		for series := range values {
			if strings.HasPrefix(series, "offered") {
				t.Errorf("%s is told", series)
			}
		}
	}
}

func TestMetricsAreDescribed(t *testing.T) {
	described := make(chan *prometheus.Desc, 100)
	collector{newConfiguration(t).app()}.Describe(described)
	close(described)
	seen := make(map[string]bool)
	for d := range described {
		if seen[d.String()] {
			t.Errorf("%s is described twice", d)
		}
		seen[d.String()] = true
	}
	if len(seen) < 8 {
		t.Errorf("only %d metrics are described", len(seen))
	}
}
