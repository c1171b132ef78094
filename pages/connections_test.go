package pages

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/follow"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// connectedTree has a module with versions from tags, one of a host that is known and one of another.
func connectedTree(t *testing.T) *indextest.Tree {
	files, commit := indextest.New(t), strings.Repeat("0a", 20)
	for name, host := range map[string]string{"vpc": "github.com", "dns": "git.example.com"} {
		dir, content := "modules/acme/"+name+"/aws/", indextest.TarGz("main.tf", "# "+name)
		files.Write(dir+"1.0.0.tar.gz", content)
		files.Write(dir+"registry.hcl", "git {\n  url = \"https://"+host+"/acme/"+name+"\"\n}\n")
		files.Write(dir+".1.0.0.source.json", fmt.Sprintf(`{"tag":"v1.0.0","commit":%q,"source":"git::https://%s/acme/%s?ref=%s","package_sha256":"%x"}`, commit, host, name, commit, sha256.Sum256([]byte(content))))
	}
	return files
}

func TestModulesSayWhichCommitTheyAre(t *testing.T) {
	s, commit := siteOf(t, snapshotOf(t, connectedTree(t))), strings.Repeat("0a", 20)
	for path, parts := range map[string][]string{
		"/modules/acme/vpc/aws": {`href="https://github.com/acme/vpc/tree/` + commit + `"`, ">github.com/acme/vpc<", ">v1.0.0<", `title="` + commit + `"`},
		"/modules/acme/dns/aws": {"git.example.com/acme/dns<", ">v1.0.0<", `title="` + commit + `"`},
	} {
		// A page of another host may not exist.
		checkText(t, path, s.get(path, "").Body.String(), parts, []string{`href="https://git.example.com`})
	}
}

func TestATagThatHasMoved(t *testing.T) {
	files, other := connectedTree(t), strings.Repeat("1b", 20)
	record := "modules/acme/vpc/aws/.1.0.0.source.json"
	as := func(now string) *indextest.Tree {
		content := indextest.TarGz("main.tf", "# vpc")
		return files.Write(record, fmt.Sprintf(`{"tag":"v1.0.0","tag_now":%q,"commit":%q,"source":"git::https://github.com/acme/vpc?ref=1","package_sha256":"%x"}`,
			now, strings.Repeat("0a", 20), sha256.Sum256([]byte(content))))
	}
	for _, test := range []struct{ rule, now, says string }{
		{"to another commit", other, "The tag of this version has moved. In the repository, v1.0.0 is at another commit now, 1b1b1b1b…1b1b1b. This version stays as it was, at commit 0a0a0a0a…0a0a0a."},
		{"as it was deleted", "gone", "The tag of this version is gone. In the repository, v1.0.0 has been deleted. This version stays as it was, at commit 0a0a0a0a…0a0a0a."},
		{"not at all", "", ""},
	} {
		text := textIn(parse(t, siteOf(t, snapshotOf(t, as(test.now))).get("/modules/acme/vpc/aws", "")))
		if !strings.Contains(text, test.says) || strings.Contains(text, "stays as it was") != (test.says != "") {
			t.Errorf("%s: the page says %s", test.rule, text)
		}
	}
}

// The source that an operator names is left out if the link to the commit leads to it.
func TestTheSourceIsTheRepository(t *testing.T) {
	files := connectedTree(t)
	for _, test := range []struct {
		source string
		named  bool
	}{{"https://github.com/acme/vpc", false}, {"https://github.com/acme/vpc/", false}, {"https://example.com/vpc", true}} {
		files.Write("modules/acme/vpc/aws/registry.hcl", "source = \""+test.source+"\"\ngit {\n  url = \"https://github.com/acme/vpc\"\n}\n")
		text := textIn(parse(t, siteOf(t, snapshotOf(t, files)).get("/modules/acme/vpc/aws", "")))
		if named := strings.Contains(text, "Source"); named != test.named || !strings.Contains(text, "Repositorygithub.com/acme/vpc") {
			t.Errorf("%s: the page says %s", test.source, text)
		}
	}
}

