package pages

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
)

// versionMenuOf returns the links of the menu with the versions.
func versionMenuOf(t *testing.T, s *Site, path string) (links []string) {
	t.Helper()
	for _, d := range with(elements(parse(t, s.get(path, "")), atom.Details), "class", "menu") {
		links = append(links, linksIn(d)...)
	}
	return links
}

// The menu with the versions stays on the page that is shown, and leads to the version
// itself where that page is missing.
func TestTheVersionMenuStays(t *testing.T) {
	files := indextest.New(t)
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		files.Write("modules/acme/vpc/aws/"+version+"/main.tf", `variable "cidr" {}`)
	}
	for _, version := range []string{"1.1.0", "1.2.0"} {
		files.Write("modules/acme/vpc/aws/"+version+"/modules/subnets/main.tf", "#")
	}
	files.Write("modules/acme/vpc/aws/1.2.0/examples/complete/main.tf", "#")
	s := siteOf(t, snapshotOf(t, files))
	const m = "/modules/acme/vpc/aws"
	for _, test := range []struct {
		rule, path string
		want       []string
	}{
		{"on a tab", m + "?tab=inputs", []string{m + "/1.2.0?tab=inputs", m + "/1.1.0?tab=inputs", m + "/1.0.0?tab=inputs"}},
		{"on the changes", m + "?tab=changes&from=1.0.0", []string{m + "/1.2.0?tab=changes", m + "/1.1.0?tab=changes", m + "/1.0.0?tab=changes"}},
		{"on a submodule", m + "/1.2.0/submodules/subnets?tab=inputs", []string{m + "/1.2.0/submodules/subnets?tab=inputs", m + "/1.1.0/submodules/subnets?tab=inputs", m + "/1.0.0?tab=inputs"}},
		{"on an example", m + "/1.2.0/examples/complete", []string{m + "/1.2.0/examples/complete", m + "/1.1.0", m + "/1.0.0"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got := versionMenuOf(t, s, test.path)
			if !slices.Equal(got, test.want) {
				t.Errorf("it leads to %q, want %q", got, test.want)
			}
			for _, to := range got {
				if w := s.get(to, ""); w.Code != http.StatusOK {
					t.Errorf("%s: %d", to, w.Code)
				}
			}
		})
	}
	w := s.get(m+"/1.0.0/submodules/subnets", "")
	if body := w.Body.String(); w.Code != http.StatusNotFound || !strings.Contains(body, `<a class="button" href="`+m+`/latest/submodules/subnets">modules/subnets in 1.2.0</a><a class="button" href="`+m+`/1.0.0">`) {
		t.Errorf("a submodule that a version lacks: %d\n%s", w.Code, body)
	}
}

