package terraformregistry_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	caddyfileBlock = regexp.MustCompile("(?ms)^```caddyfile\n(.*?)^```$")
	publishOption  = regexp.MustCompile(`(?m)^\t*publish( \{)?$`)
	logDirective   = regexp.MustCompile(`(?m)^\tlog\b`)
)

// An operator who lets others publish wants to know who did.
func TestExamplesThatPublishHaveAnAccessLog(t *testing.T) {
	names, err := filepath.Glob(filepath.FromSlash("docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range caddyfileBlock.FindAllSubmatch(text, -1) {
			if !publishOption.Match(m[1]) {
				continue
			}
			examples++
			if !logDirective.Match(m[1]) {
				t.Errorf("%s: there is no log in\n%s", name, m[1])
			}
		}
	}
	if examples == 0 {
		t.Error("no example publishes")
	}
}

// The token of CI gives the right to publish in one namespace, and no other right.
func TestTheCompanysCIHasTheLeastRight(t *testing.T) {
	text, err := os.ReadFile("packaging/compose/company.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "allow ci ") {
			rules = append(rules, line)
		}
	}
	if !slices.Equal(rules, []string{"allow ci publish acme"}) {
		t.Errorf("it has %q", rules)
	}
	if !strings.Contains(string(text), "SITE_DIRECTIVES: log") {
		t.Error("there is no log")
	}
}
