package pages

import "net/http"

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
