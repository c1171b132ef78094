package offer

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// MergedProvider returns a provider with the lists of another one, which may be nil, and of
// further versions that can be fetched, and that are known by the lists only.
// m is the provider's registry.hcl, and age is the Age of the list. MergedProvider returns nil
// if there is no version.
func MergedProvider(a address.Address, present *Provider, further []wire.ProviderVersion, m *registryhcl.File, age time.Duration) *Provider {
	kept, _ := WithoutWithdrawn(m, further, nil)
	releases := withFurther(present.ReleaseList(), kept, m)
	if len(releases) == 0 {
		return nil
	}
	about := Metadata{File: m}
	if present != nil {
		about.Withdrawn = present.Withdrawn()
	}
	p := newProvider(a, releases, about)
	p.Age = age
	p.versions = sync.OnceValue(func() *wire.Document {
		return providerVersions(present.ReleaseList(), about.Withdrawn, further, m)
	})
	return p
}

// providerVersions returns the provider registry's list of a provider's releases, the newest
// first, and of further versions and platforms that the registry can fetch, with warnings
// about withdrawn and deprecated versions. m is the provider's registry.hcl, which also
// withdraws or deprecates further versions. The list is nil if it is empty.
func providerVersions(releases []*Release, withdrawn []WithdrawnVersion, further []wire.ProviderVersion, m *registryhcl.File) *wire.Document {
	var fetched map[string][]address.Platform
	further, withdrawn = WithoutWithdrawn(m, further, withdrawn)
	if len(further) > 0 {
		fetched = make(map[string][]address.Platform, len(further))
		releases = withFurther(releases, further, m)
		for _, v := range further {
			fetched[v.Version] = v.Platforms
		}
	}
	var list []wire.ProviderVersion
	var offered []*Release
	for _, r := range releases {
		more, canBeFetched := fetched[r.Version]
		signed := len(r.Signature.Keys) > 0
		if !signed && !canBeFetched {
			continue // clients would refuse it, so that only the mirror can offer it
		}
		offered = append(offered, r)
		platforms := append([]address.Platform{}, more...) // a signature of the origin is for these only
		if signed {
			platforms = r.platformsWith(more)
		}
		list = append(list, wire.ProviderVersion{Version: r.Version, Protocols: r.protocols, Platforms: platforms})
	}
	warnings := append(withdrawalWarnings(withdrawn), deprecationWarnings(offered)...)
	return wire.EncodeProviderVersions(list, warnings)
}

// platformsWith returns the platforms of a release, and those that can be fetched.
func (r *Release) platformsWith(further []address.Platform) []address.Platform {
	all := make([]address.Platform, len(r.Packages), len(r.Packages)+len(further))
	for i, p := range r.Packages {
		all[i] = p.Platform
	}
	for _, p := range further {
		if r.Package(p.OS, p.Arch) == nil {
			all = append(all, p)
		}
	}
	return all
}

// WithoutWithdrawn moves the withdrawn versions from a list of versions that can be fetched
// to the list of withdrawn versions in the tree.
func WithoutWithdrawn(m *registryhcl.File, list []wire.ProviderVersion, withdrawn []WithdrawnVersion) ([]wire.ProviderVersion, []WithdrawnVersion) {
	if m == nil || len(m.Withdrawn) == 0 {
		return list, withdrawn
	}
	kept := make([]wire.ProviderVersion, 0, len(list))
	all := Metadata{Withdrawn: slices.Clone(withdrawn)}
	for _, listed := range list {
		if v, err := version.NewVersion(listed.Version); err == nil {
			if n := m.WithdrawnVersion(v); n != nil {
				all.Withdraw(v, n)
				continue
			}
		}
		kept = append(kept, listed)
	}
	all.Sort()
	return kept, all.Withdrawn
}

// withFurther adds versions that are not in the tree to a list of releases. These versions
// have no packages.
func withFurther(releases []*Release, further []wire.ProviderVersion, m *registryhcl.File) []*Release {
	known := make(map[string]bool, len(releases)+len(further))
	for _, r := range releases {
		known[r.Version] = true
	}
	all := slices.Clone(releases)
	for _, f := range further {
		v, err := address.ParseProviderVersion(f.Version)
		if err != nil || known[f.Version] {
			continue
		}
		known[f.Version] = true
		r := &Release{Facts: Facts{version: v, Version: f.Version, Evidence: Evidence{Signature: new(Signature)}, deprecated: m.DeprecatedVersion(v)}, protocols: f.Protocols}
		if len(r.protocols) == 0 {
			r.protocols = wire.DefaultProtocols()
		}
		all = append(all, r)
	}
	address.SortNewestFirst(all, number[*Release])
	return all
}