// connected follows two repositories. The second one fails.
type connected struct{}

func (connected) Ready() bool { return true }

func (connected) Tell(...address.Address) {}

func (c connected) Has(a address.Address) (g registryhcl.Git, ok bool) {
	for _, one := range c.Connections() {
		if one.Module == a {
			return one.Repository, true
		}
	}
	return g, false
}

func (connected) ModulesIn(...string) []address.Address { return nil }

func (connected) Connections() []follow.Connection {
	return []follow.Connection{
		{Module: address.Address{Namespace: "acme", Name: "a", System: "aws"}, Repository: registryhcl.Git{URL: "https://github.com/acme/a", Folder: "modules/a"}, Looked: time.Date(2026, 11, 26, 9, 30, 0, 0, time.UTC)},
		{Module: address.Address{Namespace: "acme", Name: "b", System: "aws"}, Repository: registryhcl.Git{URL: "https://github.com/acme/b", FetchAll: true}, Failure: errors.New("github.com answered 401: <b>")},
	}
}

func TestTheReportHasTheStateOfRepositories(t *testing.T) {
	s := siteOf(t, snapshotOf(t, connectedTree(t)), "allow reader read *", "allow ann manage *")
	s.Registry.Follower = connected{}
	text := textIn(parse(t, s.get("/_registry/report", "ann")))
	fails, works := strings.Index(text, "acme/b/aws"), strings.Index(text, "acme/a/aws")
	if fails < 0 || works < fails {
		t.Errorf("the one that fails does not come first:\n%s", text)
	}
	checkText(t, "the report", text, []string{"https://github.com/acme/a, modules/a", "2026", "not listed yet", "github.com answered 401: <b>"}, nil)
}

// Who has just connected a module wants to see whether that works.
func TestAConnectedModuleWithoutAVersionHasAPage(t *testing.T) {
	const none, lists, fails = "No version of acme/a/aws is here yet", "Its tags were last listed on 2026-11-26", "github.com answered 401: <b>"
	s := siteOf(t, snapshotOf(t, connectedTree(t)), "allow reader read *", "allow ann read *", "allow ann manage *", "allow bob read other")
	s.Registry.Follower = connected{}
	for _, test := range []struct {
		rule, path, user string
		status           int
		has, lacks       []string
	}{
		{"for who manages everything", "/modules/acme/a/aws", "ann", 200, []string{none, "the tags {version} of https://github.com/acme/a, each of which is fetched when a client first asks for it.", lists}, nil},
		{"why its tags cannot be listed", "/modules/acme/b/aws", "ann", 200, []string{"acme/b/aws", "https://github.com/acme/b, each of which is fetched soon after it is listed.", fails}, []string{"last listed"}},
		{"a reader does not learn that", "/modules/acme/b/aws", "reader", 200, []string{"acme/b/aws", "https://github.com/acme/b"}, []string{fails}},
		{"as Markdown", "/modules/acme/b/aws?format=md", "ann", 200, []string{"acme/b/aws", "https://github.com/acme/b"}, nil},
		{"who may not read it sees nothing", "/modules/acme/a/aws", "bob", 404, nil, []string{"github.com", "yet"}},
		{"nobody is known", "/modules/acme/a/aws", "", 401, nil, []string{"github.com", "yet"}},
		{"a file of it is not there", "/modules/acme/a/aws/latest/code/main.tf", "ann", 404, nil, []string{"github.com"}},
		{"a version of it is not there", "/modules/acme/a/aws/1.0.0", "ann", 404, nil, []string{"github.com"}},
		{"a module without a repository", "/modules/acme/c/aws", "ann", 404, nil, []string{"yet"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			w := s.get(test.path, test.user)
			if w.Code != test.status {
				t.Errorf("got %d", w.Code)
			}
			checkText(t, test.path, html.UnescapeString(w.Body.String()), test.has, test.lacks)
		})
	}
}
