package index

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A releaseMemo remembers verified releases, with their documents encoded. A release is
// reused if none of its files, nor its namespace's keys, have changed: a scan that finds
// nothing new costs little more than the walk.
type releaseMemo struct {
	mutex     sync.Mutex
	scan      uint32 // the number of the scan that runs, or of the last one
	providers map[address.Address]*rememberedProvider
}

// A rememberedProvider is a provider and the releases that it was made of.
type rememberedProvider struct {
	*Provider // nil if it was not offered yet
	releases  []*Release
	verified  map[string]verifiedRelease // by version
	seen      uint32                     // the last scan that found all of it unchanged
}

// A verifiedRelease is a release and the state that it was verified in.
type verifiedRelease struct {
	release *Release
	state   wire.SHA256 // of its files and keys
	since   time.Time
	seen    uint32 // the last scan that requested it

	unread *tree.Finding // why there is no release, if the reason is a fault
}

// verifiedFor is how long a verification is valid: keys expire over time.
const verifiedFor = time.Hour

// begin starts a scan.
func (m *releaseMemo) begin() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.scan++
}

// get returns the release if its files have not changed.
func (m *releaseMemo) get(a address.Address, version string, state wire.SHA256, now time.Time) (v verifiedRelease, ok bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	p := m.providers[a]
	if p == nil {
		return verifiedRelease{}, false
	}
	v, ok = p.verified[version]
	if !ok || v.state != state || now.Sub(v.since) >= verifiedFor || now.Before(v.since) {
		return verifiedRelease{}, false
	}
	v.seen = m.scan
	p.verified[version] = v
	return v, true
}

func (m *releaseMemo) put(a address.Address, version string, v verifiedRelease) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	v.seen = m.scan
	m.remembered(a).verified[version] = v
}

// retain keeps a provider whose folder has not changed.
func (m *releaseMemo) retain(a address.Address) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if p := m.providers[a]; p != nil {
		p.seen = m.scan
	}
}

// remembered returns the remembered provider, which may be new.
func (m *releaseMemo) remembered(a address.Address) *rememberedProvider {
	p := m.providers[a]
	if p == nil {
		p = &rememberedProvider{verified: make(map[string]verifiedRelease)}
		if m.providers == nil {
			m.providers = make(map[address.Address]*rememberedProvider)
		}
		m.providers[a] = p
	}
	return p
}

// provider returns the provider with these releases: the same one as before if it has not
// changed.
func (m *releaseMemo) provider(a address.Address, releases []*Release, s addressMetadata) *Provider {
	m.mutex.Lock()
	p := m.remembered(a)
	known := p.Provider != nil && slices.Equal(p.releases, releases) && p.metadata.equal(s)
	m.mutex.Unlock()
	if known { // only one folder of an address is offered
		return p.Provider
	}
	now := newProvider(a, releases, s)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	p.Provider, p.releases = now, releases
	return now
}

// finish forgets the providers that the scan of s did not find.
func (m *releaseMemo) finish(s *Snapshot) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	maps.DeleteFunc(m.providers, func(a address.Address, p *rememberedProvider) bool {
		if p.seen != m.scan {
			maps.DeleteFunc(p.verified, func(_ string, v verifiedRelease) bool { return v.seen != m.scan })
		}
		return p.Provider == nil || s.providers[a] != p.Provider
	})
}
