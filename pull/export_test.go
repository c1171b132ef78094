package pull

import (
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Limits, for tests outside of the package.
const (
	Spare    = spare
	MaxDates = maxDates
)

// MeasureNow adds up the mirrored files at once, as a fill has it done in the background when
// the sum is old.
func (q *Quota) MeasureNow(in ...tree.Part) {
	q.measuring.Lock()
	defer q.measuring.Unlock()
	q.walk(in)
}

// ForgetFailure has a version of a module fetched again at once, although that has failed.
func ForgetFailure(f *Filler, a address.Address, version string) {
	f.unfilled.Remove(fileID{a, version})
}
