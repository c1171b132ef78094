// Package route reads the paths of pages, and makes them.
package route

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
)

// A Route is a parsed path of a page. Routes are comparable.
type Route struct {
	Kind Kind

	// Address is the address of the module or provider.
	Address address.Address

	// Version is the version in the path, in its normal form. It is empty for the
	// latest version. In that case Latest reports whether the path says "latest".
	Version string
	Latest  bool

	// Part is the path of a submodule or an example in the package.
	Part string

	// Feed reports that the path is the path of the feed of a page.
	Feed bool

	// Rest is the end of the path, without a slash before it: the path of a file or folder in
	// the package or of a page of a provider's documentation, the name of an asset, a part
	// of the path that names nothing, or the kind of a Place: "modules" or "providers".
	Rest string
}

// A Kind says which page a route leads to.
type Kind int

// The kinds of pages.
const (
	Home Kind = iota
	Modules
	Providers
	Search
	SearchModules
	SearchProviders
	SearchDocs
	Suggestions
	Module
	ModuleFile
	ModuleCode
	Provider
	Asset
	Report
	Place // the beginning of addresses: a hostname, a namespace, or a module without a system
	Lost  // below a module or provider, but none of its pages
	Login
	Callback
	Logout
	LLMs
	Log
)

// Longer paths are not paths of pages.
const (
	maxPath    = 2000
	maxSegment = 300
)

// The issuer sends a browser back to CallbackPath. People sign out at LogoutPath.
const (
	CallbackPath = "/_registry/callback"
	LogoutPath   = "/_registry/logout"
)

var plain = map[string]Kind{
	"/": Home, "/browse/modules": Modules, "/browse/providers": Providers,
	"/search": Search, "/search/modules": SearchModules, "/search/providers": SearchProviders,
	"/search/documentation": SearchDocs, "/search/suggestions": Suggestions,
	"/_registry/report": Report, "/_registry/log": Log, "/_registry/login": Login, CallbackPath: Callback, LogoutPath: Logout,
	"/llms.txt": LLMs,
}

// cut are paths that have been cut, with the page that comes nearest.
var cut = map[string]Kind{
	"/modules": Modules, "/providers": Providers, "/browse": Modules, "/registries": Modules,
}

// Parse reads an escaped path below the path of the pages. If the path is not the
// path of a page, ok is false. A slash at its end is ignored.
func Parse(escaped string) (r Route, ok bool) {
	if len(escaped) > maxPath || !strings.HasPrefix(escaped, "/") {
		return r, false
	}
	if escaped != "/" && escaped != "//" {
		escaped = strings.TrimSuffix(escaped, "/")
	}
	if page, ok := strings.CutSuffix(escaped, "/feed.atom"); ok {
		r, ok := Parse(page + "/")
		ok = ok && !r.Feed && r.HasFeed()
		r.Feed = true
		return r, ok
	}
	if kind, ok := plain[escaped]; ok {
		return Route{Kind: kind}, true
	}
	if kind, ok := cut[escaped]; ok {
		return Route{Kind: kind}, true
	}
	if name, ok := strings.CutPrefix(escaped, assets.Folder); ok {
		_, known := assets.Named(name)
		return Route{Kind: Asset, Rest: name}, known
	}
	segments, ok := decodeSegments(escaped)
	if !ok {
		return r, false
	}
	hostname := ""
	if segments[0] == "registries" && len(segments) > 1 {
		hostname, segments = segments[1], segments[2:]
		if len(segments) == 0 || len(segments) == 1 && (segments[0] == "modules" || segments[0] == "providers") {
			return parsePlace(hostname, "")
		}
	}
	if kind := segments[0]; kind == "modules" || kind == "providers" {
		return parseAddress(hostname, kind, segments[1:])
	}
	return r, false
}

