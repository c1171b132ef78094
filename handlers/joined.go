package handlers

import (
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// joinedDocuments are documents that were made of what is held and of what can
// be had. They are good while what is held is the same, for a while.
type joinedDocuments struct {
	mutex sync.RWMutex
	made  map[joinedID]joinedDocument
	bytes int
}

// A joinedID is index.json of a provider, or VERSION.json of a version, which has
// a form for clients that know h1: only.
type joinedID struct {
	address address.Address
	version string
	h1Only  bool
}

type joinedDocument struct {
	held  any           // *index.Provider or *index.Release
	age   time.Duration // of a stale list; zero: it is not
	until time.Time
	*wire.Document
}

func (d joinedDocument) size() int { return len(d.Head) + len(d.Tail) }

// What can be had of a version does not change, so a VERSION.json is not looked
// at again for a minute. A list of versions is renewed behind the scenes when it
// is asked for: an index.json is not looked at for a second, nor for longer than
// its list is old, so that one that is to be renewed all the time is.
const (
	joinedLife      = time.Minute
	joinedIndexLife = time.Second
)

// mostJoined and mostJoinedBytes bound them. They are made again in microseconds.
const (
	mostJoined      = 4096
	mostJoinedBytes = 32 << 20
)

func (j *joinedDocuments) get(of joinedID, held any) (joinedDocument, bool) {
	j.mutex.RLock()
	d, ok := j.made[of]
	j.mutex.RUnlock()
	return d, ok && d.held == held && time.Now().Before(d.until)
}

func (j *joinedDocuments) put(of joinedID, d joinedDocument, life time.Duration) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.bytes += d.size()
	if old, ok := j.made[of]; ok {
		j.bytes -= old.size()
	}
	if j.made == nil || len(j.made) >= mostJoined || j.bytes > mostJoinedBytes {
		j.made = make(map[joinedID]joinedDocument)
		j.bytes = d.size()
	}
	d.until = time.Now().Add(life)
	j.made[of] = d
}
