package record

import (
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// folderRest is how long a folder that the registry packs must stay the same before it is
// entered. A folder may be offered before all of it has been copied, and an entry stays. A
// folder that is renamed into place has had its rest before.
const folderRest = time.Minute

// Packed folders that are offered and not entered yet rest. The zero value has none.
type resting struct {
	now    time.Time
	before map[packed]seen
	seen   map[packed]seen
}

// A packed folder is the package of a version for a platform.
type packed struct {
	address  address.Address
	version  string
	platform address.Platform
}

// A seen folder has its files, by their hash, since a time.
type seen struct {
	files string
	since time.Time
}

// next begins another look at all folders.
func (r resting) next(now time.Time) resting {
	return resting{now: now, before: r.seen, seen: make(map[packed]seen)}
}

// split returns the leaves that can be entered now, and whether others rest. changes has when folders
// were last changed, as far as that is known.
func (r resting) split(leaves []tlog.Leaf, changes map[packed]time.Time) (ready []tlog.Leaf, rests bool) {
	for _, l := range leaves {
		if l.Pack == 0 {
			ready = append(ready, l)
			continue
		}
		k, now := packed{l.Address, l.Version, l.Platform}, seen{l.Hashes[0], r.now}
		if before, ok := r.before[k]; ok && before.files == now.files {
			now.since = before.since
		}
		if changed, ok := changes[k]; ok && changed.Before(now.since) {
			now.since = changed
		}
		if r.now.Sub(now.since) >= folderRest {
			ready = append(ready, l)
			continue
		}
		r.seen[k], rests = now, true
	}
	return ready, rests
}
