package prometheus_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// A dashboard has the fields of docs/grafana.json that the tests read.
type dashboard struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(document(t, "grafana.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// interpolated returns a query as Grafana sends it, as far as it matters for parsing.
func interpolated(query string) string {
	return strings.ReplaceAll(query, "$__rate_interval", "5m")
}

func TestDashboardQueries(t *testing.T) {
	m := readManual(t)
	d := readDashboard(t)
	for _, p := range d.Panels {
		t.Run(p.Title, func(t *testing.T) {
			if queries := len(p.Targets); (queries == 0) != (p.Type == "row") {
				t.Errorf("it has %d queries", queries)
			}
			for _, target := range p.Targets {
				m.checkQuery(t, interpolated(target.Expr))
			}
		})
	}
	labelValues := regexp.MustCompile(`"label_values\((.*), (\w+)\)"`)
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			query := labelValues.FindStringSubmatch(strings.ReplaceAll(string(v.Query), `\"`, `'`))
			if query == nil {
				t.Fatalf("%s", v.Query)
			}
			m.checkQuery(t, "sum by ("+query[2]+") ("+strings.ReplaceAll(query[1], `'`, `"`)+")")
		})
	}
}

// Every metric of the registry is on the dashboard.
func TestDashboardHasEveryMetric(t *testing.T) {
	content := document(t, "grafana.json")
	for metric := range readManual(t).labels {
		if strings.HasPrefix(metric, "caddy_") && !strings.Contains(content, metric) {
			t.Errorf("%s is not", metric)
		}
	}
}

func TestDashboardLayout(t *testing.T) {
	ids := make(map[int]bool)
	var cells [200][24]string
	for _, p := range readDashboard(t).Panels {
		if ids[p.ID] {
			t.Errorf("%s has the ID of another panel", p.Title)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.X < 0 || g.X+g.W > 24 || g.Y+g.H > len(cells) {
			t.Fatalf("%s is outside of the grid: %+v", p.Title, g)
		}
		for y := g.Y; y < g.Y+g.H; y++ {
			for x := g.X; x < g.X+g.W; x++ {
				if other := cells[y][x]; other != "" {
					t.Fatalf("%s covers %s", p.Title, other)
				}
				cells[y][x] = p.Title
			}
		}
	}
}
