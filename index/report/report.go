package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Report lists the results for all files that a scan found, in the manner of
// golang.org/x/mod/zip's CheckedFiles: one bad entry never hides another. Paths are relative
// to the tree, with slashes.
type Report struct {
	// Offered are the versions that clients can install, by address, newest version first.
	Offered []Offer `json:"offered"`

	// Withheld are the files that were meant to be offered and are not.
	Withheld []Problem `json:"withheld"`

	// Ignored are files that do not belong in the tree, withdrawn versions, and files with
	// temporary names. At most MaxIgnored are listed.
	Ignored []Problem `json:"ignored"`

	// Hint says what to do when no file of a tree is found: which folder the root
	// should be, or where the first file goes.
	Hint string `json:"hint,omitempty"`

	// Pending counts the packages that have not been read yet.
	Pending int `json:"pending"`

	// IgnoredTotal counts the ignored files, listed or not.
	IgnoredTotal int `json:"ignored_total"`

	// TemporaryTotal counts the ignored files with temporary names, and WithdrawnTotal the
	// withdrawn versions.
	TemporaryTotal int `json:"temporary_total"`
	WithdrawnTotal int `json:"withdrawn_total"`
}

// MaxIgnored is how many ignored files a report lists. A tree may lie beside
// any amount of junk; the report must stay readable, and small.
const MaxIgnored = 1000

// A Problem is a file or version that is not offered, with the reason.
type Problem struct {
	Path    string      `json:"path"`
	Address string      `json:"address,omitempty"`
	Version string      `json:"version,omitempty"`
	Reason  tree.Reason `json:"reason"`

	// Detail is a plain sentence that says what to do.
	Detail string `json:"detail"`

	passing bool // see Passes
}

// Passes reports whether the cause may be over a moment later: then no earlier result is
// withheld.
func (p Problem) Passes() bool { return p.passing }

// New returns an empty report. In JSON its lists are empty, not null.
func New() *Report {
	return &Report{Offered: []Offer{}, Withheld: []Problem{}, Ignored: []Problem{}}
}

// Withhold adds a file that is not offered. The address may be zero, and the version empty.
func (r *Report) Withhold(path string, a address.Address, version string, f *tree.Finding) {
	r.Withheld = append(r.Withheld, newProblem(path, a, version, f))
}

// Ignore adds a file that does not belong in the tree.
func (r *Report) Ignore(path string, reason tree.Reason, detail string) {
	r.add(Problem{Path: path, Reason: reason, Detail: detail})
}

func (r *Report) add(p Problem) {
	r.IgnoredTotal++
	switch p.Reason {
	case tree.Temporary:
		r.TemporaryTotal++
	case tree.Withdrawn:
		r.WithdrawnTotal++
	}
	if len(r.Ignored) < MaxIgnored {
		r.Ignored = append(r.Ignored, p)
	}
}

// Withdraw reports a version that a notice withdraws.
func (r *Report) Withdraw(path string, a address.Address, version string, n *registryhcl.Notice) {
	detail := "it is withdrawn: " + cmp.Or(n.String(), "no reason is given")
	r.add(newProblem(path, a, version, tree.Findingf(tree.Withdrawn, "%s", detail)))
}

// Merge adds the report of another part of a walk or an assembly.
func (r *Report) Merge(other *Report) {
	r.Offered = append(r.Offered, other.Offered...)
	r.Withheld = append(r.Withheld, other.Withheld...)
	r.Pending += other.Pending
	r.IgnoredTotal += other.IgnoredTotal
	r.TemporaryTotal += other.TemporaryTotal
	r.WithdrawnTotal += other.WithdrawnTotal
	room := MaxIgnored - len(r.Ignored)
	r.Ignored = append(r.Ignored, other.Ignored[:min(room, len(other.Ignored))]...)
}

// Finish ends a report that was joined from others. live reports whether another scan
// follows.
func (r *Report) Finish(live bool) {
	for i := range r.Withheld {
		r.Withheld[i].Reason = r.Withheld[i].shownReason(live)
	}
	r.sort()
}

// sort makes two reports of the same tree equal, in whatever order the scan's workers
// finished. Offers of one address keep their order.
func (r *Report) sort() {
	slices.SortStableFunc(r.Offered, func(a, b Offer) int {
		return cmp.Or(-cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Address, b.Address))
	})
	byPath := func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Detail, b.Detail))
	}
	slices.SortStableFunc(r.Withheld, byPath)
	slices.SortStableFunc(r.Ignored, byPath)
}

// newProblem returns a finding in the form of a report. The address may be zero, and the
// version empty.
func newProblem(path string, a address.Address, version string, f *tree.Finding) Problem {
	p := Problem{Path: path, Version: version, Reason: f.Reason, Detail: f.Detail, passing: f.Passes()}
	if a != (address.Address{}) {
		p.Address = a.String()
	}
	return p
}

// Failure returns the error of a scan that no other scan follows and that fails as a whole
// with this report; nil if it does not fail.
func (r *Report) Failure() error {
	i := slices.IndexFunc(r.Withheld, func(p Problem) bool { return p.Reason == tree.Exhausted || p.Reason == tree.StoreFailed })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", r.Withheld[i].Path, r.Withheld[i].Detail)
}

// shownReason returns the reason that a report shows. If another scan follows, some reasons
// do not appear in reports.
func (p Problem) shownReason(live bool) tree.Reason {
	if live && (p.Reason == tree.Exhausted || p.Reason == tree.StoreFailed) {
		return tree.Unreadable
	}
	return p.Reason
}
