package handlers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// DefaultPrefix is where clients look that do no discovery (checklist 11).
const DefaultPrefix = "/v1"

// Patience is how long a request waits for what has not been read yet. Clients
// give an attempt ten seconds (checklist 25).
const Patience = 8 * time.Second

// Registry answers the requests of one site. Its fields must not change once it
// serves.
type Registry struct {
	// Snapshot returns what is offered now; nil while the first scan runs.
	Snapshot func() *index.Snapshot

	// Redirect has clients download archives that lie in an index.Bucket from its store,
	// by URLs that are valid for so long. Zero: they are passed on.
	Redirect time.Duration

	// Ready reports whether there is a Snapshot, and does not wait for one. Nil: there
	// always is.
	Ready func() bool

	// Hostnames are the registry's names. Empty: the name it was asked by.
	Hostnames []svchost.Hostname

	// Prefix of every path but discovery's. It begins with a slash and does not
	// end in one. Empty: DefaultPrefix.
	Prefix string

	// PublicURL makes the URLs in answers absolute, for clients that do not
	// resolve relative ones. It does not end in a slash.
	PublicURL string

	// BaseURL returns the scheme and host by which the client has reached the
	// registry, without a slash at the end, or an empty string if they are not
	// known. Without a PublicURL it makes those URLs absolute that some tools do
	// not resolve: of provider packages and of modules (checklist 38, 87). May be
	// nil.
	BaseURL func(*http.Request) string

	// Tree identifies the tree of the Snapshot, whatever name the registry is
	// asked by. Links are signed for files of this tree, and are invalid at the
	// registry of another. It is the same after a restart, and at all instances
	// that share the tree.
	Tree string

	// Rules say who may read what. Nil: everything is public. Discovery is public
	// in any case (checklist 4).
	Rules *access.Rules

	// Authenticate returns who makes a request. It is called at most once a
	// request, for what is not public. An error means that the credentials cannot
	// be checked at the moment. Nil: every request is anonymous.
	Authenticate func(*http.Request) (access.Subject, error)

	// AuthenticateVisitor is Authenticate for a request for a page: people have sessions
	// there, which do not count for the protocols. Nil: Authenticate.
	AuthenticateVisitor func(*http.Request) (access.Subject, error)

	// Links authorize clients to fetch files that are not public. Required with
	// Rules.
	Links *access.Links

	// Login returns what discovery says about `terraform login`, the same pointer
	// as long as that does not change; nil if it is not known at the moment, after
	// a short wait. May be nil.
	Login func(context.Context) *wire.Login

	// Upstream gets what the mirror does not have. Nil: only what is in the tree
	// is offered.
	Upstream Upstream

	// Publisher takes files that clients send into the tree. Without Rules no client may
	// send files. Nil: nothing is published over HTTP.
	Publisher Publisher

	// Next waits for a snapshot other than the one given, for which what is wanted
	// has been read first; it returns nil if ctx ends before. A request that cannot
	// be answered from its snapshot waits for the next. Nil: no request waits.
	Next func(ctx context.Context, after *index.Snapshot, wanted ...index.Wanted) *index.Snapshot

	// ClientAddress returns the IP address of the client, by which an Upstream is
	// shared fairly. Nil: the address of the connection.
	ClientAddress func(*http.Request) string

	// Changed has a scan follow. It is called with the folders of the tree that
	// something was added to, in the form of index.ReportedFolder, and without any when
	// a file differs from the snapshot. May be nil.
	Changed func(folders ...string)

	// Answered is called after each request, also for a page, with what it was about,
	// which it may keep. May be nil.
	Answered func(*http.Request, *Exchange)

	// Logger receives failures of the server. May be nil.
	Logger *slog.Logger

	once      sync.Once
	prefix    string
	base      string // of every URL handed out
	tag       string // what base adds to validators
	rules     *access.Rules
	open      bool // everyone may read everything
	discovery atomic.Pointer[discovery]
	requested atomic.Pointer[requestedBase] // the last one

	// Of the URLs of a list's other pages, which are paths in any case, as in the
	// public registry.
	pagePrefix string

	requests sync.Pool // of *request
	buffers  sync.Pool // of *[]byte

	merged    cache.Cache[mergedID, mergedDocument]
	signed    cache.Cache[signedID, []byte]
	vouchers  cache.Cache[voucherID, *index.Voucher]
	searchers cache.Cache[searcherID, *index.Searcher] // the last ones

	derivation atomic.Pointer[derivation] // of the snapshot that was asked for last
}

