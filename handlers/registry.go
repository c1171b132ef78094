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

// DefaultPrefix is where clients that do no discovery look.
const DefaultPrefix = "/v1"

// Registry answers the requests of one site. Its fields are not to change once
// it serves.
type Registry struct {
	// Snapshot returns what is offered now; nil while the first scan runs.
	Snapshot func() *index.Snapshot

	// Hostnames are the registry's own names. Empty: the name it was asked by.
	Hostnames []svchost.Hostname

	// Prefix of every path but discovery's, with a slash before and none
	// behind. Empty: DefaultPrefix.
	Prefix string

	// PublicURL makes the URLs in answers absolute, for clients that do not
	// resolve relative ones. It has no slash at its end.
	PublicURL string

	// BaseURL returns the scheme and the host, without a slash at its end, by which
	// the client has reached the registry, or nothing if they are not known. Where
	// there is no PublicURL, it makes the URLs absolute that some tools do not
	// resolve: those of the provider registry's packages and of modules. May be nil.
	BaseURL func(*http.Request) string

	// Tree identifies the tree that Snapshot is of, whatever name it is asked by:
	// links are signed for files of it, and worth nothing at the registry of another.
	// It is the same after a restart, and at all instances that share the tree.
	Tree string

	// Rules say who may read what. Nil: everybody may read everything. Discovery
	// is everybody's in any case (checklist 4).
	Rules *access.Rules

	// Authenticate tells who asks. It is called for what not everybody may read.
	// An error means that it cannot be told at the moment. Nil: nobody is known.
	Authenticate func(*http.Request) (access.Subject, error)

	// Links are what authorises clients to fetch files that not everybody may
	// read. Required with Rules.
	Links *access.Links

	// Login returns what discovery says of `terraform login`, the same pointer as
	// long as that is the same; nil when it is not known at the moment, after
	// waiting a little. May be nil.
	Login func(context.Context) *wire.Login

	// Upstream gets what the mirror does not hold. Nil: it has what it holds.
	Upstream Upstream

	// Next waits for a snapshot other than the one given, for which what is wanted
	// has been read first; nil when ctx ends first. A request that cannot be
	// answered from its snapshot waits for the next. Nil: none does.
	Next func(ctx context.Context, after *index.Snapshot, wanted ...index.Wanted) *index.Snapshot

	// ClientAddress returns the IP address of the client, by which what several of
	// them want of an Upstream is shared out. Nil: that of the connection.
	ClientAddress func(*http.Request) string

	// Changed is called when a file is no longer what the snapshot says, or has
	// come in; a scan should follow. May be nil.
	Changed func()

	// Answered is called after each request with what it was about. May be nil.
	Answered func(*http.Request, *Exchange)

	// Logger hears of failures that are the server's. May be nil.
	Logger *slog.Logger

	once      sync.Once
	discovery atomic.Pointer[discovery]
	prefix    string
	base      string // of every URL handed out
	tag       string // what it adds to validators
	rules     *access.Rules
	requested atomic.Pointer[requestedBase] // the last one

	buffers sync.Pool // of *[]byte
	joined  joinedDocuments
	signed  signedDocuments
}

// ServeHTTP answers r and returns true, or returns false without having
// written anything when the path is not one of the registry's.
func (g *Registry) ServeHTTP(w http.ResponseWriter, r *http.Request) bool {
	g.once.Do(g.prepare)

	path := r.URL.EscapedPath()
	serve := g.serveDiscovery
	if path != wire.DiscoveryPath {
		rest, ok := strings.CutPrefix(path, g.prefix+"/")
		if !ok {
			return false
		}
		protocol, below, nested := strings.Cut(rest, "/")
		switch {
		case protocol == "providers" && nested:
			serve = g.serveProviders
		case protocol == "modules":
			serve = g.serveModules
		case protocol == "mirror" && nested:
			serve = g.serveMirror
		default:
			return false
		}
		path = below
	}
	q := &request{Request: r, self: g.self(r)}
	if err := g.answer(w, q, path, serve); err != nil {
		g.writeError(w, q, err)
	}
	if g.Answered != nil {
		g.Answered(r, &q.Exchange)
	}
	return true
}

// A protocol answers the paths below its own.
type protocol func(w http.ResponseWriter, r *request) error

// A request is what every protocol needs to know of one.
type request struct {
	*http.Request
	Exchange
	snapshot *index.Snapshot
	segments []string         // of the path below the protocol's
	array    [6]string        // where they are: no path of the registry has more
	self     svchost.Hostname // the name the registry was asked by
	private  bool             // not everybody may read what it asks for
	asked    string           // the version that it asks for, if it is for one
	wanted   []index.Wanted   // what it is about, under each address that it may have in the tree
}

func (g *Registry) answer(w http.ResponseWriter, r *request, path string, serve protocol) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return fail(http.StatusMethodNotAllowed, "this registry is read with GET and HEAD")
	}
	if path == wire.DiscoveryPath {
		return serve(w, r) // which needs nothing to have been read
	}
	began := time.Now()
	var err error
	if r.segments, err = split(path, r.array[:0]); err != nil {
		return err
	}
	if r.snapshot = g.Snapshot(); r.snapshot == nil {
		return unavailable("the registry is reading its files for the first time: try again in a moment", nil)
	}
	err = serve(w, r)
	for g.Next != nil && (errors.Is(err, pending) || errors.Is(err, replaced)) {
		// Nothing has been written. What comes next may have the answer: OpenTofu
		// asks a mirror once only (checklist 72).
		ctx, cancel := context.WithDeadline(r.Context(), began.Add(Patience))
		next := g.Next(ctx, r.snapshot, r.wanted...)
		cancel()
		if next == nil {
			return err
		}
		r.snapshot = next
		err = serve(w, r)
	}
	return err
}

// Patience is how long a request waits for what has not been read yet, from its
// beginning. Clients give an attempt ten seconds (checklist 25).
const Patience = 8 * time.Second

// prepare derives what depends on the configuration only.
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
}

// A requestedBase is what a BaseURL has returned, and what it adds to validators.
type requestedBase struct{ base, tag string }

// baseFor is what comes before the prefix of the registry in the URLs of an answer
// that are to be absolute where possible.
func (g *Registry) baseFor(r *request) string {
	if g.PublicURL != "" || g.BaseURL == nil {
		return g.PublicURL
	}
	return g.BaseURL(r.Request)
}

// tagOf is what a base adds to validators, beside what g.tag has of it. It is kept
// for the last one: most sites are reached by one name.
func (g *Registry) tagOf(base string) string {
	if base == g.PublicURL {
		return ""
	}
	last := g.requested.Load()
	if last == nil || last.base != base {
		last = &requestedBase{base, "-" + shortHash(base)}
		g.requested.Store(last)
	}
	return last.tag
}

// self is the name the registry answers r as: the one it was asked by, or, with
// names configured, one of those.
func (g *Registry) self(r *http.Request) svchost.Hostname {
	name, err := address.ParseHostname(r.Host)
	switch {
	case len(g.Hostnames) > 0 && !slices.Contains(g.Hostnames, name):
		return g.Hostnames[0]
	case err != nil:
		// An address no provider can have, like [::1], still reaches the
		// registry; it needs some name in the URLs it is given.
		return "localhost"
	}
	return name
}
