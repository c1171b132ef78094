package pages

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
	"github.com/caddy-terraform/caddy-terraform-registry/access/signin"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// canSignIn reports whether a browser can sign in at all.
func (s *Site) canSignIn() bool {
	return s.Registry.Rules != nil && (s.SignIn != nil || s.Challenge != nil)
}

// loginURL returns the URL at which a browser signs in and is then led to a page.
func (s *Site) loginURL(to string) string { return withQuery(s.Path+"/_registry/login", "to", to) }

// inSession reports whether the visitor has signed in here, and can sign out.
func (v *visit) inSession() bool {
	if v.site.SignIn == nil {
		return false
	}
	return !v.sessionOf().Anonymous()
}

// sessionOf returns the user of the visitor's session.
func (v *visit) sessionOf() access.Subject {
	if v.session == nil {
		subject, _ := v.site.SignIn.Subject(v.request) // an unreadable session counts as none
		v.session = &subject
	}
	return *v.session
}

// linkQuery returns the query that a known visitor needs in the URL of a file. The
// protocols accept links. They accept neither sessions nor a proof of identity that a
// handler in front of the pages has checked.
func (v *visit) linkQuery(hostname svchost.Hostname, version, file string) string {
	if subject, err := v.subject(); err != nil || subject.Anonymous() {
		return ""
	}
	return v.view.LinkQuery(hostname, version, file)
}

// signInPage answers a step of signing in or out. None of these answers is cached, and
// none depends on the packages of the registry.
func (v *visit) signInPage() *answer {
	var a *answer
	switch {
	case v.route.Kind == route.Logout:
		a = v.signOut()
	case v.request.Method == http.MethodHead:
		a = &answer{status: http.StatusNoContent} // a program only asks whether the path exists
	case isPrefetch(v.request.Header):
		a = &answer{status: http.StatusServiceUnavailable} // the browser asks again when the user follows the link
	case v.route.Kind == route.Callback:
		a = v.finishSignIn()
	default:
		a = v.beginSignIn()
	}
	a.unstored, a.tag = true, ""
	return a
}

// isPrefetch reports whether a browser asks for a page before its user does.
func isPrefetch(h http.Header) bool {
	return strings.Contains(h.Get("Sec-Purpose"), "prefetch") || h.Get("Purpose") == "prefetch" || h.Get("X-Moz") == "prefetch"
}

// beginSignIn sends a browser to the issuer, unless the user is signed in already.
func (v *visit) beginSignIn() *answer {
	to := v.site.within(cmp.Or(v.query.to, v.site.Path+"/"))
	if v.inSession() && !v.query.again {
		return &answer{status: http.StatusSeeOther, location: to}
	}
	location, cookie, err := v.site.SignIn.Begin(v.request.Context(), v.site.Registry.Origin(v.request)+v.site.Path+route.CallbackPath, to, v.query.again)
	if errors.Is(err, signin.ErrTooLarge) { // only the path of the page can be that long
		to = v.site.Path + "/"
		location, cookie, err = v.site.SignIn.Begin(v.request.Context(), v.site.Registry.Origin(v.request)+v.site.Path+route.CallbackPath, to, v.query.again)
	}
	if err != nil {
		return v.signInFailed(to, err)
	}
	return &answer{status: http.StatusSeeOther, location: location, cookies: []*http.Cookie{cookie}}
}

// finishSignIn handles a browser that returns from the issuer. An answer of the issuer
// counts once: the attempt ends here, with success or not.
func (v *visit) finishSignIn() *answer {
	to, session, err := v.site.SignIn.Finish(v.request)
	to = v.site.within(cmp.Or(to, v.site.Path+"/"))
	var a *answer
	switch {
	case err == nil:
		a = &answer{status: http.StatusSeeOther, location: to, cookies: []*http.Cookie{session}}
	case errors.Is(err, signin.ErrNoAttempt):
		// Another site may have sent the browser here. The user's own attempt and
		// session remain.
		if v.inSession() {
			return &answer{status: http.StatusSeeOther, location: v.site.Path + "/"}
		}
		return v.signInFailed(to, err)
	default:
		a = v.signInFailed(to, err)
	}
	a.cookies = append(a.cookies, signin.EndAttempt())
	return a
}

