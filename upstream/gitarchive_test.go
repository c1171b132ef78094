package upstream_test

import (
	"archive/tar"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// Without git, modules are fetched as archives from code hosts that have archives.
func TestGitModulesWithoutGit(t *testing.T) {
	packed := tarGz(t, entry{kind: tar.TypeXGlobalHeader, name: "pax_global_header", content: commit},
		entry{name: "vpc-1/a/main.tf", content: "# a\n"}, entry{name: "vpc-1/b/main.tf"})
	for _, test := range []struct {
		rule, source string
		path         string // the requested path
		want         []string
		kind         error
		says         string
	}{
		{"a tag on GitHub", "git::https://github.com/acme/vpc.git//a?ref=v1.0.0", "/acme/vpc/tar.gz/v1.0.0", []string{"a/main.tf: # a\n"}, nil, ""},
		{"a commit on GitHub", "git::https://github.com/acme/vpc//a?ref=" + commit, "/acme/vpc/tar.gz/" + commit, []string{"a/main.tf: # a\n"}, nil, ""},
		{"another commit", "git::https://github.com/acme/vpc?ref=" + strings.Repeat("1", 40), "/acme/vpc/tar.gz/" + strings.Repeat("1", 40), nil, upstream.ErrMalformed, "another commit"},
		{"the default branch", "git::https://github.com/acme/vpc", "/acme/vpc/tar.gz/HEAD", []string{"a/main.tf: # a\n", "b/main.tf: "}, nil, ""},
		{"a group on GitLab", "git::https://gitlab.com/acme/net/vpc.git//a?ref=v1.0.0", "/acme/net/vpc/-/archive/v1.0.0/module.tar.gz", []string{"a/main.tf: # a\n"}, nil, ""},
		{"another host", "git::https://" + codeHost + "/acme/vpc.git", "/", nil, upstream.ErrMalformed, "install git"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := &gitSite{names: []string{"codeload.github.com", "gitlab.com", codeHost}}
			s.Handle(test.path, body(packed))
			c := s.client(t, upstream.Origin{Private: []string{"codeload.github.com", "gitlab.com"}})
			t.Setenv("PATH", "")
			into := t.TempDir()
			got, err := c.FetchModule(t.Context(), gitSource(t, test.source), into)
			if test.kind != nil {
				mustFail(t, err, test.kind, test.says)
				return
			}
			if files := filesOf(t, into); err != nil || got.Commit != commit || !slices.Equal(files, test.want) {
				t.Errorf("got %v, %q, %v", got, files, err)
			}
		})
	}
}
