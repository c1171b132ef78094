package pages

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"
	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
)

// logOf returns a log with entries. Each begins with "EVENT TIME KIND ADDRESS VERSION".
func logOf(t *testing.T, entries ...string) *tlog.Log {
	t.Helper()
	l := tlogtest.New(t).MustOpen(t)
	enter(t, l, entries...)
	return l
}

// enter adds entries to a log.
func enter(t *testing.T, l *tlog.Log, entries ...string) {
	t.Helper()
	var leaves []tlog.Leaf
	for _, text := range entries {
		if !strings.HasPrefix(text, "withdrawn") {
			text += fmt.Sprintf(" h1:%s= zh:%064x", strings.Repeat("A", 43), 1)
		}
		leaf, err := tlog.ParseLeaf(text + fmt.Sprintf(" %032x", 1))
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leaf)
	}
	if err := l.Append(t.Context(), leaves...); err != nil {
		t.Fatal(err)
	}
}

// The page of the log has the signed checkpoint, and the latest entries that its visitor may
// see.
func TestPageOfTheLog(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	files.Write("modules/acme/vpc/aws/0.9.0.tar.gz", indextest.TarGz("main.tf", ""))
	files.Write("modules/acme/vpc/aws/registry.hcl", `withdrawn "0.9.0" { reason = "It leaks." }`)
	files.Write("modules/secret/vault/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", ""))
	l := logOf(t,
		"found 2026-01-01T00:00:00Z module acme/vpc/aws 0.9.0", "found 2026-01-01T00:00:00Z module acme/vpc/aws 1.0.0",
		"offered 2026-02-01T00:00:00Z module secret/vault/aws 1.0.0", "offered 2026-03-01T00:00:00Z provider acme/demo 1.0.0 linux_amd64",
		"offered 2026-03-01T00:00:00Z provider acme/demo 1.0.0 darwin_arm64", "withdrawn 2026-04-01T00:00:00Z module acme/vpc/aws 0.9.0",
		"offered 2026-05-01T00:00:00Z module acme/gone/aws 3.0.0", "offered 2026-06-01T00:00:00Z provider registry.terraform.io/acme/other 1.0.0 linux_amd64",
	)
	const (
		other     = "7 registry.terraform.io/acme/other 1.0.0 linux_amd64 offered"
		gone      = "6 acme/gone/aws 3.0.0 offered"
		withdrawn = "5 acme/vpc/aws 0.9.0 withdrawn /modules/acme/vpc/aws/0.9.0"
		demo      = "3–4 acme/demo 1.0.0 2 platforms offered /providers/acme/demo/1.0.0"
		vault     = "2 secret/vault/aws 1.0.0 offered /modules/secret/vault/aws/1.0.0"
		newVPC    = "1 acme/vpc/aws 1.0.0 found /modules/acme/vpc/aws/1.0.0"
		oldVPC    = "0 acme/vpc/aws 0.9.0 found /modules/acme/vpc/aws/0.9.0"
	)
	all := []string{other, gone, withdrawn, demo, vault, newVPC, oldVPC}
	for _, test := range []struct {
		rule, user string
		rules      []string
		status     int
		rows       []string
		whole      bool
		proofs     int
	}{
		{"a public registry", "", nil, 200, all, true, 7},
		{"who may read everything", "ann", []string{"allow ann read *"}, 200, all, true, 0},
		{"who may read a namespace", "ann", []string{"allow ann read acme"}, 200, []string{gone, withdrawn, demo, newVPC, oldVPC}, false, 0},
		{"who may read all but something", "ann", []string{"deny ann read secret", "allow ann read *"}, 200, []string{other, gone, withdrawn, demo, newVPC, oldVPC}, false, 0},
		{"who may read nothing that is there", "ann", []string{"allow ann read nothing"}, 200, nil, false, 0},
		{"who may read nothing", "eve", []string{"allow ann read *"}, 404, nil, false, 0},
		{"a browser that has not signed in", "", []string{"allow ann read *"}, 401, nil, false, 0},
		{"a browser that has not signed in, where something is public", "", []string{"allow anonymous read acme/vpc", "allow ann read *"}, 200, []string{withdrawn, newVPC, oldVPC}, false, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			site := siteOf(t, snapshotOf(t, files), test.rules...)
			site.Registry.Log = func() *tlog.Log { return l }
			w := site.get("/_registry/log", test.user)
			if w.Code != test.status {
				t.Fatalf("got %d", w.Code)
			}
			home := site.get("/", test.user).Body.String()
			if led := strings.Contains(home, `href="/_registry/log"`); led != (test.status == 200) {
				t.Errorf("that other pages link to it is %v", led)
			}
			if w.Code != http.StatusOK {
				if strings.Contains(w.Body.String(), l.Head().Root.String()) {
					t.Error("it has the root")
				}
				return
			}
			body := w.Body.String()
			page := parse(t, w)
			for _, want := range []string{l.Head().Origin, l.Head().Root.String(), l.Public()[0].Line, "8"} {
				if !strings.Contains(textIn(page), want) && !strings.Contains(strings.ReplaceAll(body, "&#43;", "+"), want) {
					t.Errorf("it lacks %q", want)
				}
			}
			var rows []string
			proofs := 0
			for _, tr := range elements(page, atom.Tr)[min(1, len(elements(page, atom.Tr))):] {
				cells := elements(tr, atom.Td)
				row := textIn(cells[0]) + " " + textIn(elements(tr, atom.Th)[0]) + " " + textIn(cells[1])
				for _, a := range elements(tr, atom.A) {
					if href := attr(a, "href"); strings.Contains(href, "/tlog/lookup/") {
						proofs++
					} else {
						row += " " + href
					}
				}
				rows = append(rows, strings.Join(strings.Fields(row), " "))
			}
			if got, want := strings.Join(rows, "\n"), strings.Join(test.rows, "\n"); got != want {
				t.Errorf("it lists\n%s\nwant\n%s", got, want)
			}
			if proofs != test.proofs {
				t.Errorf("%d rows lead to proofs, want %d", proofs, test.proofs)
			}
			if watch := strings.Contains(body, "verify --watch registry.example.com"); watch != test.whole {
				t.Errorf("that it tells how to watch the log is %v", watch)
			}
			markdown := site.get("/_registry/log?format=md", test.user)
			if text := markdown.Body.String(); markdown.Code != http.StatusOK || !strings.Contains(text, "# Transparency log") || !strings.Contains(text, l.Head().Root.String()) {
				t.Errorf("as Markdown: %d %s", markdown.Code, text)
			}
			if text := site.get("/llms.txt", test.user).Body.String(); !strings.Contains(text, "(/_registry/log?format=md)") {
				t.Error("llms.txt does not lead to it")
			}
		})
	}
}

