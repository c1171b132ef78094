package handlers

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"sync"
	"weak"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Listed is an entry in a list, with its address in the View.
type Listed struct {
	*catalog.Entry
	Address address.Address
}

// A listing is the visible part of a snapshot. It is made before anything is looked up
// in it, so that no answer depends on hidden packages. All callers share it that use the
// same name and that the rules treat alike.
type listing struct {
	modules, providers listed
	withdrawn          func() []Listed        // see View.Withdrawals; does its work when it is first called
	usedBy             func() *catalog.UsedBy // as well
	size               int                    // about, in bytes
}

// listed are all modules, or all providers. Both functions do their work when they are
// first called.
type listed struct {
	entries  func() []Listed
	searcher func() *catalog.Searcher
}

// A listingID says what a listing of a snapshot depends on.
type listingID struct {
	self     svchost.Hostname // empty if the tree has nothing under it
	audience string           // of the rules
}

// newListing returns the listing of a catalog for a subject.
func (g *Registry) newListing(c *catalog.Catalog, id listingID, subject access.Subject) *listing {
	newListed := func(entries []*catalog.Entry, newSearcher func([]*catalog.Entry) *catalog.Searcher) listed {
		l := listed{entries: sync.OnceValue(func() []Listed {
			return g.visible(c, entries, id.self, subject)
		})}
		l.searcher = sync.OnceValue(func() *catalog.Searcher {
			return newSearcher(entriesOf(l.entries()))
		})
		return l
	}
	l := &listing{
		modules:   newListed(c.Modules, c.ModuleSearcher),
		providers: newListed(c.Providers, c.ProviderSearcher),
		size:      listedSize(len(c.Modules) + len(c.Providers)),
	}
	l.withdrawn = sync.OnceValue(func() []Listed { return g.visible(c, c.Withdrawn, id.self, subject) })
	l.usedBy = sync.OnceValue(func() *catalog.UsedBy { return catalog.NewUsedBy(entriesOf(l.modules.entries())) })
	return l
}

func entriesOf(all []Listed) []*catalog.Entry {
	entries := make([]*catalog.Entry, len(all))
	for i := range all {
		entries[i] = all[i].Entry
	}
	return entries
}

// visible returns the entries that a subject may read, by address, hosted ones first.
// Where an address with a HOSTNAME and one without are merged, it returns the merged
// entry.
func (g *Registry) visible(c *catalog.Catalog, entries []*catalog.Entry, self svchost.Hostname, subject access.Subject) []Listed {
	all := make([]Listed, 0, len(entries))
	merged := make(map[address.Address]bool)
	for _, e := range entries {
		a := e.Address
		t := g.targetOf(self, a)
		if a.Hostname != "" && a.Hostname != t.place.Hostname {
			// The entry is under the name that the registry is asked by, but that name
			// does not include it (see target). So no request can name it.
			continue
		}
		if g.Rules != nil && !g.rules.Decide(subject, access.Read, t.resource()).Allowed {
			continue
		}
		if t.place.Merged {
			if a.Hostname == self {
				a = a.WithHostname("")
			}
			if both, ok := c.Merged(t.place.Address); ok {
				if merged[a] || both == nil && e.Versions > 0 {
					continue
				}
				if merged[a] = true; both != nil {
					e = both
				}
			}
		}
		all = append(all, Listed{e, a})
	}
	slices.SortFunc(all, func(a, b Listed) int { return a.Address.Compare(b.Address) })
	return slices.Clip(all)
}

// A derivation has listings and encoded documents that were made from a snapshot on
// request. It does not keep the snapshot in memory.
type derivation struct {
	snapshot  weak.Pointer[index.Snapshot]
	listings  cache.Cache[listingID, *listing]
	documents cache.Cache[derivedID, *wire.Document]
}

// A derivedID says what a document that is derived from a snapshot depends on.
type derivedID struct {
	listingID
	kind    Kind
	address address.Address
	merged  bool // together with the address without HOSTNAME
	version string
	counts  uint64 // the generation of the counts of downloads

	// query is the digest of the query of a list, with its path. A query may be much longer
	// than the list, and what is kept is bounded by the size of the lists.
	query [sha256.Size]byte
}

// Bounds of a derivation, in bytes. Anyone can ask by any number of names and for any
// number of queries. Making something again takes milliseconds.
const (
	maxListings = 64 << 20
	maxDerived  = 32 << 20
)

// listedSize estimates the size of that many entries in a listing, its searcher and what uses
// what. Some listings are kept, however many entries they have.
func listedSize(entries int) int { return min(entries<<9, maxListings/4) }

// derived returns the derivation of a snapshot. Requests that are still answered from
// an earlier snapshot get their own.
func (g *Registry) derived(s *index.Snapshot) *derivation {
	d := g.derivation.Load()
	if d != nil && d.snapshot.Value() == s {
		return d
	}
	made := &derivation{
		snapshot:  weak.Make(s),
		listings:  cache.Cache[listingID, *listing]{MaxBytes: maxListings, Size: func(l *listing) int { return l.size }},
		documents: cache.Cache[derivedID, *wire.Document]{MaxBytes: maxDerived, Size: func(d *wire.Document) int { return len(d.Head) + len(d.Tail) }},
	}
	if s == g.Snapshot() && !g.derivation.CompareAndSwap(d, made) {
		if d = g.derivation.Load(); d.snapshot.Value() == s {
			return d // another request was faster
		}
	}
	return made
}

// listing returns the part of a snapshot that a subject may see.
func (g *Registry) listing(s *index.Snapshot, id listingID, subject access.Subject) *listing {
	d := g.derived(s)
	if l, ok := d.listings.Get(id); ok {
		return l
	}
	id.self = svchost.Hostname(strings.Clone(string(id.self))) // it may share its memory with the request
	return d.listings.PutIfAbsent(id, g.newListing(catalog.For(s), id, subject), cache.UntilEvicted)
}

// writeDerived answers with a document that is derived from the snapshot. It encodes
// the document unless it has been encoded before.
func (g *Registry) writeDerived(w http.ResponseWriter, r *request, id derivedID, encode func() (*wire.Document, error)) error {
	id.counts = g.Usage.Generation()
	derived := g.derived(r.snapshot)
	d, ok := derived.documents.Get(id)
	if !ok {
		var err error
		if d, err = encode(); err != nil {
			return err
		}
		id.self = svchost.Hostname(strings.Clone(string(id.self))) // as in listing
		derived.documents.Put(id, d, cache.UntilEvicted)
	}
	return g.writeDocument(w, r, d, links{})
}
