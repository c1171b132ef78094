package report

import (
	"maps"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Totals are numbers of a report.
type Totals struct {
	Offered  map[string]int      // versions, by the kind of the offer
	Withheld map[tree.Reason]int // problems
	Ignored  int                 // files
	Pending  int                 // packages that have not been read yet
}

// Clone returns a copy that can be changed.
func (t Totals) Clone() Totals {
	t.Offered, t.Withheld = maps.Clone(t.Offered), maps.Clone(t.Withheld)
	if t.Offered == nil {
		t.Offered, t.Withheld = map[string]int{KindProvider: 0, KindModule: 0}, make(map[tree.Reason]int)
	}
	return t
}

// Add adds a report without offers, or removes it if sign is -1. live reports whether another
// scan follows.
func (t *Totals) Add(r *Report, sign int, live bool) {
	for _, p := range r.Withheld {
		reason := p.shownReason(live)
		if t.Withheld[reason] += sign; t.Withheld[reason] == 0 {
			delete(t.Withheld, reason)
		}
	}
	t.Ignored += sign * r.IgnoredTotal
	t.Pending += sign * r.Pending
}

// Versions returns how many versions are offered.
func (t Totals) Versions() (n int) {
	for _, count := range t.Offered {
		n += count
	}
	return n
}

// Problems returns how many problems there are.
func (t Totals) Problems() (n int) {
	for _, count := range t.Withheld {
		n += count
	}
	return n
}
