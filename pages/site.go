package pages

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/access/signin"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/feed"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
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

// A visit is a request for a page, with the View of what it may see.
type visit struct {
	site    *Site
	view    *handlers.View
	request *http.Request
	route   route.Route
	query   query

	// version is the version of the module or provider that was found, or empty.
	version string

	// unrecorded reports that the page lacks where its version is on record: the log may have the
	// version soon, without a new snapshot.
	unrecorded bool

	session *access.Subject // the user of its session; nil: not looked up yet
}

// answer renders a page, or takes it from the cache if the page is the same for
// everyone.
func (s *Site) answer(v *visit) (*answer, error) {
	if !v.view.Public() || !v.query.cacheable() || v.route.Kind == route.Log { // the log grows without a new snapshot
		return s.render(v)
	}
	if subject, err := v.subject(); err != nil || !subject.Anonymous() {
		return s.render(v) // the page has the name of the user
	}
	key := pageKey{Route: v.route, query: v.query, self: v.view.Hostname(), counts: s.Registry.Usage.Generation()}
	switch {
	case v.route.Feed:
		key.base = s.origin(v.request)
	case v.route.Kind == route.Home:
		key.base = v.view.ServicesURL()
	}
	pages := s.cache.pages(v.view.Snapshot(), s.Registry.Snapshot())
	if a, ok := pages.Get(key); ok {
		return a, nil
	}
	a, err := s.share(v, pages, key.clone())
	if err != nil && v.route.Address != (address.Address{}) {
		v.view.Await(v.route.Address)
	}
	return a, err
}

func (s *Site) share(v *visit, pages *snapshotPages, key pageKey) (*answer, error) {
	request, view := v.request.Clone(v.request.Context()), v.view.Detached(v.request) // nothing else changes these
	made := visit{site: s, route: key.Route, query: key.query}                        // an answer refers to its route, too
	return pages.Load(v.request.Context(), key, func(ctx context.Context) (*answer, time.Duration, error) {
		made.request = request.WithContext(ctx)
		made.view = view.Detached(made.request)
		a, err := s.render(&made)
		if err != nil || a.status != http.StatusOK || len(a.body) > maxPage || made.unrecorded {
			return a, 0, err
		}
		if strings.HasPrefix(cmp.Or(a.contentType, htmlType), "text/") || a.contentType == feed.Type {
			a.zipped = assets.Zip(a.body)
		}
		return a, cache.UntilEvicted, nil
	})
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

// maxRendered is how many READMEs and pages of documentation are rendered at once. A
// hostile text takes a second or two, and a lot of memory.
const maxRendered = 2

// document renders a text as soon as fewer than maxRendered others are being rendered.
func (v *visit) document(m markdown.Text) (d markdown.Document, err error) {
	err = v.inTurn(func() { d = m.Render() })
	return d, err
}

// inTurn calls f as soon as fewer than maxRendered others are being rendered.
func (v *visit) inTurn(f func()) error {
	select {
	case v.site.writing <- struct{}{}:
		defer func() { <-v.site.writing }()
		f()
		return nil
	case <-v.request.Context().Done():
		return v.request.Context().Err()
	}
}

// about records the provider or module that an answer shows, and its version.
func (v *visit) about(a *answer, err error) (*answer, error) {
	if err == nil && (a.status == http.StatusOK || a.status == http.StatusGone) {
		a.about, a.version = v.route.Address, cmp.Or(v.version, v.route.Version)
	}
	return a, err
}

// subject returns the user who makes the request. Without rules, users need not be
// known.
func (v *visit) subject() (access.Subject, error) {
	if v.site.Registry.Rules == nil {
		return access.Subject{}, nil
	}
	return v.view.Subject()
}

// isAnonymous reports whether there are rules, and the visitor is nobody whom they name.
func (v *visit) isAnonymous() (bool, error) {
	subject, err := v.subject()
	return err == nil && v.site.Registry.Rules != nil && subject.Anonymous(), err
}

// isOutsider is isAnonymous where not everything is public: signing in may show more.
func (v *visit) isOutsider() (bool, error) {
	if v.view.Public() {
		return false, nil
	}
	return v.isAnonymous()
}

// page returns the model of the frame.
func (v *visit) page(title string) (page, error) {
	p := page{Site: v.site.identity(v.view.Hostname()), Title: title}
	p.Canonical, p.Alternates = v.canonical(), v.alternates()
	p.Site.Log = v.view.SeesLog()
	p.Unread = v.listsAll() && v.view.Unread(nil) != nil
	subject, err := v.subject()
	switch {
	case err != nil:
		return p, err
	case !subject.Anonymous():
		p.Site.User, p.Site.Report = subject.ID, v.view.Operator()
		if v.inSession() {
			p.Site.SignOut = v.site.Path + route.LogoutPath
		}
	case v.site.canSignIn():
		p.Site.SignIn = v.site.loginURL(v.self())
	}
	return p, nil
}

// listsAll reports whether the page shows what it finds in all of the registry.
func (v *visit) listsAll() bool {
	switch v.route.Kind {
	case route.Home, route.Modules, route.Providers, route.Search, route.SearchModules, route.SearchProviders, route.SearchDocs:
		return true
	}
	return false
}

// self returns the URL of the page, without parameters that the page does not depend
// on.
func (v *visit) self() string {
	switch v.route.Kind {
	case route.Home, route.Login, route.Callback, route.Logout:
		return v.site.Path + "/"
	}
	return v.listURL(v.route, v.query)
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

// signIn asks the browser for credentials, and redirects back once the browser has sent
// them.
func (v *visit) signIn() (*answer, error) {
	anonymous, err := v.isAnonymous()
	if err != nil {
		return nil, err
	}
	if anonymous {
		a := v.failedWith(http.StatusUnauthorized, "")
		a.challenges = true
		return a, nil
	}
	return &answer{status: http.StatusFound, location: v.site.within(v.query.signIn)}, nil
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

// url returns the URL of a route.
func (v *visit) url(r route.Route) string { return v.site.Path + r.Path() }

// failed returns the page of an error.
func (v *visit) failed(err error) *answer {
	if errors.Is(err, fs.ErrNotExist) {
		return v.failedWith(http.StatusNotFound, "")
	}
	if v.request.Context().Err() != nil {
		return v.failedWith(http.StatusServiceUnavailable, "") // the browser has gone, or the time is up
	}
	text := ""
	status, message := handlers.Status(err)
	cause, outage := handlers.Outage(err)
	switch a := v.route.Address; {
	case outage:
		text = strings.ToUpper(message[:1]) + message[1:] + "."
	case status == http.StatusServiceUnavailable:
	case status >= http.StatusInternalServerError:
		cause = err
	case status == http.StatusNotFound && v.view != nil && v.view.Fetches(a):
		text = a.String() + " is not here, or you are not allowed to see it. " + fetchedLater
	}
	if cause != nil {
		v.logError("page failed", cause)
	}
	return v.failedWith(status, text)
}

// failedWith returns the page of a status, with a sentence in place of its usual one.
func (v *visit) failedWith(status int, text string) *answer {
	p := page{Site: v.site.identity(v.site.Registry.Hostname(v.request))}
	if v.view != nil {
		if known, err := v.page(""); err == nil {
			p = known
		}
	}
	e := newErrorPage(p, status, text)
	if status == http.StatusNotFound {
		e.Links = append(e.Links, v.nearbyLinks()...)
	}
	return v.errorAnswer(e)
}
