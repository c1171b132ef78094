package pages

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/follow"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// An errorPage says what went wrong, and what to do.
type errorPage struct {
	page
	Status int
	Name   string // the error in plain words
	Text   string
	More   string // what to do, if the text does not say it
	Links  []link
}

// newErrorPage returns the page of an error. The text is a sentence for people. If it
// is empty, the page has the sentence for the status.
func newErrorPage(p page, status int, text string) errorPage {
	e := errorPage{page: p, Status: status, Text: text}
	var usual string
	switch status {
	case http.StatusUnauthorized:
		if p.Site.SignIn == "" {
			e.Name, usual = "This page is private", "People cannot sign in to this registry with a browser. Ask its operator for access."
			break
		}
		e.Name, usual = "Sign in to continue", "You have to sign in to see this page."
		e.Links = append(e.Links, link{"Sign in", p.Site.SignIn})
	case http.StatusForbidden:
		e.Name, usual = "No access", "You are not allowed to see this page."
	case http.StatusNotFound:
		e.Name, usual = "Not found", "This page does not exist, or you are not allowed to see it. Check the address, or search for the name."
	case http.StatusMethodNotAllowed:
		e.Name, usual = "Method not allowed", "Pages are read-only."
	case http.StatusGone:
		e.Name, usual = "Withdrawn", "This version has been withdrawn."
	case http.StatusServiceUnavailable:
		e.Name, usual = "Almost ready", "The registry is still reading its files. Reload this page in a moment."
		if text != "" { // something fails, and the text says what
			e.Name = "Not available at the moment"
		}
	default:
		e.Name, usual = "Something went wrong", "The registry could not show this page. If it happens again, tell its operator."
	}
	if e.Text == "" {
		e.Text = usual
	}
	e.Title = e.Name
	e.Canonical, e.Alternates = "", nil
	return e
}

// noticeOfAbsent returns the notice that withdraws the version of the route, or nil. The version
// need not be here: a notice also keeps versions from coming.
func (v *visit) noticeOfAbsent() *registryhcl.Notice {
	n, err := address.ParseProviderVersion(v.route.Version)
	if err != nil {
		return nil
	}
	return v.view.Metadata().WithdrawnVersion(n)
}

// absentVersion answers a request for a version that is not offered. If the version is
// withdrawn, the answer says why. Otherwise it leads to the versions before and after it,
// and to the latest. The offered versions have the newest first; there may be none.
func (v *visit) absentVersion(latest string, offered []string, err error) (*answer, error) {
	status, _ := handlers.Status(err)
	if status != http.StatusNotFound && status != http.StatusGone {
		return nil, err
	}
	withdrawn, listErr := v.view.Withdrawn(v.route.Address)
	if listErr != nil {
		return nil, err
	}
	p, pageErr := v.page(v.route.Address.String())
	if pageErr != nil {
		return nil, pageErr
	}
	var waysOn []link
	if latest != "" {
		to := v.route.WithVersion("")
		waysOn = []link{{"Latest version " + latest, v.url(to)}}
		for _, text := range neighbours(v.route.Version, offered) {
			if text != latest {
				waysOn = append(waysOn, link{text, v.url(to.WithVersion(text))})
			}
		}
		waysOn = append(waysOn, link{"All versions", withQuery(v.url(to), "tab", tabVersions)})
	}
	if n := v.noticeOfAbsent(); n != nil && status == http.StatusGone {
		withdrawn = append(slices.Clip(withdrawn), index.WithdrawnVersion{Version: v.route.Version, Notice: *n})
	}
	for _, w := range withdrawn {
		if v.route.Version == "" && latest == "" || w.Version == v.route.Version {
			if latest == "" {
				waysOn = v.nearbyLinks()
			}
			return v.withdrawnAnswer(p, w, latest, waysOn), nil
		}
	}
	if latest == "" {
		if v.route.Kind == route.Module && v.route.Version == "" && v.route.Part == "" && v.route.Rest == "" {
			if c, connected := v.view.Connection(v.route.Address); connected {
				return v.noVersionYet(p, c), nil
			}
		}
		return nil, err
	}
	e := newErrorPage(p, http.StatusNotFound, "There is no version "+v.route.Version+" of "+v.route.Address.String()+".")
	if v.view.Fetches(v.route.Address) {
		e.Text = "Version " + v.route.Version + " of " + v.route.Address.String() + " is not here. " + fetchedLater
	}
	e.Links = waysOn
	return v.errorAnswer(e), nil
}

// noVersionYet returns the page of a module that has a repository and no version.
func (v *visit) noVersionYet(p page, c follow.Connection) *answer {
	name := c.Module.String()
	when := "when a client first asks for it"
	if c.Repository.FetchAll {
		when = "soon after it is listed"
	}
	e := newErrorPage(p, http.StatusOK, "No version of "+name+" is here yet. Its versions are the tags "+c.Repository.Tags.String()+" of "+c.Repository.URL+
		", each of which is fetched "+when+".")
	e.Name, e.Title = name, name
	switch {
	case !v.view.Operator():
		e.More = "If its tags cannot be listed, the log of this registry says why."
	case c.Failure != nil:
		e.More = "Its tags cannot be listed: " + c.Failure.Error()
	case c.Looked.IsZero():
		e.More = "Its tags have not been listed yet."
	default:
		e.More = "Its tags were last listed on " + c.Looked.UTC().Format("2006-01-02 at 15:04") + " UTC."
	}
	return v.errorAnswer(e)
}

// fetchedLater says how what is not here comes here.
const fetchedLater = "This registry fetches versions from their origin when a client first asks for them."

// neighbours returns the versions that come right after and right before a version, in a
// list that has the newest first.
func neighbours(text string, offered []string) []string {
	at := slices.IndexFunc(offered, func(o string) bool { return newer(text, o) })
	if at < 0 {
		at = len(offered)
	}
	return offered[max(at-1, 0):min(at+1, len(offered))]
}

// withdrawnAnswer returns the page of a withdrawn version.
func (v *visit) withdrawnAnswer(p page, w index.WithdrawnVersion, latest string, waysOn []link) *answer {
	e := newErrorPage(p, http.StatusGone, cmp.Or(w.Notice.Reason, "No reason was given."))
	e.Name = v.route.Address.String() + " " + w.Version + " has been withdrawn"
	e.Title = e.Name
	e.More = "No version of it is offered any more."
	if latest != "" {
		e.More = "Choose another version, and run terraform init -upgrade or tofu init -upgrade where this one is installed or locked."
	}
	if w.Notice.Link != "" {
		e.Links = append(e.Links, link{"Read more", w.Notice.Link})
	}
	e.Links = append(e.Links, waysOn...)
	return v.errorAnswer(e)
}

func (v *visit) errorAnswer(e errorPage) *answer { return v.untaggedAnswer(e.Status, "error", e) }

// untaggedAnswer renders a page without a validator. It has no other page for a failure.
func (v *visit) untaggedAnswer(status int, name string, model any) *answer {
	body, err := render(name, model)
	if err != nil {
		v.logError("page failed", err)
		return &answer{status: http.StatusInternalServerError}
	}
	return &answer{status: status, body: body}
}
