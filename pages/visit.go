package pages

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

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
