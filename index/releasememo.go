package index

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A releaseMemo remembers verified releases, with their documents encoded. A
// release of which no file, nor its namespace's keys, has changed is the same
// release: a scan that finds nothing new costs little more than the walk.
type releaseMemo struct {
	mutex        sync.Mutex
	before, seen map[releaseID]verified
	providers    map[address.Address]*Provider
}

type releaseID struct {
	address address.Address
	version string
}

// verified is a release nothing was wrong with.
type verified struct {
	state   wire.SHA256 // of all its files
	since   time.Time
	release *Release
	records []string // of the memo, which it was verified with
}

// verifiedFor is how long a verification holds: keys expire with time alone.
const verifiedFor = time.Hour

// get returns the release if its files are as they were.
func (m *releaseMemo) get(id releaseID, state wire.SHA256, now time.Time) *verified {
	known := m.known(id)
	if known == nil || known.state != state || now.Sub(known.since) >= verifiedFor || now.Before(known.since) {
		return nil
	}
	m.put(id, *known)
	return known
}

// known returns the release as it was, whatever has become of its files.
func (m *releaseMemo) known(id releaseID) *verified {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if v, ok := m.seen[id]; ok {
		return &v
	}
	if v, ok := m.before[id]; ok {
		return &v
	}
	return nil
}

func (m *releaseMemo) put(id releaseID, v verified) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.seen == nil {
		m.seen = make(map[releaseID]verified)
	}
	m.seen[id] = v
}

// finish forgets what the last scan, which made s, did not see.
func (m *releaseMemo) finish(s *Snapshot) {
	m.before, m.seen = m.seen, nil
	maps.DeleteFunc(m.providers, func(a address.Address, p *Provider) bool { return s.providers[a] != p })
}

// provider returns the provider with these releases, the same as before if it
// has not changed.
func (m *releaseMemo) provider(a address.Address, releases []*Release) *Provider {
	m.mutex.Lock()
	p := m.providers[a]
	m.mutex.Unlock()
	if p != nil && slices.Equal(p.Releases, releases) {
		return p
	}
	p = newProvider(a, releases)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.providers == nil {
		m.providers = make(map[address.Address]*Provider)
	}
	m.providers[a] = p
	return p
}

// documents are the ones a release has.
func (r *releaseFiles) documents() []*document {
	return slices.DeleteFunc([]*document{r.checksums, r.signature, r.manifest}, func(d *document) bool { return d == nil })
}

// unread counts the packages still to be read.
func (r *releaseFiles) unread() int {
	n := 0
	for _, p := range r.packages {
		if p.pending {
			n++
		}
	}
	return n
}

func (r *releaseFiles) pending() bool { return r.unread() > 0 }

// rewritten reports whether a package changed while it was read, or one that is
// offered is being written anew. The next scan tries again.
func (r *releaseFiles) rewritten(known *Release, now time.Time) bool {
	return slices.ContainsFunc(r.packages, func(p *packageArchive) bool {
		return p.unfinished(now) && (p.bad.reason == BeingWritten || known.Package(p.platform.OS, p.platform.Arch) != nil)
	})
}

// settled tells whether a further change to a document would be seen. A
// package's was looked at when it was read.
func (r *releaseFiles) settled(now time.Time) bool {
	return !slices.ContainsFunc(r.documents(), func(d *document) bool { return !d.stamp.settled(now) })
}

// state tells the files of a release, and the keys they are verified with, from
// any others.
func (r *releaseFiles) state(keys *keysFile) wire.SHA256 {
	b := make([]byte, 0, 128*len(r.packages)+512)
	for _, p := range r.packages {
		b = p.stamp.append(appendString(b, p.report))
	}
	for _, d := range r.documents() {
		b = d.stamp.append(appendString(b, d.report))
	}
	if keys != nil {
		b = append(b, keys.sum[:]...)
	}
	return sha256Of(b)
}