// Versions before and after one that does not exist.
func TestNeighboursOfAVersion(t *testing.T) {
	offered := []string{"2.0.0-rc.1", "1.4.0", "1.3.0", "1.2.0"}
	for version, want := range map[string][]string{
		"3.0.0": {"2.0.0-rc.1"}, "2.0.0": {"2.0.0-rc.1"}, "1.3.5": {"1.4.0", "1.3.0"}, "0.1.0": {"1.2.0"},
	} {
		if got := neighbours(version, offered); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
	if got := neighbours("1.0.0", nil); len(got) > 0 {
		t.Errorf("of nothing: %q", got)
	}
}

// The version of a module in Git is in its source.
func TestRefsOfSources(t *testing.T) {
	for source, want := range map[string]string{
		"git::https://git.example.com/vpc.git?ref=v1.2.3":                  "v1.2.3",
		"git::https://git.example.com/vpc.git//modules/a?depth=1&ref=main": "main",
		"github.com/acme/vpc": "", "./modules/a": "", "acme/vpc/aws": "", "git::https://x.example.com/a.git?ref=%zz": "",
	} {
		if got := refOf(source); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

// What could be read of two versions is compared, without a verdict.
func TestChangesOfWhatCouldBeRead(t *testing.T) {
	for _, test := range []struct{ rule, broken string }{
		{"a file of the root cannot be parsed", "broken.tf"},
		{"a file of a submodule cannot be parsed", "modules/a/main.tf"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t).
				Write("modules/acme/vpc/aws/1.0.0/main.tf", "variable \"cidr\" {}\nvariable \"old\" {}\n").
				Write("modules/acme/vpc/aws/1.0.0/modules/a/main.tf", "variable \"old\" {}\n").
				Write("modules/acme/vpc/aws/1.1.0/main.tf", "variable \"cidr\" {}\nvariable \"new\" {}\n").
				Write("modules/acme/vpc/aws/1.1.0/modules/a/main.tf", "variable \"old\" {}\n").
				Write("modules/acme/vpc/aws/1.1.0/"+test.broken, "variable \"old\" {\n")
			main := mainOf(t, siteOf(t, snapshotOf(t, files)).get("/modules/acme/vpc/aws?tab=changes", ""))
			checkText(t, "changes", main, []string{"Parts of these versions could not be read.", "input new"}, []string{"calls for a new major version"})
		})
	}
}

// A mirror may get many releases a day. They do not push out the registry's own.
func TestOwnReleasesComeFirst(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "#")
	for _, name := range strings.Fields("a b c d e f g h i j k l") {
		path := "modules/registry.terraform.io/acme/" + name + "/aws/1.0.0/main.tf"
		setTime(t, files.Write(path, "#"), path, indextest.Born.Add(30*24*time.Hour))
	}
	s := siteOf(t, snapshotOf(t, files))
	newest := textsOf(with(elements(parse(t, s.get("/", "")), atom.A), "class", "name"))
	if len(newest) != maxNewest || newest[0] != "acme/vpc/aws" {
		t.Errorf("the newest are %q", newest)
	}
}

// A line of a name ends after a slash or an underscore, and a name stays text.
func TestNamesBreakBetweenTheirParts(t *testing.T) {
	for name, want := range map[string]string{
		"registry.terraform.io/hashicorp/aws": "registry.terraform.io/<wbr>hashicorp/<wbr>aws",
		"aws_iam_policy":                      "aws_<wbr>iam_<wbr>policy",
		"<a_b>":                               "&lt;a_<wbr>b&gt;",
	} {
		if got := string(breakable(name)); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A release can be locked with the hashes of all its packages, under the address that clients use.
func TestTheBlockOfALockFileIsOnThePage(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	checkText(t, "packages", mainOf(t, s.get("/providers/acme/demo?tab=packages", "")), []string{`provider "registry.example.com/acme/demo" {`, `"h1:`, `"zh:`}, nil)
}

// An origin has everything of a hostname. Whatever else is asked of it is a mistake.
type origin struct {
	pull.Upstream
	hostname svchost.Hostname
}

func (o origin) Mirrors(a address.Address) bool { return a.Hostname == o.hostname }

// Pages fetch nothing, and say how what is not here comes here.
func TestPagesFetchNothing(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	s.Registry.Upstream = origin{hostname: "registry.terraform.io"}
	const here = "/registries/registry.terraform.io/modules/acme/tags/null"
	for path, want := range map[string]bool{
		here + "/9.9.9": true,
		"/registries/registry.terraform.io/modules/acme/absent/null":          true,
		"/registries/registry.terraform.io/modules/acme/absent/null/1.0.0":    true,
		"/registries/registry.terraform.io/providers/acme/absent":             true,
		"/registries/registry.terraform.io/providers/acme/absent/feed.atom":   true,
		"/registries/registry.terraform.io/providers/hashicorp/null/9.9.9":    true,
		"/registries/registry.terraform.io/modules/acme/absent/null?tab=code": true,
		here + "?tab=nothing":                      false,
		here + "/latest/files/nothing":             false,
		"/registries/registry.terraform.io/nobody": false,
		"/modules/acme/vpc/aws/9.9.9":              false,
		"/modules/acme/absent/aws":                 false,
	} {
		w := s.get(path, "")
		if says := strings.Contains(w.Body.String(), fetchedLater); w.Code != http.StatusNotFound || says != want {
			t.Errorf("%s: %d, and it says that it is fetched: %t", path, w.Code, says)
		}
	}
}
