package pages

import (
	"cmp"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access/signin"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// A Site serves the pages of a registry. Its fields must not change once it serves.
type Site struct {
	// Registry is the registry that the pages show.
	Registry *handlers.Registry

	// Path is the path of the pages. It begins with a slash and does not end in one. It
	// is empty if the pages are at the root.
	Path string

	// Name is the name of the registry on the pages. If it is empty, they have the hostname.
	Name string

	// Logo is beside the name. May be nil.
	Logo *assets.Logo

	// Links are at the foot of each page.
	Links []Link

	// SignIn signs people in and out with an account elsewhere. May be nil.
	SignIn *signin.SignIn

	// Challenge adds the ways to authenticate to the header of an answer with status
	// 401. If it is nil, a browser cannot authenticate, and pages offer it only if
	// SignIn is set.
	Challenge func(http.Header, *http.Request)

	// Login reports that clients can use `terraform login`.
	Login bool

	// Unsigned reports that the registry does not sign releases which their publisher
	// did not sign. Only the mirror offers them.
	Unsigned bool

	// Version is the version of the server, for the foot of each page. May be empty.
	Version string

	// Logger receives failures of the server. May be nil.
	Logger *slog.Logger

	cache   pageCache
	once    sync.Once     // for writing
	writing chan struct{} // one element for each text that is being rendered
}

// SignsOut reports whether r comes from the button that signs out. It is the only request to
// pages that changes something.
func (s *Site) SignsOut(r *http.Request) bool {
	return s.SignIn != nil && r.Method == http.MethodPost && r.URL.EscapedPath() == s.Path+route.LogoutPath
}

// ServeHTTP answers r and returns true if the path is the path of a page or lies below
// one. Otherwise it writes nothing and returns false.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) bool {
	escaped, ok := strings.CutPrefix(r.URL.EscapedPath(), s.Path)
	if !ok {
		return false
	}
	if escaped == "" && s.Path != "" {
		escaped = "/" // the answer redirects to it
	}
	if s.Logo.IsAt(escaped) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		s.write(w, r, logoAnswer(s.Logo))
		return true
	}
	rt, ok := route.Parse(escaped)
	if !ok && !route.BelowPages(escaped) {
		return false
	}
	s.once.Do(func() { s.writing = make(chan struct{}, maxRendered) })
	refuse := func(status int) {
		s.write(w, r, (&visit{site: s, request: r}).failedWith(status, ""))
	}
	switch {
	case s.SignIn != nil && rt.Kind == route.Logout && r.Method == http.MethodPost:
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(http.StatusMethodNotAllowed)
		return true
	case !ok:
		refuse(http.StatusNotFound)
		return true
	}
	if rt.IsPage() {
		w.Header().Add("Vary", "Accept")
	}
	if normal := s.Path + rt.Path(); normal != r.URL.EscapedPath() {
		s.write(w, r, &answer{status: http.StatusPermanentRedirect, location: normal + queryOf(rt, escaped, r.URL)})
		return true
	}
	if rt.Kind == route.Asset {
		f, _ := assets.Named(rt.Rest)
		s.write(w, r, assetAnswer(f))
		return true
	}
	q := readQuery(rt, r.URL.RawQuery, r.Header)
	visit := &visit{site: s, request: r, route: rt, query: q}
	if s.SignIn != nil && rt.SignsIn() {
		s.write(w, r, visit.signInPage())
		return true
	}
	var a *answer
	err := s.Registry.Visit(r, func(v *handlers.View) (err error) {
		visit.view, visit.route, visit.version = v, rt, "" // an attempt before may have shown something else
		a, err = s.answer(visit)
		return err
	})
	if err != nil {
		failed := visit.failed(err)
		if a, err = visit.asMarkdown(failed); err != nil {
			a = failed
		}
	}
	if rt.Feed && a.status == http.StatusUnauthorized {
		asks := *a
		asks.challenges = true // a reader of feeds cannot sign in on a page
		a = &asks
	}
	s.write(w, r, a)
	return true
}

// queryOf returns the query with which a path in another spelling is redirected.
func queryOf(rt route.Route, escaped string, u *url.URL) string {
	if tab := rt.CutPart(escaped); tab != "" {
		return withQuery("", "tab", tab, "format", u.Query().Get("format"))
	}
	if u.RawQuery != "" {
		return "?" + u.RawQuery
	}
	return ""
}

// render renders a page in the format that is wanted.
func (s *Site) render(v *visit) (*answer, error) {
	a, err := s.renderPage(v)
	if err != nil {
		return nil, err
	}
	return v.asMarkdown(a)
}

func (s *Site) renderPage(v *visit) (*answer, error) {
	if v.route.Feed {
		return v.about(v.feed())
	}
	switch v.route.Kind {
	case route.LLMs:
		return v.llms()
	case route.Home:
		if v.query.signIn != "" {
			return v.signIn()
		}
		return v.home()
	case route.Modules, route.Providers:
		return v.browse()
	case route.Search, route.SearchModules, route.SearchProviders, route.SearchDocs:
		return v.search()
	case route.Suggestions:
		return v.suggestions()
	case route.Module:
		return v.about(v.module())
	case route.ModuleFile:
		return v.about(v.moduleFile())
	case route.ModuleCode:
		return v.about(v.code())
	case route.Provider:
		return v.about(v.provider())
	case route.Place:
		return v.place()
	case route.Lost:
		return v.noSuchPage()
	case route.Report:
		return v.report()
	case route.Log:
		return v.log()
	case route.Login:
		if s.Challenge == nil {
			return nil, fs.ErrNotExist
		}
		// The answer that asks for credentials has to be at the root of the pages.
		// Browsers send credentials of `Basic` to the folder of the page that asked
		// (RFC 7617 §2.2).
		return &answer{status: http.StatusFound, location: withQuery(s.Path+"/", "sign-in", cmp.Or(v.query.to, s.Path+"/"))}, nil
	}
	return nil, fs.ErrNotExist
}

// identity describes the registry under one of its names to an unknown visitor.
func (s *Site) identity(name svchost.Hostname) *identity {
	host := address.DisplayHostname(name)
	i := &identity{Name: cmp.Or(s.Name, host), Hostname: host, Base: s.Path, Version: s.Version, Links: s.Links}
	if s.Logo != nil {
		i.Logo = s.Path + assets.Folder + s.Logo.Name
	}
	return i
}

// within returns a path of the pages. It returns the home page for any other URL, so
// that a link leads to no other site.
func (s *Site) within(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || strings.ContainsAny(to, "\\\r\n\t") {
		return s.Path + "/"
	}
	below, ok := strings.CutPrefix(u.EscapedPath(), s.Path)
	if rt, known := route.Parse(below); !ok || !known || rt.SignsIn() || strings.HasPrefix(to, "//") {
		return s.Path + "/"
	}
	if u.RawQuery != "" {
		return u.EscapedPath() + "?" + u.RawQuery
	}
	return u.EscapedPath()
}
