package pages

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"weak"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/feed"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// A pageKey has everything that a page for everyone depends on, beside the snapshot and the
// configuration.
type pageKey struct {
	route.Route
	query
	self svchost.Hostname
	base string // of the URLs of services; empty if the page has none

	counts uint64 // the generation of the counts of downloads
}

// clone returns the key in memory of its own: its strings may be parts of a request
// line, which can have a megabyte and would be kept with the page.
func (k pageKey) clone() pageKey {
	for _, s := range []*string{
		(*string)(&k.Address.Hostname), &k.Address.Namespace, &k.Address.Name, &k.Address.System, &k.Route.Version, &k.Part, &k.Rest,
		&k.tab, &k.from, &k.group, &k.namespace, &k.system, &k.registry, &k.q, &k.sort, &k.to, &k.signIn, (*string)(&k.self), &k.base,
	} {
		*s = strings.Clone(*s)
	}
	return k
}

// Bounds of the rendered pages that are kept, in bytes: of all, since anyone can ask
// for any number of them, and of one.
const (
	maxPages = 32 << 20
	maxPage  = 8 << 20
)

// A pageCache keeps the pages of the latest snapshot.
type pageCache struct {
	latest atomic.Pointer[snapshotPages]
}

// pages returns the pages of a snapshot. The pages of the snapshot before are dropped, unless s
// is not the newest: a request that is still answered from an older one has pages of
// its own.
func (c *pageCache) pages(s, newest *index.Snapshot) *snapshotPages {
	known := c.latest.Load()
	if known != nil && known.snapshot.Value() == s {
		return known
	}
	made := &snapshotPages{
		snapshot: weak.Make(s),
		Cache:    cache.Cache[pageKey, *answer]{MaxBytes: maxPages, Size: func(a *answer) int { return len(a.body) + len(a.zipped) }},
	}
	if s == newest && !c.latest.CompareAndSwap(known, made) {
		if known = c.latest.Load(); known.snapshot.Value() == s {
			return known
		}
	}
	return made
}

// snapshotPages are pages rendered from one snapshot, which they do not keep in
// memory.
type snapshotPages struct {
	snapshot weak.Pointer[index.Snapshot]
	cache.Cache[pageKey, *answer]
}

// answer renders a page, or takes it from the cache if the page is the same for
// everyone.
func (s *Site) answer(v *visit) (*answer, error) {
	if !v.view.Public() || !v.query.cacheable() || v.route.Kind == route.Log { // the log grows without a new snapshot
		return s.render(v)
	}
	if subject, err := v.subject(); err != nil || !subject.Anonymous() {
		return s.render(v) // the page has the name of the user
	}
	key := pageKey{Route: v.route, query: v.query, self: v.view.Hostname(), counts: s.Registry.Usage.Generation()}
	switch {
	case v.route.Feed:
		key.base = s.origin(v.request)
	case v.route.Kind == route.Home:
		key.base = v.view.ServicesURL()
	}
	pages := s.cache.pages(v.view.Snapshot(), s.Registry.Snapshot())
	if a, ok := pages.Get(key); ok {
		return a, nil
	}
	a, err := s.share(v, pages, key.clone())
	if err != nil && v.route.Address != (address.Address{}) {
		v.view.Await(v.route.Address)
	}
	return a, err
}

func (s *Site) share(v *visit, pages *snapshotPages, key pageKey) (*answer, error) {
	request, view := v.request.Clone(v.request.Context()), v.view.Detached(v.request) // nothing else changes these
	made := visit{site: s, route: key.Route, query: key.query}                        // an answer refers to its route, too
	return pages.Load(v.request.Context(), key, func(ctx context.Context) (*answer, time.Duration, error) {
		made.request = request.WithContext(ctx)
		made.view = view.Detached(made.request)
		a, err := s.render(&made)
		if err != nil || a.status != http.StatusOK || len(a.body) > maxPage || made.unrecorded {
			return a, 0, err
		}
		if strings.HasPrefix(cmp.Or(a.contentType, htmlType), "text/") || a.contentType == feed.Type {
			a.zipped = assets.Zip(a.body)
		}
		return a, cache.UntilEvicted, nil
	})
}

// cacheable reports whether a page is worth keeping. Pages of a search are not, since
// there is no end of queries.
func (q query) cacheable() bool { return q.q == "" && q.signIn == "" && q.to == "" }
