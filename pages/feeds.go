package pages

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/feed"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// maxFed bounds the modules and providers whose versions are looked at for a feed of several:
// those whose latest version was published last.
const maxFed = 500

// feed answers with what is new: of everything that the visitor sees, of a namespace, or of a
// module or provider.
func (v *visit) feed() (*answer, error) {
	page := v.route
	page.feed = false
	f := feed.Feed{
		ID: v.tag(page.path()), Title: "New in " + v.site.identity(v.view.Hostname()).Name, Author: address.DisplayHostname(v.view.Hostname()),
		Self: v.absolute(v.route), About: v.absolute(page),
	}
	at := v.route.address
	fed := []address.Address{at}
	if v.route.kind == homeRoute || v.route.kind == partRoute {
		if at.Hostname == v.view.Hostname() {
			at.Hostname = ""
		}
		var err error
		if fed, err = v.newestAt(at); err != nil {
			return nil, err
		}
		if len(fed) == 0 {
			if a, err := v.withoutNews(); a != nil || err != nil {
				return a, err
			}
		}
	}
	if at != (address.Address{}) {
		f.Title = "New in " + cmp.Or(at.String(), address.DisplayHostname(at.Hostname))
	}
	for _, a := range fed {
		news, err := v.newsOf(a)
		if err != nil && (len(fed) == 1 || !errors.Is(err, fs.ErrNotExist)) {
			return nil, err
		}
		f.Entries = append(f.Entries, news...)
	}
	body, err := f.Encode()
	if err != nil {
		return nil, err
	}
	return &answer{status: http.StatusOK, contentType: feed.Type, body: body, tag: contentTag(body)}, nil
}

// newestAt returns what the visitor sees in a place, or everywhere: first the modules and
// providers whose latest version was published last.
func (v *visit) newestAt(at address.Address) ([]address.Address, error) {
	modules, err := v.view.Modules()
	if err != nil {
		return nil, err
	}
	providers, err := v.view.Providers()
	if err != nil {
		return nil, err
	}
	var all []handlers.Listed
	for _, list := range [][]handlers.Listed{modules, providers} {
		for _, l := range list {
			if at == (address.Address{}) || isAt(l.Address, at) {
				all = append(all, l)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b handlers.Listed) int { return b.Published.Compare(a.Published) })
	var newest []address.Address
	for _, l := range all[:min(len(all), maxFed)] {
		newest = append(newest, l.Address)
	}
	return newest, nil
}

// withoutNews returns the answer for a place in which the visitor sees nothing. It is nil for
// a registry that is empty.
func (v *visit) withoutNews() (*answer, error) {
	if v.route.kind == partRoute {
		return v.nothingThere()
	}
	nothing, err := v.seesNothing()
	if !nothing {
		return nil, err
	}
	return v.failedWith(http.StatusUnauthorized, ""), nil
}

// newsOf returns what is new about a module or provider.
func (v *visit) newsOf(a address.Address) ([]feed.Entry, error) {
	n := news{visit: v, address: a}
	withdrawn, err := v.view.Withdrawn(a)
	if err != nil {
		return nil, err
	}
	if a.IsModule() {
		m, err := v.view.Module(a)
		if err != nil && (m != nil || len(withdrawn) == 0) {
			return nil, err
		}
		if m != nil {
			n.changed(m.Metadata())
			for _, o := range m.Versions {
				n.version(o.Version, o.Published(), o.Deprecated())
			}
		}
	} else {
		p, err := v.view.Provider(a)
		if err != nil && (p != nil || len(withdrawn) == 0) {
			return nil, err
		}
		if p != nil {
			n.changed(p.Metadata())
			for _, r := range p.Releases {
				n.version(r.Version, r.Published(), r.Deprecated())
			}
		}
	}
	for _, w := range withdrawn {
		n.withdrawn(w)
	}
	return n.entries, nil
}

// news collects what is new about a module or provider.
type news struct {
	*visit
	address address.Address
	at      time.Time // when its registry.hcl was written
	entries []feed.Entry
}

func (n *news) changed(f *registryhcl.File) {
	if f != nil {
		n.at = f.Changed
	}
}

func (n *news) version(version string, published time.Time, deprecated *registryhcl.Notice) {
	n.add(version, "version", "", published, n.address.String()+" "+version+" can be downloaded.")
	if deprecated != nil {
		n.add(version, "deprecated", deprecated.String(), n.at, cmp.Or(deprecated.String(), "No reason is given."))
	}
}

func (n *news) withdrawn(w index.WithdrawnVersion) {
	n.add(w.Version, "withdrawn", w.Notice.String(), n.at, cmp.Or(w.Notice.String(), "No reason is given."))
}

// add adds an entry. Its ID has the detail, so that another reason is news as well.
func (n *news) add(version, kind, detail string, at time.Time, text string) {
	to := addressRoute(n.address)
	to.version = version
	id := n.tag(to.path())
	title := n.address.String() + " " + version
	if kind != "version" {
		sum := sha256.Sum256([]byte(detail))
		id += "/" + kind + "/" + hex.EncodeToString(sum[:4])
		title += " is " + kind
	}
	n.entries = append(n.entries, feed.Entry{ID: id, Title: title, URL: n.absolute(to), Updated: at, Text: text, Kind: kind})
}

// tag returns a URI for something at a path that stays the same if the path of the pages or
// the scheme changes (RFC 4151).
func (v *visit) tag(path string) string {
	return "tag:" + string(v.view.Hostname()) + ",2026:" + strings.TrimSuffix(path, "/")
}

// absolute returns the URL of a route with the scheme and host.
func (v *visit) absolute(r route) string { return v.site.Registry.Origin(v.request) + v.url(r) }

// isAt reports whether an address lies at a place: a hostname, a namespace, or the modules of
// one name.
func isAt(a, at address.Address) bool {
	return a.Hostname == at.Hostname && (at.Namespace == "" || a.Namespace == at.Namespace) && (at.Name == "" || a.Name == at.Name)
}
