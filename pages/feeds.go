package pages

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/feed"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// maxFed is how many modules and providers a feed of several looks at: those where something
// is new since the shortest time. Each of them has an entry, so that more than a feed has
// entries are not needed; a few more are there for notices about versions that are not here.
const maxFed = 2 * feed.MaxEntries

// feed answers with what is new: of everything that the visitor sees, of a namespace, or of a
// module or provider. It is made for each request of a private registry, so that only the
// entries that it has are written.
func (v *visit) feed() (*answer, error) {
	page := v.route
	page.Feed = false
	f := feed.Feed{
		ID: v.tag(page), Title: "New in " + v.site.identity(v.view.Hostname()).Name, Author: address.DisplayHostname(v.view.Hostname()),
		Self: v.absolute(v.route), About: v.absolute(page),
	}
	at := v.placeAddress()
	if at != (address.Address{}) {
		f.Title = "New in " + cmp.Or(at.String(), address.DisplayHostname(at.Hostname))
	}
	var events []feed.Event
	var err error
	if v.route.Kind == route.Home || v.route.Kind == route.Place {
		var unread bool
		if events, unread, err = v.eventsAt(at); unread || v.lacks(at) {
			f.Note = unreadNote
		}
	} else {
		events, err = v.eventsOf(v.route.Address)
	}
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		if a, err := v.withoutNews(); a != nil || err != nil {
			return a, err
		}
	}
	for _, e := range feed.Newest(events) {
		of := route.ForAddress(e.Address)
		version := of.WithVersion(e.Versions[0])
		f.Entries = append(f.Entries, e.Entry(v.tag(of), v.tag(version), v.absolute(version)))
	}
	body, err := f.Encode()
	if err != nil {
		return nil, err
	}
	return &answer{status: http.StatusOK, contentType: feed.Type, body: body, tag: assets.Tag(body)}, nil
}

// unreadNote is the note of a feed of several that lacks something whose own feed answers 503.
const unreadNote = "Some versions cannot be read at the moment. They follow when they have been read."

// lacks reports whether something at a place, or anywhere, has not been read yet.
func (v *visit) lacks(at address.Address) bool {
	if v.route.Kind == route.Home {
		return v.view.Unread(nil) != nil
	}
	return v.view.Unread(&at) != nil
}

// eventsAt returns what is new in a place, or everywhere. Of a module that has not been read yet,
// something is missing for the moment, which unread says, and the rest is there. The log has what a
// scan cannot read.
func (v *visit) eventsAt(at address.Address) (events []feed.Event, unread bool, err error) {
	newest, err := v.newestAt(at)
	if err != nil {
		return nil, false, err
	}
	for _, a := range newest {
		of, err := v.eventsOf(a)
		if err != nil {
			status, _ := handlers.Status(err)
			_, outage := handlers.Outage(err)
			if outage || status != http.StatusNotFound && status != http.StatusServiceUnavailable {
				return nil, false, err
			}
			unread = unread || status == http.StatusServiceUnavailable
		}
		events = append(events, of...)
	}
	return events, unread, nil
}

// newestAt returns what the visitor sees in a place, or everywhere: the modules and providers
// where something is new since the shortest time.
func (v *visit) newestAt(at address.Address) ([]address.Address, error) {
	modules, providers, err := v.visibleEntries()
	withdrawn, withdrawnErr := v.view.Withdrawals()
	if err = errors.Join(err, withdrawnErr); err != nil {
		return nil, err
	}
	lists := [][]handlers.Listed{modules, providers, withdrawn}
	if v.route.Kind == route.Place {
		for i := range lists {
			lists[i] = listedAt(lists[i], at)
		}
	}
	var addresses []address.Address
	known := make(map[address.Address]bool)
	for _, l := range firsts(maxFed, func(a, b handlers.Listed) int { return b.Updated.Compare(a.Updated) }, lists...) {
		if !known[l.Address] {
			known[l.Address] = true
			addresses = append(addresses, l.Address)
		}
	}
	return addresses, nil
}

// withoutNews returns the answer for a place in which the visitor sees nothing. It is nil for
// a registry that is empty.
func (v *visit) withoutNews() (*answer, error) {
	if v.route.Kind == route.Place {
		return v.nothingThere()
	}
	nothing, err := v.seesNothing()
	if !nothing {
		return nil, err
	}
	return v.failedWith(http.StatusUnauthorized, ""), nil
}

// eventsOf returns what is new about a module or provider. With an error, there is more to
// know, or nothing.
func (v *visit) eventsOf(a address.Address) (events []feed.Event, err error) {
	withdrawn, err := v.view.Withdrawn(a)
	if err != nil {
		return nil, err
	}
	var noticed time.Time
	if said := v.view.Metadata(); said != nil {
		noticed = said.Changed
	}
	var deprecated, gone []feed.Noticed
	published := func(version string, at time.Time) {
		events = append(events, feed.Event{Address: a, Kind: feed.Published, Versions: []string{version}, At: at})
	}
	if a.IsModule() {
		m, missing := v.view.Module(a)
		for _, o := range m.VersionList() {
			published(o.Version, o.Published())
			if n := o.Deprecated(); n != nil {
				deprecated = append(deprecated, feed.Noticed{Version: o.Version, Notice: *n})
			}
		}
		err = missing
	} else {
		p, missing := v.view.Provider(a)
		for _, r := range p.ReleaseList() {
			published(r.Version, r.Published())
			if n := r.Deprecated(); n != nil {
				deprecated = append(deprecated, feed.Noticed{Version: r.Version, Notice: *n})
			}
		}
		err = missing
	}
	for _, w := range withdrawn {
		gone = append(gone, feed.Noticed{Version: w.Version, Notice: w.Notice})
	}
	events = slices.Concat(events, feed.Notices(a, feed.Deprecated, noticed, deprecated), feed.Notices(a, feed.Withdrawn, noticed, gone))
	if status, _ := handlers.Status(err); err != nil && len(withdrawn) > 0 && status == http.StatusNotFound {
		err = nil // no version is offered any more
	}
	return events, err
}

// tag returns a URI for a page that stays the same if the path of the pages or the scheme
// changes (RFC 4151). Its authority has no port.
func (v *visit) tag(of route.Route) string {
	host, port, _ := strings.Cut(string(v.view.Hostname()), ":")
	if port != "" {
		port = ":" + port
	}
	return "tag:" + host + ",2026" + port + ":" + strings.TrimSuffix(of.Path(), "/")
}

// absolute returns the URL of a route with the scheme and host.
func (v *visit) absolute(r route.Route) string { return v.site.origin(v.request) + v.url(r) }

// origin returns the scheme and host of links that are followed from elsewhere. Where they
// are not known for certain, the scheme is the one of the connection.
func (s *Site) origin(r *http.Request) string {
	if known := s.Registry.KnownOrigin(r); known != "" {
		return known
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + string(s.Registry.Hostname(r))
}
