package offer

import (
	"net/url"
	"strings"
)

// browsing has the path between a repository and a commit in the pages of a code host.
var browsing = map[string]string{
	"github":    "/tree/",
	"gitlab":    "/-/tree/",
	"gitea":     "/src/commit/",
	"forgejo":   "/src/commit/",
	"codeberg":  "/src/commit/",
	"bitbucket": "/src/",
}

// browsingOf returns the path for a host: a public one, or a company's own that is named after its
// software. A Bitbucket of one's own has other pages than bitbucket.org. Empty: they are not known.
func browsingOf(host string) string {
	software, domain, _ := strings.Cut(host, ".")
	if software == "bitbucket" && domain != "org" {
		return ""
	}
	return browsing[software]
}

// Repository returns the name of the repository for people, such as github.com/acme/vpc, with the
// folder of the module after it; and the page of the code host with the files of the version. The page
// is empty if its URL is not known.
func (t *Tag) Repository() (name, page string) {
	text, _, _ := strings.Cut(strings.TrimPrefix(t.Source, "git::"), "?")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", ""
	}
	repository, folder, _ := strings.Cut(u.EscapedPath(), "//")
	repository = strings.TrimSuffix(repository, ".git")
	name, page = u.Host+repository, "https://"+u.Host+repository
	if between := browsingOf(u.Host); between != "" {
		page += between + t.Commit
		if folder != "" {
			page += "/" + folder
		}
	} else {
		page = ""
	}
	if folder != "" {
		name += ", " + folder
	}
	return name, page
}
