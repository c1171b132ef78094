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

	"github.com/caddy-terraform/caddy-terraform-registry/index"
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
			x := index.New(index.Options{Open: faults.Open(files.Open)})
			t.Cleanup(func() { x.Close() })
			s := siteOf(t, indextest.Rescan(t, x), "allow ann read *")
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
	x := index.New(index.Options{Open: faults.Open(files.Open)})
	t.Cleanup(func() { x.Close() })
	s := siteOf(t, indextest.Rescan(t, x))
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
