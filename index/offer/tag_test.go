package offer

import (
	"strings"
	"testing"
)

var commit = strings.Repeat("0a", 20)

// Pages link to the files of a version where the URLs of the code host are known.
func TestThePagesOfCodeHosts(t *testing.T) {
	for _, test := range []struct{ rule, source, name, page string }{
		{"GitHub", "git::https://github.com/acme/vpc.git?ref=" + commit, "github.com/acme/vpc", "https://github.com/acme/vpc/tree/" + commit},
		{"a folder", "git::https://github.com/acme/modules.git//modules/vpc?ref=" + commit, "github.com/acme/modules, modules/vpc", "https://github.com/acme/modules/tree/" + commit + "/modules/vpc"},
		{"GitLab", "git::https://gitlab.com/acme/infra/vpc.git?ref=" + commit, "gitlab.com/acme/infra/vpc", "https://gitlab.com/acme/infra/vpc/-/tree/" + commit},
		{"a GitLab of one's own, at a port", "git::https://gitlab.example.com:8443/acme/vpc", "gitlab.example.com:8443/acme/vpc", "https://gitlab.example.com:8443/acme/vpc/-/tree/" + commit},
		{"Gitea", "git::https://gitea.example.com/acme/vpc.git", "gitea.example.com/acme/vpc", "https://gitea.example.com/acme/vpc/src/commit/" + commit},
		{"Forgejo", "git::https://codeberg.org/acme/vpc//a", "codeberg.org/acme/vpc, a", "https://codeberg.org/acme/vpc/src/commit/" + commit + "/a"},
		{"Bitbucket", "git::https://bitbucket.org/acme/vpc.git//a", "bitbucket.org/acme/vpc, a", "https://bitbucket.org/acme/vpc/src/" + commit + "/a"},
		{"a Bitbucket of one's own", "git::https://bitbucket.example.com/scm/acme/vpc.git", "bitbucket.example.com/scm/acme/vpc", ""},
		{"a host that nothing is known of", "git::https://git.example.com/acme/vpc.git", "git.example.com/acme/vpc", ""},
		{"a record that someone has written", "git::javascript:alert(1)//x", "", ""},
		{"a user in it", "git::https://user:secret@github.com/acme/vpc.git", "", ""},
	} {
		tag := &Tag{Name: "v1.0.0", Commit: commit, Source: test.source}
		if name, page := tag.Repository(); name != test.name || page != test.page {
			t.Errorf("%s: got %q, %q", test.rule, name, page)
		}
	}
}
