package index

import (
	"maps"
	"slices"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A mergedMemo remembers the merged providers and modules of addresses that are found both
// with and without HOSTNAME: the same versions merge into the same result. Its zero value is
// empty.
type mergedMemo struct {
	mutex     sync.Mutex
	providers map[address.Address]mergedProvider
	modules   map[address.Address]mergedModule
}

// A mergedProvider is a provider and the releases that were merged into it.
type mergedProvider struct {
	*Provider
	releases []*Release
}

// A mergedModule is a module and the versions that were merged into it.
type mergedModule struct {
	*Module
	versions []*ModuleVersion
}

func (m *mergedMemo) provider(a address.Address, releases []*Release, s addressMetadata) *Provider {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if known := m.providers[a]; known.Provider != nil && slices.Equal(known.releases, releases) && known.metadata.sameAs(s) {
		return known.Provider
	}
	if m.providers == nil {
		m.providers = make(map[address.Address]mergedProvider)
	}
	m.providers[a] = mergedProvider{newProvider(a, releases, s), releases}
	return m.providers[a].Provider
}

func (m *mergedMemo) module(a address.Address, versions []*ModuleVersion, s addressMetadata) *Module {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if known := m.modules[a]; known.Module != nil && slices.Equal(known.versions, versions) && known.metadata.sameAs(s) {
		return known.Module
	}
	if m.modules == nil {
		m.modules = make(map[address.Address]mergedModule)
	}
	m.modules[a] = mergedModule{newModule(a, slices.Clone(versions), s), versions} // newModule orders them in place
	return m.modules[a].Module
}

// finish forgets addresses that are not in the last snapshot.
func (m *mergedMemo) finish(s *Snapshot) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	maps.DeleteFunc(m.providers, func(a address.Address, p mergedProvider) bool { return s.mergedProviders[a] != p.Provider })
	maps.DeleteFunc(m.modules, func(a address.Address, v mergedModule) bool { return s.mergedModules[a] != v.Module })
}

// sameAs is equal for metadata that was merged again.
func (s *addressMetadata) sameAs(other addressMetadata) bool {
	return s.file.Equal(other.file) && s.equal(addressMetadata{s.file, other.withdrawn})
}
