package pages

import (
	"io/fs"
	"net/http"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
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
}

// A problem is an entry of the report, with the reason and the cure.
type problem struct {
	Path, Reason, Detail string
}

// report answers operators with the report of the scan. It asks anonymous visitors for
// credentials. For everyone else there is no such page.
func (v *visit) report() (*answer, error) {
	if !v.view.Operator() {
		subject, err := v.subject()
		if err != nil {
			return nil, err
		}
		if subject.Anonymous() && v.site.Registry.Rules != nil {
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
	for _, o := range r.Offered {
		for _, n := range o.Notes {
			p.Notes = append(p.Notes, problem{Path: o.Address + " " + o.Version, Reason: o.Kind, Detail: n})
		}
	}
	return pageAnswer("report", p)
}

func problems(list []index.Problem) []problem {
	all := make([]problem, len(list))
	for i, p := range list {
		all[i] = problem{p.Path, strings.ReplaceAll(string(p.Reason), "_", " "), p.Detail}
	}
	return all
}
