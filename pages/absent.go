package pages

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// absentVersion answers a request for a version that is not offered. If the version is
// withdrawn, the answer says why. Otherwise it leads to the versions before and after it,
// and to the latest. The offered versions have the newest first; there may be none.
func (v *visit) absentVersion(latest string, offered []string, err error) (*answer, error) {
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
	var waysOn []link
	if latest != "" {
		to := v.route.withVersion("")
		waysOn = []link{{"Latest version " + latest, v.url(to)}}
		for _, text := range neighbours(v.route.version, offered) {
			if text != latest {
				waysOn = append(waysOn, link{text, v.url(to.withVersion(text))})
			}
		}
		waysOn = append(waysOn, link{"All versions", withQuery(v.url(to), "tab", tabVersions)})
	}
	for _, w := range withdrawn {
		if v.route.version == "" && latest == "" || w.Version == v.route.version {
			if latest == "" {
				waysOn = v.near()
			}
			return withdrawnAnswer(p, v.route.address, w, latest, waysOn)
		}
	}
	if latest == "" {
		return nil, err
	}
	e := newErrorPage(p, http.StatusNotFound, "There is no version "+v.route.version+" of "+v.route.address.String()+".")
	e.Links = waysOn
	return errorAnswer(e)
}

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
func withdrawnAnswer(p page, a address.Address, w index.WithdrawnVersion, latest string, waysOn []link) (*answer, error) {
	e := newErrorPage(p, http.StatusGone, cmp.Or(w.Notice.Reason, "No reason was given."))
	e.Name = a.String() + " " + w.Version + " has been withdrawn"
	e.Title = e.Name
	e.More = "No version of it is offered any more."
	if latest != "" {
		e.More = "Choose another version, and run terraform init -upgrade or tofu init -upgrade where this one is installed or locked."
	}
	if w.Notice.Link != "" {
		e.Links = append(e.Links, link{"Read more", w.Notice.Link})
	}
	e.Links = append(e.Links, waysOn...)
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
