package upstream

import (
	"net/url"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// archiveOf returns the location at which a code host has the files of a commit as an
// archive, for servers without git. The archive has no submodules.
func archiveOf(s ModuleSource) (ModuleSource, error) {
	ref := s.Ref
	if ref == "" {
		ref = "HEAD"
	}
	repository := strings.TrimSuffix(strings.Trim(s.URL.Path, "/"), ".git")
	var u *url.URL
	switch {
	case bareHost(s.URL.Host) == "github.com":
		u = &url.URL{Scheme: "https", Host: "codeload.github.com", Path: "/" + repository + "/tar.gz/" + ref}
	case bareHost(s.URL.Host) == "gitlab.com":
		u = &url.URL{Scheme: "https", Host: "gitlab.com", Path: "/" + repository + "/-/archive/" + ref + "/module.tar.gz"}
	}
	if u == nil {
		return s, fail(s.URL, ErrMalformed, "the module is in a git repository: install git on the server that fetches it")
	}
	return ModuleSource{URL: u, Folder: s.Folder, InTopFolder: true, Format: "tar.gz", trust: s.trust}, nil
}

// checkCommit refuses the archive of another commit if the source has the whole ID of
// one.
func checkCommit(s ModuleSource, content ModuleContent) error {
	if s.Git && git.IsCommit(s.Ref) && !strings.EqualFold(s.Ref, content.Commit) {
		return fail(s.URL, ErrMalformed, "it sends the archive of another commit than that which the origin names")
	}
	return nil
}
