package index

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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

// Kinds of Offer.
const (
	KindProvider = "provider"
	KindModule   = "module"
)

// An Offer is a version of a provider or a module that clients can install.
type Offer struct {
	Kind    string `json:"kind"`
	Address string `json:"address"`
	Version string `json:"version"`

	// Platforms of a provider release, as OS_ARCH.
	Platforms []string `json:"platforms,omitempty"`

	// Signature says whose signature clients get, in the form of
	// Signature.String; empty for a module.
	Signature string `json:"signature,omitempty"`

	// Notes are what the operator should know about an offered version.
	Notes []string `json:"notes,omitempty"`
}

// withNotice returns the offer with a note about the notice that deprecates it, which may be
// nil.
func (o Offer) withNotice(n *registryhcl.Notice) Offer {
	if n != nil {
		note := "it is deprecated"
		if why := n.String(); why != "" {
			note += ": " + why
		}
		o.Notes = append(slices.Clip(o.Notes), note)
	}
	return o
}

// A Problem is a file or version that is not offered, with the reason.
type Problem struct {
	Path    string      `json:"path"`
	Address string      `json:"address,omitempty"`
	Version string      `json:"version,omitempty"`
	Reason  tree.Reason `json:"reason"`

	// Detail is one plain sentence that says what to do.
	Detail string `json:"detail"`

	passes bool // the cause may be over a moment later: no earlier result is withheld
}

// newReport returns an empty report. In JSON its lists are empty, not null.
func newReport() *Report {
	return &Report{Offered: []Offer{}, Withheld: []Problem{}, Ignored: []Problem{}}
}

func (r *Report) withhold(p Problem) { r.Withheld = append(r.Withheld, p) }

func (r *Report) ignore(path string, reason tree.Reason, detail string) {
	r.ignoreProblem(Problem{Path: path, Reason: reason, Detail: detail})
}

func (r *Report) ignoreProblem(p Problem) {
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

// withdraw reports a version that a notice withdraws.
func (r *Report) withdraw(path string, a address.Address, version string, n *registryhcl.Notice) {
	detail := "it is withdrawn: " + cmp.Or(n.String(), "no reason is given")
	r.ignoreProblem(problemOf(tree.Findingf(tree.Withdrawn, "%s", detail), path, a, version))
}

// merge adds the report of another part of a walk or an assembly.
func (r *Report) merge(other *Report) {
	r.Offered = append(r.Offered, other.Offered...)
	r.Withheld = append(r.Withheld, other.Withheld...)
	r.Pending += other.Pending
	r.IgnoredTotal += other.IgnoredTotal
	r.TemporaryTotal += other.TemporaryTotal
	r.WithdrawnTotal += other.WithdrawnTotal
	room := MaxIgnored - len(r.Ignored)
	r.Ignored = append(r.Ignored, other.Ignored[:min(room, len(other.Ignored))]...)
}

// mergeGroup adds the report of a group, which may be nil, with its offers.
func (r *Report) mergeGroup(g *group) {
	if g == nil {
		return
	}
	r.merge(g.report)
	for _, e := range g.offered {
		first := len(r.Offered)
		for _, release := range e.provider.releaseList() {
			r.Offered = append(r.Offered, release.offer.withNotice(release.deprecated))
		}
		for _, v := range e.module.versionList() {
			offer := Offer{Kind: KindModule, Address: e.module.Address.String(), Version: v.Version, Notes: v.notes}
			r.Offered = append(r.Offered, offer.withNotice(v.deprecated))
		}
		offers := r.Offered[first:]
		if e.folder.address.Hostname == "" && g.twice != nil {
			noteShadows(offers, g.twice)
		}
		noteBuilds(offers)
	}
}

// noteShadows adds notes to hosted versions that are found under other hostnames too, which
// twice has by version.
func noteShadows(offers []Offer, twice map[string][]string) {
	for i := range offers {
		o := &offers[i]
		o.Notes = slices.Clip(o.Notes) // the release shares them
		for _, h := range slices.Sorted(slices.Values(twice[o.Version])) {
			o.Notes = append(o.Notes, fmt.Sprintf("it is found under %s too: asked as %s, the registry offers that one", h, h))
		}
	}
}

// finish ends a report that was joined from others. live reports whether another scan
// follows.
func (r *Report) finish(live bool) {
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

// noteBuilds adds notes to offers of one address that clients take for one another. The
// newest version is first.
func noteBuilds(offers []Offer) {
	number := func(o Offer) string { // the version without its build metadata
		text, _, _ := strings.Cut(o.Version, "+")
		return text
	}
	first := 0
	for i, o := range offers {
		of := offers[first]
		switch {
		case number(o) != number(of):
			first = i
		case o.Version != of.Version:
			offers[i].Notes = append(slices.Clip(o.Notes), fmt.Sprintf("clients take it for %s, from which it differs in build metadata only: withdraw or remove it", of.Version))
		}
	}
}

// problemOf returns a finding in the form of a report. The address may be zero, and the
// version empty.
func problemOf(f *tree.Finding, path string, a address.Address, version string) Problem {
	p := Problem{Path: path, Version: version, Reason: f.Reason, Detail: f.Detail, passes: f.Passes()}
	if a != (address.Address{}) {
		p.Address = a.String()
	}
	return p
}

// failure returns the error of a scan that no other scan follows and that fails as a whole
// with this report; nil if it does not fail.
func (r *Report) failure() error {
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
