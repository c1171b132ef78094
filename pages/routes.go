package pages

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
)

// A route is a parsed path of a page. Routes are comparable.
type route struct {
	kind routeKind

	// address is the address of the module or provider.
	address address.Address

	// version is the version in the path, in its normal form. It is empty for the
	// latest version. In that case latest reports whether the path says "latest".
	version string
	latest  bool

	// part is the path of a submodule or an example in the package.
	part string

	// feed reports that the path is the path of the feed of a page.
	feed bool

	// rest is the end of the path, without a slash before it: the path of a file or folder in
	// the package or of a page of a provider's documentation, the name of an asset, a part
	// of the path that names nothing, or the kind of a placeRoute: "modules" or "providers".
	rest string
}

type routeKind int

const (
	homeRoute routeKind = iota
	modulesRoute
	providersRoute
	searchRoute
	searchModulesRoute
	searchProvidersRoute
	searchDocsRoute
	suggestionsRoute
	moduleRoute
	moduleFileRoute
	moduleCodeRoute
	providerRoute
	assetRoute
	reportRoute
	placeRoute // the beginning of addresses: a hostname, a namespace, or a module without a system
	lostRoute  // below a module or provider, but none of its pages
	loginRoute
	callbackRoute
	logoutRoute
	llmsRoute
	logRoute
)

// Longer paths are not paths of pages.
const (
	maxPath    = 2000
	maxSegment = 300
)

// The issuer sends a browser back to callbackPath. People sign out at logoutPath.
const (
	callbackPath = "/_registry/callback"
	logoutPath   = "/_registry/logout"
)

var plainRoutes = map[string]routeKind{
	"/": homeRoute, "/browse/modules": modulesRoute, "/browse/providers": providersRoute,
	"/search": searchRoute, "/search/modules": searchModulesRoute, "/search/providers": searchProvidersRoute,
	"/search/documentation": searchDocsRoute, "/search/suggestions": suggestionsRoute,
	"/_registry/report": reportRoute, "/_registry/log": logRoute, "/_registry/login": loginRoute, callbackPath: callbackRoute, logoutPath: logoutRoute,
	"/llms.txt": llmsRoute,
}

// cutRoutes are paths that have been cut, with the page that comes nearest.
var cutRoutes = map[string]routeKind{
	"/modules": modulesRoute, "/providers": providersRoute, "/browse": modulesRoute, "/registries": modulesRoute,
}

// parseRoute reads an escaped path below the path of the pages. If the path is not the
// path of a page, ok is false. A slash at its end is ignored.
func parseRoute(escaped string) (r route, ok bool) {
	if len(escaped) > maxPath || !strings.HasPrefix(escaped, "/") {
		return r, false
	}
	if escaped != "/" && escaped != "//" {
		escaped = strings.TrimSuffix(escaped, "/")
	}
	if page, ok := strings.CutSuffix(escaped, "/feed.atom"); ok {
		r, ok := parseRoute(page + "/")
		ok = ok && !r.feed && r.hasFeed()
		r.feed = true
		return r, ok
	}
	if kind, ok := plainRoutes[escaped]; ok {
		return route{kind: kind}, true
	}
	if kind, ok := cutRoutes[escaped]; ok {
		return route{kind: kind}, true
	}
	if name, ok := strings.CutPrefix(escaped, assets.Folder); ok {
		_, known := assets.Named(name)
		return route{kind: assetRoute, rest: name}, known
	}
	segments, ok := decodeSegments(escaped)
	if !ok {
		return r, false
	}
	hostname := ""
	if segments[0] == "registries" && len(segments) > 1 {
		hostname, segments = segments[1], segments[2:]
		if len(segments) == 0 || len(segments) == 1 && (segments[0] == "modules" || segments[0] == "providers") {
			return parsePlaceRoute(hostname, "")
		}
	}
	switch segments[0] {
	case "modules":
		return parseModuleRoute(hostname, segments[1:])
	case "providers":
		return parseProviderRoute(hostname, segments[1:])
	}
	return r, false
}

// belowPages reports whether an escaped path lies below the path of a page. If it does,
// it is a mistyped path of a page, and no other handler has an answer for it.
func belowPages(escaped string) bool {
	rest, ok := strings.CutPrefix(escaped, "/")
	first, _, _ := strings.Cut(rest, "/")
	return ok && slices.Contains([]string{"modules", "providers", "browse", "registries", "search", "_registry"}, first)
}