// The name in a request does not make the page of a mirrored address out of the page of a hosted one.
func TestEntriesOfTheLogLeadToTheirOwnAddress(t *testing.T) {
	const mirror = "mirror.example.com"
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# hosted"))
	files.Write("modules/acme/vpc/aws/2.0.0.tar.gz", indextest.TarGz("main.tf", "# hosted"))
	files.Write("modules/acme/vpc/aws/0.9.0.tar.gz", indextest.TarGz("main.tf", "# hosted"))
	files.Write("modules/acme/vpc/aws/registry.hcl", `withdrawn "0.9.0" {}`)
	files.Write("modules/"+mirror+"/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# mirrored"))
	files.ProviderIn("providers/"+mirror+"/acme/demo", "demo", "1.0.0", "linux_amd64")
	l := logOf(t,
		"offered 2026-01-01T00:00:00Z module acme/vpc/aws 2.0.0", "offered 2026-01-01T00:00:00Z module mirror.example.com/acme/vpc/aws 1.0.0",
		"offered 2026-01-01T00:00:00Z module mirror.example.com/acme/vpc/aws 2.0.0", "withdrawn 2026-01-01T00:00:00Z module mirror.example.com/acme/vpc/aws 0.9.0",
		"offered 2026-01-01T00:00:00Z provider mirror.example.com/acme/demo 1.0.0 linux_amd64",
		"offered 2026-01-01T00:00:00Z module acme/net/aws 1.0.0",
	)
	const own = "registry.example.com"
	files.Write("modules/"+own+"/acme/net/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# hosted"))
	const hosted = "/modules/acme/vpc/aws/2.0.0"
	mirrored := []string{"/registries/mirror.example.com/providers/acme/demo/1.0.0", "/registries/mirror.example.com/modules/acme/vpc/aws/1.0.0", hosted}
	for _, test := range []struct {
		rule, host string
		logNames   []svchost.Hostname
		rules      []string
		want       []string
	}{
		{"under another name", "registry.example.com", nil, []string{"allow ann read *"}, mirrored},
		{"under the same name, by which pages are of what is hosted", mirror, nil, []string{"allow ann read *"}, []string{hosted}},
		{"under the same name, which is none of the log's", mirror, nil, nil, []string{hosted}},
		{"under the same name, by which both are offered", mirror, []svchost.Hostname{mirror}, nil, mirrored},
		{"in the folder of an own name", own, nil, nil, append([]string{"/modules/acme/net/aws/1.0.0"}, mirrored...)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			site := siteOf(t, snapshotOf(t, files), test.rules...)
			site.Registry.Log, site.Registry.LogNames = func() *tlog.Log { return l }, test.logNames
			if test.host == own && test.rules == nil {
				site.Registry.Hostnames = []svchost.Hostname{own}
			}
			r := httptest.NewRequest(http.MethodGet, "/_registry/log", nil)
			r.Host = test.host
			if test.rules != nil {
				r.SetBasicAuth("ann", "")
			}
			var links []string
			for _, a := range elements(parse(t, site.do(r)), atom.A) {
				if href := attr(a, "href"); strings.HasSuffix(href, ".0") && !strings.Contains(href, "/tlog/") {
					links = append(links, href)
				}
			}
			if !slices.Equal(links, test.want) {
				t.Errorf("it leads to %q, want %q", links, test.want)
			}
		})
	}
}

// A log that grows without a new snapshot is shown as it is.
func TestPageOfTheLogIsNotKept(t *testing.T) {
	site := siteOf(t, snapshotOf(t, siteTree(t)))
	l := logOf(t)
	site.Registry.Log = func() *tlog.Log { return l }
	if text := site.get("/_registry/log", "").Body.String(); !strings.Contains(text, "The log has no entries yet.") {
		t.Errorf("an empty log: %s", text)
	}
	l = logOf(t, "offered 2026-02-01T00:00:00Z module acme/vpc/aws 1.0.0")
	if text := site.get("/_registry/log", "").Body.String(); strings.Contains(text, "The log has no entries yet.") {
		t.Error("the page is the one before")
	}
}

func TestPageOfALogThatIsNotThere(t *testing.T) {
	site := siteOf(t, snapshotOf(t, siteTree(t)))
	if w := site.get("/_registry/log", ""); w.Code != http.StatusNotFound || strings.Contains(site.get("/", "").Body.String(), "/_registry/log") {
		t.Errorf("a registry without a log: %d", w.Code)
	}
	site = siteOf(t, snapshotOf(t, siteTree(t)))
	site.Registry.Log = func() *tlog.Log { return nil }
	w := site.get("/_registry/log", "")
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "The transparency log cannot be read at the moment") {
		t.Errorf("a log that cannot be read: %d %s", w.Code, w.Body)
	}
}
