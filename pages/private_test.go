package pages

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// privateTree has one public module, and private packages that no page may mention.
func privateTree(t testing.TB) *indextest.Tree {
	t.Helper()
	files := indextest.New(t)
	files.Write("modules/open/vpc/aws/1.0.0/main.tf", `
module "a" {
  source = "registry.example.com/secret/vault/aws"
}
terraform {
  required_providers {
    hidden = {
      source = "registry.example.com/secret/hidden"
    }
  }
}
`)
	files.Write("modules/secret/vault/aws/1.0.0/main.tf", `variable "combination" {}`)
	files.Write("modules/secret/vault/aws/1.0.0/README.md", "# Vault\n\nOpens with a word.\n")
	files.Write("modules/secret/vault/aws/0.9.0/main.tf", "# old")
	files.Write("modules/secret/vault/aws/registry.hcl", "withdrawn \"0.9.0\" {\n  reason = \"The combination leaked.\"\n}\n")
	files.Provider("secret/hidden", "1.0.0", "linux_amd64")
	return files
}

var privateRules = []string{
	"allow anonymous read open", "allow reader read secret", "allow stranger read other", "allow ann read *", "allow ann manage *",
}

func TestWhoMayReadSeesIt(t *testing.T) {
	s := siteOf(t, snapshotOf(t, privateTree(t)), privateRules...)
	for path, want := range map[string]string{
		"/": "secret/vault/aws", "/browse/modules": "secret/vault/aws", "/search?q=combination": "secret/vault/aws",
		"/modules/secret/vault/aws": "Opens with a word", "/modules/secret/vault/aws/0.9.0": "The combination leaked.",
	} {
		w := s.get(path, "reader")
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: there is no %q", path, want)
		}
		if got := w.Header().Get("Cache-Control"); got != "private, no-cache" {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
	}
	if s.cache.latest.Load() != nil {
		t.Error("pages that depend on who asks are kept")
	}
}

// A dependency has a link only for visitors who can see its page.
func TestDependenciesLeadToWhatIsSeen(t *testing.T) {
	s := siteOf(t, snapshotOf(t, privateTree(t)), append(privateRules, "allow reader read open")...)
	for user, want := range map[string]bool{"": false, "stranger": false, "reader": true} {
		body := s.get("/modules/open/vpc/aws?tab=dependencies", user).Body.String()
		for _, link := range []string{`href="/modules/secret/vault/aws"`, `href="/providers/secret/hidden"`} {
			if strings.Contains(body, link) != want {
				t.Errorf("%q: that there is %s is %v", user, link, !want)
			}
		}
	}
}

func TestUnknownBrowsersAreAsked(t *testing.T) {
	some := siteOf(t, snapshotOf(t, privateTree(t)), privateRules...)
	nothing := siteOf(t, snapshotOf(t, privateTree(t)), "allow reader read *")
	public := siteOf(t, snapshotOf(t, indextest.New(t)), "allow anonymous read *", "allow ann manage *")
	for _, test := range []struct {
		name, path, user string
		site             *Site
		status           int
	}{
		{"lists show what anyone may read", "/", "", some, 200},
		{"a page of what is private", "/modules/secret/vault/aws", "", some, 401},
		{"a page of what is not there", "/modules/secret/nothing/aws", "", some, 401},
		{"a namespace that is private", "/modules/secret", "", some, 401},
		{"a namespace that is not there", "/providers/nothing", "", some, 401},
		{"a namespace for who is known and may not read it", "/modules/secret", "stranger", some, 404},
		{"a namespace for who may read it", "/modules/secret", "reader", some, 200},
		{"where anyone may read nothing", "/", "", nothing, 401},
		{"lists there", "/browse/providers", "", nothing, 401},
		{"a search there", "/search?q=vault", "", nothing, 401},
		{"a search for nothing there", "/search", "", nothing, 401},
		{"a module there", "/modules/secret/vault/aws", "", nothing, 401},
		{"a provider there", "/providers/secret/hidden/1.0.0/docs", "", nothing, 401},
		{"a search by who is known and may read nothing", "/search?q=vault", "stranger", nothing, 200},
		{"who is known and may not read it", "/modules/secret/vault/aws", "stranger", some, 404},
		{"who is known and may read it", "/modules/secret/vault/aws", "reader", some, 200},
		{"who cannot be known at the moment", "/", "unknowable", some, 503},
		{"where anyone may read everything, and there is nothing", "/", "", public, 200},
		{"a namespace that is not there, where anyone may read everything", "/providers/nothing", "", public, 404},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := test.site.get(test.path, test.user)
			if w.Code != test.status {
				t.Errorf("%d, want %d", w.Code, test.status)
			}
			if asked := w.Header().Get("WWW-Authenticate") == `Basic realm="registry"`; asked != (test.status == 401) {
				t.Errorf("WWW-Authenticate: %q", w.Header().Values("WWW-Authenticate"))
			}
			if len(elements(parse(t, w), atom.H1)) != 1 {
				t.Errorf("it is not a page: %s", w.Body)
			}
		})
	}
}

func TestSigningInLeadsBack(t *testing.T) {
	s := siteOf(t, snapshotOf(t, privateTree(t)), privateRules...)
	for _, test := range []struct{ name, path, user, to string }{
		// Browsers send credentials to the folder of the page that asked for them, so
		// the page at the root asks.
		{"to the home page", "/_registry/login", "", "/?sign-in=%2F"},
		{"the question is at the root", "/_registry/login?to=/browse/modules", "", "/?sign-in=%2Fbrowse%2Fmodules"},
		{"back to a page", "/?sign-in=/modules/open/vpc/aws%3Ftab=inputs", "reader", "/modules/open/vpc/aws?tab=inputs"},
		{"nowhere in particular", "/?sign-in=", "reader", "/"},
		{"not to another site", "/?sign-in=https://evil.example/", "reader", "/"},
		{"not without a scheme", "/?sign-in=//evil.example/modules/a/b/c", "reader", "/"},
		{"not with a backslash", `/?sign-in=/%5Cevil.example`, "reader", "/"},
		{"not with a line break", "/?sign-in=/%0d%0aSet-Cookie:x", "reader", "/"},
		{"not to what is no page", "/?sign-in=/other", "reader", "/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := s.get(test.path, test.user)
			if w.Code != http.StatusFound || w.Header().Get("Location") != test.to {
				t.Errorf("%d to %q, want %q", w.Code, w.Header().Get("Location"), test.to)
			}
		})
	}
	if w := s.get("/?sign-in=/browse/modules", ""); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("who is not known: %d, %v", w.Code, w.Header())
	}
}

func TestReportIsForOperators(t *testing.T) {
	files := privateTree(t).Write("modules/secret/stray.txt", "what is this")
	s := siteOf(t, snapshotOf(t, files), privateRules...)
	for user, want := range map[string]int{"": 401, "stranger": 404, "reader": 404, "ann": 200} {
		if w := s.get("/_registry/report", user); w.Code != want {
			t.Errorf("%q: %d, want %d", user, w.Code, want)
		}
	}
	if text := textIn(parse(t, s.get("/_registry/report", "ann"))); !strings.Contains(text, "modules/secret/stray.txt") {
		t.Errorf("the report lacks a file:\n%s", text)
	}
	if w := siteOf(t, snapshotOf(t, files)).get("/_registry/report", "ann"); w.Code != 404 {
		t.Errorf("without rules nobody is known to be an operator: %d", w.Code)
	}
}