// decodeSegments splits a path and decodes its segments. It decodes after splitting, so
// that an encoded slash separates nothing.
func decodeSegments(escaped string) ([]string, bool) {
	segments := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil || decoded == "" || decoded == "." || decoded == ".." || len(decoded) > maxSegment ||
			!utf8.ValidString(decoded) || strings.ContainsAny(decoded, "/\\\x00") {
			return nil, false
		}
		segments[i] = decoded
	}
	return segments, true
}

// parsePlaceRoute reads the beginning of an address: the hostname alone, or a namespace or
// more of the kind "modules" or "providers".
func parsePlaceRoute(hostname, kind string, segments ...string) (r route, ok bool) {
	r = route{kind: placeRoute, rest: kind}
	namespace, name := "x", "x"
	switch len(segments) {
	case 2:
		namespace, name = segments[0], segments[1]
	case 1:
		namespace = segments[0]
	}
	a, err := address.ParseModule(hostname, namespace, name, "x")
	if err != nil || len(segments) == 0 && a.Hostname == "" {
		return r, false
	}
	if r.address.Hostname = a.Hostname; len(segments) > 0 {
		r.address.Namespace = a.Namespace
	}
	if len(segments) > 1 {
		r.address.Name = a.Name
	}
	return r, true
}

// lost returns the route of what lies below a module or provider and is none of its pages.
func (r route) lost(segments []string) (route, bool) {
	return route{kind: lostRoute, address: r.address, rest: path.Join(segments...)}, true
}

func parseModuleRoute(hostname string, segments []string) (r route, ok bool) {
	if n := len(segments); n == 1 || n == 2 {
		return parsePlaceRoute(hostname, "modules", segments...)
	}
	if len(segments) < 3 {
		return r, false
	}
	a, err := address.ParseModule(hostname, segments[0], segments[1], segments[2])
	if err != nil {
		return r, false
	}
	r = route{kind: moduleRoute, address: a}
	segments = segments[3:]
	below := segments
	if len(segments) == 0 {
		return r, true
	}
	if r.latest = segments[0] == "latest"; !r.latest {
		v, err := address.ParseModuleVersion(segments[0])
		if err != nil {
			return r.lost(below)
		}
		r.version = v.String()
	}
	if segments = segments[1:]; len(segments) == 0 {
		return r, true
	}
	rest := path.Join(segments[1:]...)
	switch {
	case rest == "" && segments[0] == "code":
		r.kind = moduleCodeRoute
	case rest == "" && slices.Contains([]string{"submodules", "examples", "files"}, segments[0]):
		return r, true // cut: the page of the version has them
	case rest == "":
		return r.lost(below)
	case segments[0] == "submodules":
		r.part = "modules/" + rest
	case segments[0] == "examples":
		r.part = "examples/" + rest
	case segments[0] == "files":
		r.kind, r.rest = moduleFileRoute, rest
	case segments[0] == "code":
		r.kind, r.rest = moduleCodeRoute, rest
	default:
		return r.lost(below)
	}
	return r, true
}

// cutPart returns the tab with all parts of a module's version, if the path of a part has
// been cut. escaped is the path that r was parsed from.
func cutPart(r route, escaped string) string {
	last := path.Base(escaped)
	if r.kind == moduleRoute && r.part == "" && (r.version != "" || r.latest) && (last == tabSubmodules || last == tabExamples) {
		return last
	}
	return ""
}

func parseProviderRoute(hostname string, segments []string) (r route, ok bool) {
	if len(segments) == 1 {
		return parsePlaceRoute(hostname, "providers", segments[0])
	}
	if len(segments) < 2 {
		return r, false
	}
	a, err := address.ParseProvider(hostname, segments[0], segments[1])
	if err != nil {
		return r, false
	}
	r = route{kind: providerRoute, address: a}
	segments = segments[2:]
	below := segments
	if len(segments) == 0 {
		return r, true
	}
	if r.latest = segments[0] == "latest"; !r.latest {
		v, err := address.ParseModuleVersion(segments[0])
		if err != nil {
			return r.lost(below)
		}
		r.version = v.String()
	}
	if segments = segments[1:]; len(segments) > 0 && segments[0] != "docs" {
		return r.lost(below)
	}
	if len(segments) == 2 {
		segments = segments[:1] // a kind of page without a name: cut
	}
	r.rest = path.Join(segments...)
	return r, true
}

