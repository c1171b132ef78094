package handlers

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// The size of a page of a list, as in the public registry.
const (
	defaultLimit = 15
	maxLimit     = 100 // a larger limit is lowered without an error
)

// A listRequest has the parameters of a list or a search.
type listRequest struct {
	// The registry to list: empty for hosted packages.
	hostname svchost.Hostname

	// namespace and name come from the path, system and inNamespace are filters of the
	// query. Empty: any.
	namespace, name, system, inNamespace string

	searched      catalog.Query // empty: the request is not a search
	limit, offset int

	path  string     // the path in the URLs of other pages
	query url.Values // the parameters that these URLs share
}

// listParameters are the parameters that the URLs of other pages keep. Other parameters
// are left out: they mean nothing, and may have secrets that clients put there.
var listParameters = []string{"q", "provider", "namespace", "verified"}

// resolveList reads the parameters of a list, in addition to the names in its path,
// which follow the protocol's: "/modules/acme". Lists show what is known, and never
// wait.
func (g *Registry) resolveList(r *request, path string) error {
	given := r.URL.Query() // parameters that cannot be parsed are left out
	l := r.list
	l.hostname, l.path, l.query = r.original, g.pagePrefix+r.root+path, make(url.Values)
	for _, name := range listParameters {
		value := given.Get(name)
		if len(value) > maxSegment {
			return fail(http.StatusBadRequest, "the parameter %s is too long: use at most %d bytes", name, maxSegment)
		}
		if value != "" {
			l.query.Set(name, strings.ToValidUTF8(value, ""))
		}
	}
	l.system, l.inNamespace = l.query.Get("provider"), l.query.Get("namespace")
	l.limit, l.offset = defaultLimit, 0
	if n, err := strconv.Atoi(given.Get("limit")); err == nil && n > 0 {
		l.limit = min(n, maxLimit)
	}
	if n, err := strconv.Atoi(given.Get("offset")); err == nil && n > 0 {
		l.offset = n
	}
	r.target = target{readable: true, private: !g.open}
	if g.open {
		return nil
	}
	subject, err := g.subject(r)
	if err == nil && subject.Anonymous() && r.hasCredentials() {
		// A list of only public packages would look complete.
		return fail(http.StatusUnauthorized, "the credentials are unknown, expired or revoked: %s", g.howToAuthenticate(r))
	}
	return err
}

// resolveSearch is resolveList for a search.
func (g *Registry) resolveSearch(r *request, path string) error {
	if err := g.resolveList(r, path); err != nil {
		return err
	}
	if r.list.searched = (&View{g, r}).ParseQuery(r.list.query.Get("q")); r.list.searched.IsEmpty() {
		return fail(http.StatusBadRequest, "there is nothing to search for: add ?q= with one or more words")
	}
	return nil
}

// writeList answers with a list. It calls encode unless the same list has been encoded
// before for a user whom the rules treat alike.
func (g *Registry) writeList(w http.ResponseWriter, r *request, encode func(*listing) (*wire.Document, error)) error {
	v := &View{g, r}
	id, subject, err := v.listingID()
	if err != nil {
		return err
	}
	l := r.list
	return g.writeDerived(w, r, derivedID{
		listingID: id, kind: r.Kind, query: sha256.Sum256([]byte(l.path + "?" + l.pageQuery(l.offset) + " " + l.searched.String())),
	}, func() (*wire.Document, error) {
		return encode(g.listing(r.snapshot, id, subject))
	})
}

// has reports whether an entry belongs in the list, which shows one registry.
func (l *listRequest) has(e *Listed) bool {
	a := &e.Address
	return a.Hostname == l.hostname &&
		(l.namespace == "" || l.namespace == a.Namespace) &&
		(l.name == "" || l.name == a.Name) &&
		(l.system == "" || !a.IsModule() || strings.EqualFold(l.system, a.System)) &&
		(l.inNamespace == "" || strings.EqualFold(l.inNamespace, a.Namespace))
}

// page returns the entries on the page, and the position of the page.
func (l *listRequest) page(ctx context.Context, all *listed) ([]*Listed, wire.Page, error) {
	var page []*Listed
	place, more := 0, false
	add := func(e *Listed) (next bool) {
		switch {
		case !l.has(e):
		case place < l.offset:
			place++
		case len(page) == l.limit:
			more = true
		default:
			place++
			page = append(page, e)
		}
		return !more
	}
	if l.searched.IsEmpty() {
		entries := all.entries()
		for i := range entries {
			if !add(&entries[i]) {
				break
			}
		}
	} else {
		found, _, err := all.search(ctx, l.searched, l.has, 0)
		if err == nil && found.Len() == 0 {
			found, _, err = all.search(ctx, l.searched.Loosen(), l.has, 0)
		}
		if err != nil {
			return nil, wire.Page{}, err
		}
		for i := range found.Len() {
			if e, _ := found.Item(i); !add(e) {
				break
			}
		}
	}
	return page, l.meta(more), nil
}

// meta returns the part of a list that describes its pages.
func (l *listRequest) meta(more bool) wire.Page {
	p := wire.Page{Limit: l.limit, CurrentOffset: l.offset}
	if more {
		p.NextOffset = l.offset + l.limit
		p.NextURL = l.path + "?" + l.pageQuery(p.NextOffset)
	}
	if l.offset > 0 {
		before := max(0, l.offset-l.limit)
		p.PrevOffset = &before
		p.PrevURL = l.path + "?" + l.pageQuery(before)
	}
	return p
}

// pageQuery returns the query of the page at an offset.
func (l *listRequest) pageQuery(offset int) string {
	query := make(url.Values, len(l.query)+2)
	for name, values := range l.query {
		query[name] = values
	}
	query.Set("limit", strconv.Itoa(l.limit))
	query.Set("offset", strconv.Itoa(offset))
	return query.Encode()
}
