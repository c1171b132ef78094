package pull

import (
	"context"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// MaxDates is a limit, for tests outside of the package.
const MaxDates = maxDates

// ForgetFailure has a version of a module fetched again at once, although that has failed.
func ForgetFailure(f *Filler, a address.Address, version string) {
	f.unfilled.Remove(fileID{a, version})
}

// CheckListNow has the list of a module compared with its record in the tree by the next request.
func CheckListNow(f *Filler, a address.Address) {
	c, _ := f.lists.Get(a)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.checked = time.Time{}
}

// ForgetUnlisted has the list of a module asked for again at once, although that has failed.
func ForgetUnlisted(f *Filler, a address.Address) { f.unlisted.Remove(a) }

// ReleaseMissed returns a release as for a caller that found none in memory, and asks only now, when
// another caller may have it.
func ReleaseMissed(ctx context.Context, f *Filler, a address.Address, version string) error {
	s, err := f.source(a)
	if err == nil {
		_, err = f.approveOnce(ctx, s, releaseID{a, version}, nil)
	}
	return err
}
