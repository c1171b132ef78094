package record

import (
	"context"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Replaces returns since when a package is on record with other bytes only; zero if it is not.
// The address is the address of its folder.
func (r *Recorder) Replaces(a address.Address, version string, on address.Platform, h1 string, sum wire.SHA256) time.Time {
	c := r.compare(a, tlog.Leaf{Version: version, Platform: on, Hashes: []string{h1, sum.ZH()}})
	if c.Record != tlog.Replaced {
		return time.Time{}
	}
	return c.Since
}

// Await waits until a package that is offered is on record, or for the end of ctx. The zero
// platform is any.
func (r *Recorder) Await(ctx context.Context, a address.Address, version string, on address.Platform) (recorded bool) {
	a = addressIn(placesOf(a, r.options.Hostnames)[0])
	for {
		progress := r.nextProgress()
		if l := r.Log(); l != nil && l.Has(a, version, on) {
			return true
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return false
		}
	}
}

// nextProgress returns a channel that is closed when more has been entered, or could not be.
func (r *Recorder) nextProgress() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.progress == nil {
		r.progress = make(chan struct{})
	}
	return r.progress
}

// wakeWaiting wakes those who wait.
func (r *Recorder) wakeWaiting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.progress != nil {
		close(r.progress)
		r.progress = nil
	}
}