// hasFeed reports whether a page has a feed: the home page, a namespace, and a module or
// provider in no certain version.
func (r route) hasFeed() bool {
	switch r.kind {
	case homeRoute, placeRoute:
		return true
	case moduleRoute, providerRoute:
		return r.version == "" && !r.latest && r.part == "" && r.rest == ""
	}
	return false
}

// path returns the escaped path of a route, in its normal form, below the path of the
// pages.
func (r route) path() string {
	if r.feed {
		page := r
		page.feed = false
		return strings.TrimSuffix(page.path(), "/") + "/feed.atom"
	}
	switch r.kind {
	case assetRoute:
		return assets.Folder + r.rest
	case moduleRoute, moduleFileRoute, moduleCodeRoute, providerRoute, placeRoute, lostRoute:
	default:
		for p, kind := range plainRoutes {
			if kind == r.kind {
				return p
			}
		}
	}
	var b strings.Builder
	add := func(segments ...string) {
		for _, s := range segments {
			for part := range strings.SplitSeq(s, "/") {
				b.WriteByte('/')
				b.WriteString(url.PathEscape(part))
			}
		}
	}
	a := r.address
	if a.Hostname != "" {
		add("registries", string(a.Hostname))
	}
	switch {
	case r.kind == placeRoute:
		for _, s := range []string{r.rest, a.Namespace, a.Name} {
			if s != "" {
				add(s)
			}
		}
		return b.String()
	case a.IsModule():
		add("modules", a.Namespace, a.Name, a.System)
	default:
		add("providers", a.Namespace, a.Name)
	}
	if r.kind == lostRoute {
		add(r.rest)
		return b.String()
	}
	deeper := r.part != "" || r.rest != "" || r.kind == moduleCodeRoute
	switch {
	case r.version != "":
		add(r.version)
	case r.latest || deeper:
		add("latest")
	}
	switch {
	case r.kind == moduleFileRoute:
		add("files", r.rest)
	case r.kind == moduleCodeRoute && r.rest == "":
		add("code")
	case r.kind == moduleCodeRoute:
		add("code", r.rest)
	case r.rest != "":
		add(r.rest)
	case r.part != "":
		folder, name, _ := strings.Cut(r.part, "/")
		if folder == "modules" {
			folder = "submodules"
		}
		add(folder, name)
	}
	return b.String()
}

// withVersion returns the route of another version of the same module or provider. It
// leads to the root of the package, as another version may lack the submodule.
func (r route) withVersion(version string) route {
	of := addressRoute(r.address)
	of.version = version
	return of
}

// withPart returns the route of a submodule or an example, or of the root for an empty
// path.
func (r route) withPart(part string) route {
	r.part, r.rest, r.kind = part, "", moduleRoute
	return r
}

// withFile returns the route of a file of the module's package.
func (r route) withFile(name string) route {
	r.kind, r.part, r.rest = moduleFileRoute, "", name
	return r
}

// withCode returns the route of the page of a file or folder of the module's package.
func (r route) withCode(name string) route {
	r.kind, r.part, r.rest = moduleCodeRoute, "", name
	return r
}

// leads reports whether browsers can follow the route. Files of a package can have names that
// no page has.
func (r route) leads() bool {
	parsed, ok := parseRoute(r.path())
	r.latest = parsed.latest // a page of the latest version may lack the word, its files do not
	return ok && parsed == r
}

// addressRoute returns the route of the latest version of a module or provider.
func addressRoute(a address.Address) route {
	if a.IsModule() {
		return route{kind: moduleRoute, address: a}
	}
	return route{kind: providerRoute, address: a}
}

// withQuery returns a URL with a query of names and values. Names with an empty value
// are left out.
func withQuery(to string, namesAndValues ...string) string {
	separator := "?"
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] == "" {
			continue
		}
		to += separator + namesAndValues[i] + "=" + url.QueryEscape(namesAndValues[i+1])
		separator = "&"
	}
	return to
}