// BelowPages reports whether an escaped path lies below the path of a page. If it does,
// it is a mistyped path of a page, and no other handler has an answer for it.
func BelowPages(escaped string) bool {
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

// parsePlace reads the beginning of an address: the hostname alone, or a namespace or
// more of the kind "modules" or "providers".
func parsePlace(hostname, kind string, segments ...string) (r Route, ok bool) {
	r = Route{Kind: Place, Rest: kind}
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
	if r.Address.Hostname = a.Hostname; len(segments) > 0 {
		r.Address.Namespace = a.Namespace
	}
	if len(segments) > 1 {
		r.Address.Name = a.Name
	}
	return r, true
}

// parseAddress reads what comes after "modules" or "providers": a place, or a module or provider, its
// version, and a page of it.
func parseAddress(hostname, kind string, segments []string) (r Route, ok bool) {
	names, of := 2, Provider
	if kind == "modules" {
		names, of = 3, Module
	}
	if n := len(segments); n < names {
		if n == 0 {
			return r, false
		}
		return parsePlace(hostname, kind, segments...)
	}
	a, err := address.ParseProvider(hostname, segments[0], segments[1])
	if of == Module {
		a, err = address.ParseModule(hostname, segments[0], segments[1], segments[2])
	}
	if err != nil {
		return r, false
	}
	r = Route{Kind: of, Address: a}
	if segments = segments[names:]; len(segments) == 0 {
		return r, true
	}
	lost := Route{Kind: Lost, Address: a, Rest: path.Join(segments...)}
	if r.Latest = segments[0] == "latest"; !r.Latest {
		v, err := address.ParseModuleVersion(segments[0])
		if err != nil {
			return lost, true
		}
		r.Version = v.String()
	}
	if segments = segments[1:]; len(segments) > 0 {
		below := r.belowProvider
		if of == Module {
			below = r.belowModule
		}
		if r, ok = below(segments[0], path.Join(segments[1:]...)); !ok {
			return lost, true
		}
	}
	return r, true
}

// belowModule returns the route of a path below the version of a module. ok is false if it is none of
// its pages.
func (r Route) belowModule(first, rest string) (_ Route, ok bool) {
	switch {
	case first == "code":
		r.Kind, r.Rest = ModuleCode, rest
	case rest == "":
		// cut: the page of the version has them
		return r, first == "submodules" || first == "examples" || first == "files"
	case first == "submodules":
		r.Part = "modules/" + rest
	case first == "examples":
		r.Part = "examples/" + rest
	case first == "files":
		r.Kind, r.Rest = ModuleFile, rest
	default:
		return r, false
	}
	return r, true
}

// belowProvider is belowModule for a provider.
func (r Route) belowProvider(first, rest string) (_ Route, ok bool) {
	if r.Rest = first; strings.Contains(rest, "/") { // else a kind of page without a name: cut
		r.Rest += "/" + rest
	}
	return r, first == "docs"
}

// CutPart returns the tab with all parts of a module's version, if the path of a part has
// been cut. escaped is the path that r was parsed from.
func (r Route) CutPart(escaped string) string {
	last := path.Base(escaped)
	if r.Kind == Module && r.Part == "" && (r.Version != "" || r.Latest) && (last == "submodules" || last == "examples") {
		return last
	}
	return ""
}

// HasFeed reports whether a page has a feed: the home page, a namespace, and a module or
// provider in no certain version.
func (r Route) HasFeed() bool {
	switch r.Kind {
	case Home, Place:
		return true
	case Module, Provider:
		return r.Version == "" && !r.Latest && r.Part == "" && r.Rest == ""
	}
	return false
}

// Path returns the escaped path of a route, in its normal form, below the path of the
// pages.
func (r Route) Path() string {
	if r.Feed {
		page := r
		page.Feed = false
		return strings.TrimSuffix(page.Path(), "/") + "/feed.atom"
	}
	switch r.Kind {
	case Asset:
		return assets.Folder + r.Rest
	case Module, ModuleFile, ModuleCode, Provider, Place, Lost:
	default:
		for p, kind := range plain {
			if kind == r.Kind {
				return p
			}
		}
	}
	a, kind := r.Address, "providers"
	if a.IsModule() {
		kind = "modules"
	}
	var names []string
	if a.Hostname != "" {
		names = append(names, "registries", string(a.Hostname))
	}
	switch r.Kind {
	case Place:
		names = append(names, r.Rest, a.Namespace, a.Name)
	case Lost:
		names = append(names, kind, a.Namespace, a.Name, a.System, r.Rest)
	default:
		version, below := r.Version, r.below()
		if version == "" && (r.Latest || below != "") {
			version = "latest"
		}
		names = append(names, kind, a.Namespace, a.Name, a.System, version, below)
	}
	var b strings.Builder
	for segment := range strings.SplitSeq(strings.Join(names, "/"), "/") {
		if segment != "" {
			b.WriteString("/" + url.PathEscape(segment))
		}
	}
	return b.String()
}

// below returns the path of a page below the version of its module or provider.
func (r Route) below() string {
	switch r.Kind {
	case ModuleFile:
		return "files/" + r.Rest
	case ModuleCode:
		return "code/" + r.Rest
	}
	if name, ok := strings.CutPrefix(r.Part, "modules/"); ok {
		return "submodules/" + name
	}
	return cmp.Or(r.Part, r.Rest)
}

// WithVersion returns the route of another version of the same module or provider. It
// Leads to the root of the package, as another version may lack the submodule.
func (r Route) WithVersion(version string) Route {
	of := ForAddress(r.Address)
	of.Version = version
	return of
}

// WithPart returns the route of a submodule or an example, or of the root for an empty
// path.
func (r Route) WithPart(part string) Route {
	r.Part, r.Rest, r.Kind = part, "", Module
	return r
}

// WithFile returns the route of a file of the module's package.
func (r Route) WithFile(name string) Route {
	r.Kind, r.Part, r.Rest = ModuleFile, "", name
	return r
}

// WithCode returns the route of the page of a file or folder of the module's package.
func (r Route) WithCode(name string) Route {
	r.Kind, r.Part, r.Rest = ModuleCode, "", name
	return r
}

// Leads reports whether browsers can follow the route. Files of a package can have names that
// no page has.
func (r Route) Leads() bool {
	parsed, ok := Parse(r.Path())
	r.Latest = parsed.Latest // a page of the latest version may lack the word, its files do not
	return ok && parsed == r
}

// IsPage reports whether the route leads to a page with content.
func (r Route) IsPage() bool {
	if r.Feed {
		return false
	}
	switch r.Kind {
	case LLMs, Suggestions, Asset, ModuleFile, Login, Callback, Logout:
		return false
	}
	return true
}

// SignsIn reports whether a route is a step of signing in or out.
func (r Route) SignsIn() bool {
	return slices.Contains([]Kind{Login, Callback, Logout}, r.Kind)
}

// ForAddress returns the route of the latest version of a module or provider.
func ForAddress(a address.Address) Route {
	if a.IsModule() {
		return Route{Kind: Module, Address: a}
	}
	return Route{Kind: Provider, Address: a}
}
