package pages

import (
	"strings"
	"testing"

	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// A version is offered before its entry is in the log. Pages that were seen meanwhile have the
// entry afterwards, although there is no later snapshot.
func TestPagesHaveTheEntryOfTheirVersionOnceThereIsOne(t *testing.T) {
	files := indextest.New(t).Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	l := logOf(t)
	site := siteOf(t, snapshotOf(t, files))
	site.Registry.Log = func() *tlog.Log { return l }
	paths := []string{"/modules/acme/vpc/aws", "/modules/acme/vpc/aws/1.0.0?tab=inputs", "/providers/acme/demo/1.0.0?tab=packages"}
	for _, path := range paths {
		if strings.Contains(textIn(parse(t, site.get(path, ""))), "On record") {
			t.Errorf("%s has an entry that is not there", path)
		}
	}
	enter(t, l, "offered 2026-01-01T00:00:00Z module acme/vpc/aws 1.0.0", "offered 2026-01-01T00:00:00Z provider acme/demo 1.0.0 linux_amd64")
	for _, path := range paths {
		if !strings.Contains(textIn(parse(t, site.get(path, ""))), "On record") {
			t.Errorf("%s lacks the entry", path)
		}
	}
}

// A page says where the transparency log has its version. Visitors who can read the proof get a
// link to it.
func TestWhereAVersionIsOnRecord(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", ""))
	l := logOf(t, "found 2026-01-01T00:00:00Z module acme/vpc/aws 1.0.0", "offered 2026-01-01T00:00:00Z provider acme/demo 1.0.0 linux_amd64")
	for _, test := range []struct {
		rule, path string
		rules      []string
		says, link string
	}{
		{"a provider", "/providers/acme/demo/1.0.0", nil, "entry 1 of the log, since ", "/v1/tlog/lookup/providers/acme/demo/1.0.0"},
		{"a module from before the log", "/modules/acme/vpc/aws/1.0.0", nil, "entry 0 of the log, there when it was begun", "/v1/tlog/lookup/modules/acme/vpc/aws/1.0.0"},
		{"a version that is not in it", "/modules/acme/vpc/aws/1.1.0", nil, "", ""},
		{"a private module, in a browser that has signed in", "/modules/acme/vpc/aws/1.0.0", []string{"allow ann read acme"}, "entry 0 of the log, there when it was begun", ""},
	} {
		site := siteOf(t, snapshotOf(t, files), test.rules...)
		site.Registry.Log = func() *tlog.Log { return l }
		page := parse(t, site.get(test.path, "ann"))
		if text := textIn(page); strings.Contains(text, "On record") != (test.says != "") || !strings.Contains(text, test.says) {
			t.Errorf("%s: it says %s", test.rule, text)
		}
		link := ""
		for _, a := range elements(page, atom.A) {
			if strings.Contains(attr(a, "href"), "/tlog/") {
				link = attr(a, "href")
			}
		}
		if link != test.link {
			t.Errorf("%s: it links to %q", test.rule, link)
		}
	}
}
