package upstream

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Repositories are the repositories of a host whose path matches a pattern, with
// everything below them. Archives are named in the same way.
type Repositories struct {
	path address.Wildcard // without leading and trailing slashes, and without .git
}

const maxAllow = 512 // bytes of a pattern

// ParseRepositories reads a pattern of repositories of the host: github.com/acme, or
// github.com/acme/terraform-*, in which * matches any characters.
func (h Host) ParseRepositories(s string) (Repositories, error) {
	host, path, _ := strings.Cut(s, "/")
	path = strings.TrimSuffix(strings.TrimSuffix(path, "/"), ".git")
	isNone := func(r rune) bool { return strings.ContainsRune("?#:@", r) || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if len(s) > maxAllow || !sameHost(Host{Name: host}.url(), h.url()) || !isPlain(path) || strings.ContainsFunc(path, isNone) {
		return Repositories{}, fmt.Errorf("%.200q is no pattern of repositories of %s: write the name of the host and a path, without dots or a scheme, as in github.com/acme/*", s, h.Name)
	}
	return Repositories{address.Wildcard(path)}, nil
}

// cover reports whether a URL of the host is in one of the repositories.
func (r Repositories) cover(u *url.URL) bool {
	path := strings.Trim(u.Path, "/")
	if !isPlain(path) {
		return false
	}
	for _, end := range []address.Wildcard{"", ".git", "/*", ".git/*"} {
		if (r.path + end).Matches(path) {
			return true
		}
	}
	return false
}

// isPlain reports whether all servers read a path in the same way. A path with dots,
// empty segments, backslashes, or escapes in the unescaped path may mean another path.
// So may one with semicolons: some servers in Java drop what follows one in a segment,
// and then read ..; as dots. What was an escaped ? or # may be the end of the path.
func isPlain(path string) bool {
	if strings.ContainsAny(path, `\%;?#`) {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}
