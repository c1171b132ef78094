package pages

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A page that something keeps from being shown says what, and does not promise that it is
// nearly there. The log has the cause, unless it is logged elsewhere.
func TestPagesDuringAnOutage(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# a module", "README.md", "# A module"))
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("index.md", "# Demo", "guides/start.md", "# Start")
	const (
		noModule = "The package of the module cannot be read at the moment: try again in a moment."
		noDocs   = "The documentation of the release cannot be read at the moment: try again in a moment."
	)
	for _, test := range []struct {
		rule, path, user string
		heading, text    string
		logged           string // empty: nothing
	}{
		{"the page of a module", "/modules/acme/vpc/aws", "ann", "Not available at the moment", noModule, "input/output error"},
		{"a file as it is shown", "/modules/acme/vpc/aws/1.0.0/code/main.tf", "ann", "Not available at the moment", noModule, "input/output error"},
		{"a file as it is", "/modules/acme/vpc/aws/1.0.0/files/README.md", "ann", "Not available at the moment", noModule, "input/output error"},
		{"a page of documentation", "/providers/acme/demo/1.0.0/docs/guides/start", "ann", "Not available at the moment", noDocs, "input/output error"},
		{"who asks cannot be known", "/", "unknowable", "Not available at the moment", "The credentials cannot be checked at the moment: try again in a moment.", ""},
		{"the transparency log", "/_registry/log", "ann", "Not available at the moment", "The transparency log cannot be read at the moment: try again in a moment, and tell the registry's operator if it goes on.", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var faults treetest.Faults
			s := siteOf(t, scanned(t, faults.Open(files.Open)), "allow ann read *")
			s.Registry.Log = func() *tlog.Log { return nil }
			var log bytes.Buffer
			s.Logger = slog.New(slog.NewTextHandler(&log, nil))
			faults.From(1, syscall.EIO)
			w := s.get(test.path, test.user)
			page := parse(t, w)
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
			if heading := textIn(elements(page, atom.H1)[0]); heading != test.heading || !strings.Contains(textIn(page), test.text) {
				t.Errorf("got %q with\n%s\nwant %q with\n%s", heading, textIn(page), test.heading, test.text)
			}
			if logged := strings.Count(log.String(), "page failed"); logged != min(len(test.logged), 1) || !strings.Contains(log.String(), test.logged) {
				t.Errorf("the log has %q, want %q", log.String(), test.logged)
			}
		})
	}
}

// A registry that still reads its files does not fail.
func TestPagesBeforeTheFirstScan(t *testing.T) {
	s := siteOf(t, nil)
	var log bytes.Buffer
	s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w := s.get("/", "")
	if heading := textIn(elements(parse(t, w), atom.H1)[0]); w.Code != http.StatusServiceUnavailable || heading != "Almost ready" || log.Len() > 0 {
		t.Errorf("got %d %q, and the log has %q", w.Code, heading, log.String())
	}
}

// A browser that leaves while files are read is no outage.
func TestABrowserThatLeavesIsNoOutage(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# a module"))
	var faults treetest.Faults
	s := siteOf(t, scanned(t, faults.Open(files.Open)))
	var log bytes.Buffer
	s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	ctx, leave := context.WithCancel(t.Context())
	faults.When(func(int, treetest.Operation) error {
		leave()
		return syscall.EIO
	})
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/modules/acme/vpc/aws", nil)
	if w := s.do(r); w.Code != http.StatusServiceUnavailable || log.Len() > 0 {
		t.Errorf("got %d, and the log has %q", w.Code, log.String())
	}
}

// What could not be read yet is not said to be missing, to those who may see it.
func TestPagesThatLackWhatIsUnread(t *testing.T) {
	const notice = "Something cannot be read at the moment, and is missing here."
	for _, unread := range []string{"modules/acme", "modules/acme/vpc", "modules/acme/vpc/aws", "modules/acme/vpc/aws/1.0.0.zip", ""} {
		t.Run("EIO: "+unread, func(t *testing.T) {
			files := indextest.New(t)
			files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# a module"))
			files.Write("modules/other/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# a module"))
			var faults treetest.Faults
			faults.When(func(_ int, o treetest.Operation) error {
				if unread != "" && strings.HasSuffix(o.Path, unread) {
					return syscall.EIO
				}
				return nil
			})
			snapshot := scanned(t, faults.Open(files.Open))
			open := siteOf(t, snapshot)
			closed := siteOf(t, snapshot, "allow ann read *", "allow bob read other/*", "allow cem read acme/*")
			whole := unread == "" || strings.HasPrefix(unread, "modules/acme/vpc/aws")
			for _, test := range []struct {
				rule, path, user string
				site             *Site
				sees             bool // may see what is unread
				status           int  // if nothing is unread
				unread           int  // if something is
			}{
				{"the home page", "/", "", open, true, 200, 200},
				{"a list", "/browse/modules", "", open, true, 200, 200},
				{"a search", "/search?q=vpc", "", open, true, 200, 200},
				{"the list for agents", "/llms.txt", "", open, true, 200, 200},
				{"the place", "/modules/acme", "", open, true, 200, 503},
				{"a place below", "/modules/acme/vpc", "", open, true, 200, 503},
				{"the feed of the place", "/modules/acme/feed.atom", "", open, true, 200, 503},
				{"another place", "/modules/other", "", open, false, 200, 200},
				{"a place that does not exist", "/modules/none", "", open, false, 404, 404},
				{"who may read all", "/", "ann", closed, true, 200, 200},
				{"who may read something else", "/", "bob", closed, false, 200, 200},
				{"who may not read the place", "/modules/acme", "bob", closed, false, 404, 404},
				{"who may read what is unread, if its whole address is known", "/modules/acme", "cem", closed, whole, 200, 503},
			} {
				w := test.site.get(test.path, test.user)
				want := test.status
				if unread != "" && test.user == "cem" && !whole {
					want = 404
				} else if unread != "" {
					want = test.unread
				}
				if w.Code != want {
					t.Errorf("%s: the status is %d, want %d", test.rule, w.Code, want)
				}
				said := strings.Contains(w.Body.String(), notice)
				if says := unread != "" && test.sees && want == 200; said != says {
					t.Errorf("%s: it says that something is missing: %v", test.rule, said)
				}
				if unread != "" && test.sees && strings.Contains(w.Body.String(), "Nothing here yet") {
					t.Errorf("%s: it says that nothing is here", test.rule)
				}
			}
			if body := open.get("/feed.atom", "").Body.String(); strings.Contains(body, unreadNote) != (unread != "") {
				t.Errorf("the feed is\n%s", body)
			}
		})
	}
}

// A page that cannot be rendered has no other page in its place, but the log says why.
func TestAPageThatCannotBeRenderedIsLogged(t *testing.T) {
	var log bytes.Buffer
	v := visit{site: &Site{Logger: slog.New(slog.NewTextHandler(&log, nil))}, request: httptest.NewRequest("GET", "/", nil)}
	if a := v.untaggedAnswer(http.StatusOK, "absent", nil); a.status != http.StatusInternalServerError || len(a.body) > 0 || !strings.Contains(log.String(), `there is no page \"absent\"`) {
		t.Errorf("%d %s, and the log has %s", a.status, a.body, &log)
	}
}
