// Package prometheus_test evaluates the files in docs for Prometheus and Grafana.
package prometheus_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

var promQL = parser.NewParser(parser.Options{})

// document reads a file of docs.
func document(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A manual lists the metrics. Another test, where the metrics are collected, compares
// the list with the code.
type manual struct {
	text   string
	labels map[string][]string // labels by the names of metrics
}

func readManual(t *testing.T) manual {
	t.Helper()
	m := manual{document(t, "operate.md"), make(map[string][]string)}
	quoted := regexp.MustCompile("`([^`]*)`")
	for _, row := range regexp.MustCompile("(?m)^\\| `(caddy_terraform_registry_\\w+)` \\| \\w+ \\| ([^|]*) \\|").FindAllStringSubmatch(m.text, -1) {
		m.labels[row[1]] = nil
		for _, label := range quoted.FindAllStringSubmatch(row[2], -1) {
			m.labels[row[1]] = append(m.labels[row[1]], label[1])
		}
	}
	for _, caddys := range regexp.MustCompile("`((?:process|go)_\\w+)`").FindAllStringSubmatch(m.text, -1) {
		m.labels[caddys[1]] = nil
	}
	if len(m.labels) < 10 {
		t.Fatalf("operate.md has %d metrics", len(m.labels))
	}
	return m
}

// scraped are the labels that Prometheus adds to scraped series.
var scraped = []string{"job", "instance"}

// checkQuery verifies that a query can be parsed, and names only existing metrics,
// labels and values of labels.
func (m manual) checkQuery(t *testing.T, query string) {
	t.Helper()
	expr, err := promQL.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			m.checkSelector(t, query, node)
		case *parser.AggregateExpr:
			for _, selectors := range parser.ExtractSelectors(node.Expr) {
				known := append(slices.Clone(scraped), m.labels[metricOf(selectors)]...)
				for _, label := range node.Grouping {
					if !slices.Contains(known, label) {
						t.Errorf("%s: %s has no label %s", query, metricOf(selectors), label)
					}
				}
			}
		}
		return nil
	})
}

func (m manual) checkSelector(t *testing.T, query string, s *parser.VectorSelector) {
	t.Helper()
	known, exists := m.labels[s.Name]
	if !exists {
		t.Errorf("%s: there is no metric %s", query, s.Name)
	}
	for _, matcher := range s.LabelMatchers {
		switch {
		case matcher.Name == labels.MetricName:
		case !slices.Contains(append(slices.Clone(scraped), known...), matcher.Name):
			t.Errorf("%s: %s has no label %s", query, s.Name, matcher.Name)
		case strings.HasPrefix(matcher.Value, "$"), matcher.Name == "code", matcher.Value == "":
		default:
			for value := range strings.SplitSeq(matcher.Value, "|") {
				if !strings.Contains(m.text, "`"+value+"`") && !strings.Contains(document(t, "troubleshooting.md"), "`"+value+"`") {
					t.Errorf("%s: %s is not %q in the manual", query, matcher.Name, value)
				}
			}
		}
	}
}

func metricOf(matchers []*labels.Matcher) string {
	for _, m := range matchers {
		if m.Name == labels.MetricName {
			return m.Value
		}
	}
	return ""
}
