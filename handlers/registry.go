package handlers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
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

	// Next waits for a snapshot other than the one given, for which what is wanted
	// has been read first; it returns nil if ctx ends before. A request that cannot
	// be answered from its snapshot waits for the next. Nil: no request waits.
	Next func(ctx context.Context, after *index.Snapshot, wanted ...index.Wanted) *index.Snapshot

	// ClientAddress returns the IP address of the client, by which an Upstream is
	// shared fairly. Nil: that of the connection.
	ClientAddress func(*http.Request) string

	// Changed is called when a file differs from the snapshot or has been added,
	// so that a scan follows. May be nil.
	Changed func()

	// Answered is called after each request with what it was about. May be nil.
	Answered func(*http.Request, *Exchange)

	// Logger receives failures of the server. May be nil.
	Logger *slog.Logger

	once      sync.Once
	prefix    string
	base      string // of every URL handed out
	tag       string // what base adds to validators
	rules     *access.Rules
	discovery atomic.Pointer[discovery]
	requested atomic.Pointer[requestedBase] // the last one

	buffers sync.Pool // of *[]byte
	merged  *documentCache[mergedID, mergedDocument]
	signed  *documentCache[signedID, []byte]
}

// prepare derives what depends on the configuration alone.
func (g *Registry) prepare() {
	g.prefix = g.Prefix
	if g.prefix == "" {
		g.prefix = DefaultPrefix
	}
	g.base = g.PublicURL + g.prefix
	if g.base != DefaultPrefix {
		g.tag = "-" + shortHash(g.base)
	}
	g.rules = g.Rules.WithHostnames(g.Hostnames)
	g.merged = newDocumentCache[mergedID](maxMerged, mergedDocument.size)
	g.signed = newDocumentCache[signedID](maxSigned, func(body []byte) int { return len(body) })
}

// An answerer answers a request from r.snapshot. With errPending or errReplaced it
// has not written anything, and the next snapshot may have the answer.
type answerer func(*Registry, http.ResponseWriter, *request) error

// ServeHTTP answers r and returns true. If the path is not one of the registry's,
// it writes nothing and returns false.
func (g *Registry) ServeHTTP(w http.ResponseWriter, r *http.Request) bool {
	g.once.Do(g.prepare)

	path := r.URL.EscapedPath()
	protocol := "" // discovery
	if path != wire.DiscoveryPath {
		rest, ok := strings.CutPrefix(path, g.prefix+"/")
		if !ok {
			return false
		}
		var nested bool
		protocol, path, nested = strings.Cut(rest, "/")
		if protocol != "modules" && !(nested && (protocol == "providers" || protocol == "mirror")) {
			return false
		}
	}
	q := &request{Request: r, self: g.self(r)}
	if err := g.serve(w, q, protocol, path); err != nil {
		g.writeError(w, q, err)
	}
	if g.Answered != nil {
		g.Answered(r, &q.Exchange)
	}
	return true
}

// serve answers a request for a path below its protocol's. An error means that
// nothing has been written.
func (g *Registry) serve(w http.ResponseWriter, r *request, protocol, path string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return fail(http.StatusMethodNotAllowed, "this registry accepts GET and HEAD only")
	}
	if protocol == "" {
		return g.serveDiscovery(w, r) // which does not depend on the tree
	}
	var array [6]string // no path of the registry has more segments
	segments, err := split(path, array[:0])
	if err != nil {
		return err
	}
	if r.snapshot = g.Snapshot(); r.snapshot == nil {
		return unavailable("the registry is reading its files for the first time: try again in a moment", nil)
	}
	var answer answerer
	switch protocol {
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
	err = answer(g, w, r)
	for g.Next != nil && (errors.Is(err, errPending) || errors.Is(err, errReplaced)) {
		// OpenTofu asks a mirror only once (checklist 72).
		ctx, cancel := context.WithDeadline(r.Context(), r.waiting().Add(Patience))
		next := g.Next(ctx, r.snapshot, r.wanted()...)
		cancel()
		if next == nil {
			return err
		}
		r.snapshot = next
		err = answer(g, w, r)
	}
	return err
}

// changed has a scan follow.
func (g *Registry) changed() {
	if g.Changed != nil {
		g.Changed()
	}
}

// self is the name the registry answers r as: the one it was asked by, or, with
// Hostnames configured, one of them.
func (g *Registry) self(r *http.Request) svchost.Hostname {
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
