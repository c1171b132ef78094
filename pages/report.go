package pages

import (
	"cmp"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/follow"
)

// A reportPage lists the files in the tree that are not offered, with the reasons and
// the cures.
type reportPage struct {
	page
	Offered  int
	Pending  int
	Withheld []problem
	Ignored  []problem
	Notes    []problem // notes on packages that are offered
	Further  int       // the number of ignored files that are not listed
	Hint     string

	Connections []connection // of modules to repositories, those that fail first
	Unlisted    int          // the number of connections that are not listed
}

// A connection is a module whose versions are the tags of a repository.
type connection struct {
	follow.Connection
	URL string // the page of the module
}

// maxConnections is how many connections the report lists.
const maxConnections = 500

// connections returns what operators should know about repositories.
func (v *visit) connections() (list []connection, further int) {
	all, _ := v.view.Connections()
	rank := func(c follow.Connection) int {
		if c.Failure != nil {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b follow.Connection) int { return cmp.Compare(rank(a), rank(b)) })
	shown := all[:min(len(all), maxConnections)]
	for _, c := range shown {
		list = append(list, connection{c, v.url(route.ForAddress(c.Module))})
	}
	return list, len(all) - len(shown)
}

// A problem is an entry of the report, with the reason and the cure.
type problem struct {
	Path, Reason, Detail string
	URL                  string // of the page about it; empty: it has none
}

// report answers operators with the report of the scan. It asks anonymous visitors for
// credentials. For everyone else there is no such page.
func (v *visit) report() (*answer, error) {
	if !v.view.Operator() {
		anonymous, err := v.isAnonymous()
		switch {
		case err != nil:
			return nil, err
		case anonymous:
			return v.failedWith(http.StatusUnauthorized, ""), nil
		}
		return nil, fs.ErrNotExist
	}
	frame, err := v.page("Report")
	if err != nil {
		return nil, err
	}
	frame.Current = "report"
	r := v.view.Snapshot().Report()
	p := reportPage{
		page: frame, Offered: len(r.Offered), Pending: r.Pending, Withheld: problems(r.Withheld), Ignored: problems(r.Ignored),
		Further: r.IgnoredTotal - len(r.Ignored), Hint: r.Hint,
	}
	p.Notes = v.notes(r.Offered)
	p.Connections, p.Unlisted = v.connections()
	return pageAnswer("report", p)
}

// maxNoted is how many versions with the same note are named.
const maxNoted = 8

// notes returns the notes on what is offered. Versions of one address with the same note
// share an entry, since one block of a registry.hcl may deprecate many.
func (v *visit) notes(offered []index.Offer) []problem {
	type key struct{ address, note string }
	var all []problem
	at, versions := make(map[key]int), make(map[key]int)
	for i := range offered {
		o := &offered[i]
		for _, n := range o.Notes {
			k := key{o.Address, n}
			if versions[k]++; versions[k] > 1 {
				if versions[k] <= maxNoted {
					all[at[k]].Path += ", " + o.Version
				}
				continue
			}
			at[k] = len(all)
			p := problem{Path: o.Address + " " + o.Version, Reason: o.Kind, Detail: n}
			if a, err := address.Parse(o.Address); err == nil {
				p.URL = v.url(route.ForAddress(a).WithVersion(o.Version))
			}
			all = append(all, p)
		}
	}
	for k, n := range versions {
		if n > maxNoted {
			all[at[k]].Path += " and " + count(n-maxNoted, "more", "more")
		}
	}
	return all
}

func problems(list []index.Problem) []problem {
	all := make([]problem, len(list))
	for i, p := range list {
		all[i] = problem{Path: p.Path, Reason: strings.ReplaceAll(string(p.Reason), "_", " "), Detail: p.Detail}
	}
	return all
}
