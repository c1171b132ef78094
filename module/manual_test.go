package module

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

// operateManual returns docs/operate.md.
func operateManual(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// quoted returns the code spans of a text in order, without duplicates.
func quoted(text string) (spans []string) {
	for _, match := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		spans = append(spans, match[1])
	}
	slices.Sort(spans)
	return slices.Compact(spans)
}

// The table of metrics in the manual has exactly the metrics that the app collects,
// with their labels.
func TestManualHasEveryMetric(t *testing.T) {
	documented := make(map[string]string) // labels by name
	row := regexp.MustCompile("(?m)^\\| `(caddy_terraform_registry_\\w+)` \\| (?:gauge|counter) \\| ([^|]*) \\|")
	for _, match := range row.FindAllStringSubmatch(operateManual(t), -1) {
		documented[match[1]] = strings.Join(quoted(match[2]), ",")
	}
	described := make(chan *prometheus.Desc, 100)
	collector{}.Describe(described)
	close(described)
	parts := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{(.*?)\}`)
	for d := range described {
		match := parts.FindStringSubmatch(d.String())
		if match == nil {
			t.Fatalf("%s", d)
		}
		name, labels := match[1], strings.Split(match[2], ",")
		slices.Sort(labels)
		got, exists := documented[name]
		if want := strings.Join(labels, ","); !exists || got != want {
			t.Errorf("%s has the labels %q in the manual, want %q", name, got, want)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("there is no metric %s", name)
	}
}

// The values of labels that the code enumerates are explained.
func TestManualHasEveryKindAndOutcome(t *testing.T) {
	explained := quoted(operateManual(t))
	var all []string
	for kind := range handlers.Kinds {
		all = append(all, kind.String())
	}
	for outcome := range handlers.UploadOutcomes {
		all = append(all, outcome.String())
	}
	for kind := range publish.Kinds {
		all = append(all, kind.String())
	}
	for _, value := range append(all, fieldNames[:]...) {
		if !slices.Contains(explained, value) {
			t.Errorf("%s is not explained", value)
		}
	}
}

func TestManualHasEveryEvent(t *testing.T) {
	for _, name := range []string{eventRescanned, eventWithheld, eventKeyAdded, eventSignatureLost, eventPublished} {
		if !strings.Contains(operateManual(t), "\n| `"+name+"` |") {
			t.Errorf("%s is not explained", name)
		}
	}
}

func TestManualHasEveryAdminRoute(t *testing.T) {
	for _, route := range (Admin{}).Routes() {
		if !regexp.MustCompile("(?m)^\\| `(GET|POST) " + route.Pattern + "[`?]").MatchString(operateManual(t)) {
			t.Errorf("%s is not explained", route.Pattern)
		}
	}
}