// signInFailed returns the page about a failed attempt to sign in. It has a link to
// another attempt, and a link to the page that the user wanted. Nothing tries again by
// itself.
func (v *visit) signInFailed(to string, err error) *answer {
	again := v.site.loginURL(to)
	e := errorPage{Status: http.StatusInternalServerError, Name: "Signing in failed", Links: []link{{"Try again", again}}}
	e.Text = "This registry and the service that people sign in with do not understand each other. Tell the registry's operator."
	log, level := "", (*visit).logError
	switch {
	case errors.Is(err, oidc.ErrUnavailable), errors.Is(err, access.ErrNoLinkKeys):
		e.Status, e.Name = http.StatusServiceUnavailable, "Signing in is not possible now"
		e.Text = "The service that people sign in with does not answer at the moment. Try again in a moment."
		log = "people cannot sign in at the moment"
	case errors.Is(err, signin.ErrNoAttempt), errors.Is(err, oidc.ErrCode):
		e.Status, e.Name = http.StatusBadRequest, "Sign in once more"
		e.Text = "This attempt to sign in has ended. It counts once, for ten minutes, and only in the browser in which it began."
	case errors.Is(err, signin.ErrDeclined):
		e.Status, e.Name = http.StatusForbidden, "You are not signed in"
		e.Text = "The service that people sign in with has not let you in."
		log, level = "the issuer has declined to sign a user in", (*visit).logInfo
	case errors.Is(err, oidc.ErrRefused):
		e.Status, e.Name = http.StatusForbidden, "This account has no access"
		e.Text = "This registry does not accept the account that you have signed in with. Use another one, or ask the registry's operator."
		e.Links = []link{{"Use another account", withQuery(again, "again", "yes")}}
		log, level = "an account was refused at signing in", (*visit).logInfo
	default:
		log = "signing in failed"
	}
	if log != "" {
		level(v, log, err)
	}
	if to != v.site.Path+"/" {
		e.Links = append(e.Links, link{"Back to the page", to})
	}
	e.page = page{Site: v.site.identity(v.site.Registry.Hostname(v.request)), Title: e.Name}
	return v.errorAnswer(e)
}

// A signOutPage has the button that signs out, or says that the visitor is not signed
// in.
type signOutPage struct {
	page
	Action string // the action of the form; empty: the visitor is not signed in

	// Issuer is the service where the visitor may still be signed in. IssuerURL signs
	// out there; it is empty if it is not known.
	Issuer, IssuerURL string
}

// signOut answers a GET with a page, and ends the session at a POST of the page's
// button. A form on another site ends no session: browsers say where a form comes from,
// and leave out the session's cookie.
func (v *visit) signOut() *answer {
	self := v.site.Path + route.LogoutPath
	if v.request.Method == http.MethodPost {
		a := &answer{status: http.StatusSeeOther, location: self}
		if new(http.CrossOriginProtection).Check(v.request) == nil && signin.HasSession(v.request) {
			a.cookies = []*http.Cookie{signin.EndSession(), signin.EndAttempt()}
		}
		return a
	}
	p := signOutPage{page: page{Site: v.site.identity(v.site.Registry.Hostname(v.request)), Title: "Signed out"}}
	if subject, err := v.site.SignIn.Subject(v.request); err != nil || !subject.Anonymous() { // a session that cannot be read now may be valid
		p.Title, p.Site.User, p.Action = "Sign out", subject.ID, self
		return v.untaggedAnswer(http.StatusOK, "signout", p)
	}
	p.Site.SignIn = v.site.loginURL("")
	p.IssuerURL = v.site.SignIn.Client.EndSessionURL(v.request.Context(), v.site.Registry.Origin(v.request)+v.site.Path+"/")
	if u, err := url.Parse(p.IssuerURL); err == nil {
		p.Issuer = u.Host
	}
	return v.untaggedAnswer(http.StatusOK, "signout", p)
}

// logError logs a failure of the server. If the browser has left, there may be none.
func (v *visit) logError(message string, err error) {
	if v.site.Logger != nil && v.request.Context().Err() == nil {
		v.site.Logger.ErrorContext(v.request.Context(), message, "error", err.Error())
	}
}

func (v *visit) logInfo(message string, err error) {
	if v.site.Logger != nil {
		v.site.Logger.InfoContext(v.request.Context(), message, "reason", err.Error())
	}
}
