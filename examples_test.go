package terraformregistry_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile" // the adapter
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"       // of the packages
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
		for _, m := range caddyfileBlock.FindAllStringSubmatch(read(t, name), -1) {
			if !publishOption.MatchString(m[1]) {
				continue
			}
			examples++
			if !logDirective.MatchString(m[1]) {
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
	text := read(t, "packaging/compose/company.yaml")
	var rules []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "allow ci ") {
			rules = append(rules, line)
		}
	}
	if !slices.Equal(rules, []string{"allow ci publish acme"}) {
		t.Errorf("it has %q", rules)
	}
	if !strings.Contains(text, "SITE_DIRECTIVES: log") {
		t.Error("there is no log")
	}
}

// A Caddyfile has global options once, and first. The site of docs/start.md takes the place of the
// one in the packages' Caddyfile, whose options stay.
func TestStartReplacesTheSiteOfThePackages(t *testing.T) {
	options, _, found := strings.Cut(read(t, "packaging/Caddyfile"), "\nlocalhost {\n")
	if !found {
		t.Fatal("packaging/Caddyfile has no site localhost")
	}
	sites := caddyfileBlock.FindAllStringSubmatch(read(t, "docs/start.md"), -1)
	if len(sites) != 1 {
		t.Fatalf("docs/start.md has %d Caddyfiles", len(sites))
	}
	adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(options+"\n"+sites[0][1]), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		t.Errorf("warning: %s", w)
	}
	for _, part := range []string{"unix//run/caddy-terraform-registry/admin.sock", `"registry.example.com"`, `"protocols":["h1"]`} {
		if !strings.Contains(string(adapted), part) {
			t.Errorf("it has no %s:\n%s", part, adapted)
		}
	}
}