// prepare derives what depends on the configuration alone.
func (g *Registry) prepare() {
	g.prefix = g.Prefix
	if g.prefix == "" {
		g.prefix = DefaultPrefix
	}
	g.base, g.pagePrefix = g.PublicURL+g.prefix, g.prefix
	if u, err := url.Parse(g.PublicURL); err == nil {
		g.pagePrefix = u.EscapedPath() + g.prefix
	}
	if g.base != DefaultPrefix {
		g.tag = "-" + shortHash(g.base)
	}
	g.rules = g.Rules.WithHostnames(g.Hostnames)
	g.open = g.Rules == nil || g.rules.AllowsAll(access.Subject{}, access.Read)
	g.merged.MaxBytes, g.merged.Size = maxMerged, mergedDocument.size
	g.signed.MaxBytes, g.signed.Size = maxSigned, func(body []byte) int { return len(body) }
	g.vouchers.MaxBytes, g.vouchers.Size = maxVouchers, voucherSize
	g.searchers.MaxBytes, g.searchers.Size = maxListings, func(s *index.Searcher) int { return listedSize(s.Len()) }
}

// An answerer answers a request from r.snapshot. With errPending or errReplaced it
// has not written anything, and the next snapshot may have the answer.
type answerer func(*Registry, http.ResponseWriter, *request) error

// ServeHTTP answers r and returns true. If the path does not belong to the registry, it
// writes nothing and returns false. With a Publisher, every path below the prefix belongs
// to the registry for requests that would change something.
func (g *Registry) ServeHTTP(w http.ResponseWriter, r *http.Request) bool {
	g.once.Do(g.prepare)

	path := r.URL.EscapedPath()
	var service servicePath
	if path != wire.DiscoveryPath {
		path, ok := strings.CutPrefix(path, g.prefix+"/")
		if !ok {
			return false
		}
		if service, ok = splitServicePath(path); !ok {
			if !g.changes(r.Method) {
				return false
			}
			service = servicePath{rest: path}
		}
	}
	q, _ := g.requests.Get().(*request)
	if q == nil {
		q = new(request)
	}
	*q = request{Request: r, Exchange: new(Exchange), self: g.Hostname(r)}
	defer func() { // also when an answer is broken off, which is a panic
		if g.Answered != nil {
			g.Answered(r, q.Exchange)
		}
		*q = request{}
		g.requests.Put(q)
	}()
	if err := g.serve(w, q, service); err != nil {
		g.writeError(w, q, err)
	}
	return true
}

// serve answers a request for a path of the registry. An error means that nothing has
// been written.
func (g *Registry) serve(w http.ResponseWriter, r *request, service servicePath) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return g.serveChange(w, r, service)
	}
	if service.protocol == "" {
		return g.serveDiscovery(w, r) // which does not depend on the tree
	}
	if service.protocol == "ready" {
		return g.serveReady(w, r)
	}
	if service.original != "" {
		if err := g.standInFor(r, service.original); err != nil {
			return err
		}
	}
	var array [6]string // no path of the registry has more segments
	segments, err := split(service.rest, array[:0])
	if err != nil {
		return err
	}
	if g.Publisher != nil && namesMetadata(service.protocol, segments) {
		return g.answerMetadata(w, r, service.protocol, segments)
	}
	if r.snapshot = g.Snapshot(); r.snapshot == nil {
		return errStarting
	}
	var answer answerer
	switch service.protocol {
	case "providers":
		answer, err = g.resolveProviders(r, segments)
	case "modules":
		answer, err = g.resolveModules(r, segments)
	case "mirror":
		answer, err = g.resolveMirror(r, segments)
	}
	if err != nil {
		return err
	}
	if !r.target.readable {
		return g.missing(w, r)
	}
	return g.await(r, func() error {
		if r.unknown() {
			return errPending
		}
		return answer(g, w, r)
	})
}

// await answers r, and waits for the next snapshot as long as that may have the
// answer. OpenTofu asks a mirror only once (checklist 72).
func (g *Registry) await(r *request, answer func() error) error {
	err := answer()
	for g.Next != nil && (errors.Is(err, errPending) || errors.Is(err, errReplaced)) {
		ctx, cancel := context.WithDeadline(r.Context(), r.waiting().Add(Patience))
		next := g.Next(ctx, r.snapshot, r.wanted()...)
		cancel()
		if next == nil {
			return err
		}
		r.snapshot = next
		err = answer()
	}
	return err
}

// changed has a scan follow.
func (g *Registry) changed(folders ...string) {
	if g.Changed != nil {
		g.Changed(folders...)
	}
}

// filled has a scan follow after something was fetched. With a provider may have come keys.
func (g *Registry) filled(a address.Address) {
	if a.IsModule() {
		g.changed(tree.ReportedFolder(a))
		return
	}
	g.changed(tree.ReportedFolder(a), tree.ReportedKeys)
}

// Hostname is the name the registry answers r as: the one it was asked by, or, with
// Hostnames configured, one of them.
func (g *Registry) Hostname(r *http.Request) svchost.Hostname {
	name, err := address.ParseHostname(r.Host)
	switch {
	case len(g.Hostnames) > 0 && !slices.Contains(g.Hostnames, name):
		return g.Hostnames[0]
	case err != nil:
		// A name that no address can have, such as [::1], still reaches the
		// registry.
		return "localhost"
	}
	return name
}
