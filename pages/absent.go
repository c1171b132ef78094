package pages

import (
	"cmp"
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// absentVersion answers a request for a version that is not offered. If the version is
// withdrawn, the answer says why. Otherwise it names the latest version, which is empty
// if none is offered.
func (v *visit) absentVersion(latest string, err error) (*answer, error) {
	status, _ := handlers.Status(err)
	if status != http.StatusNotFound && status != http.StatusGone {
		return nil, err
	}
	withdrawn, listErr := v.view.Withdrawn(v.route.address)
	if listErr != nil {
		return nil, err
	}
	p, pageErr := v.page(v.route.address.String())
	if pageErr != nil {
		return nil, pageErr
	}
	var useLatest *link
	if latest != "" {
		useLatest = &link{"Latest version " + latest, v.url(v.route.withVersion(""))}
	}
	for _, w := range withdrawn {
		if v.route.version == "" && latest == "" || w.Version == v.route.version {
			return withdrawnAnswer(p, v.route.address, w, useLatest)
		}
	}
	if latest == "" {
		return nil, err
	}
	e := newErrorPage(p, http.StatusNotFound, "There is no version "+v.route.version+" of "+v.route.address.String()+".")
	e.Links = []link{*useLatest}
	return errorAnswer(e)
}

// withdrawnAnswer returns the page of a withdrawn version.
func withdrawnAnswer(p page, a address.Address, w index.WithdrawnVersion, latest *link) (*answer, error) {
	e := newErrorPage(p, http.StatusGone, cmp.Or(w.Notice.Reason, "No reason was given."))
	e.Name = a.String() + " " + w.Version + " has been withdrawn"
	e.Title = e.Name
	if w.Notice.Link != "" {
		e.Links = append(e.Links, link{"Read more", w.Notice.Link})
	}
	if latest != nil {
		e.Links = append(e.Links, *latest)
	}
	return errorAnswer(e)
}

func errorAnswer(e errorPage) (*answer, error) {
	a, err := pageAnswer("error", e)
	if err != nil {
		return nil, err
	}
	a.status, a.tag = e.Status, ""
	return a, nil
}
