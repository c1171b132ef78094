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
	"github.com/caddy-terraform/caddy-terraform-registry/handlers/mapping"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers/webhook"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/usage"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// DefaultPrefix is the prefix that clients without discovery use (checklist 11).
const DefaultPrefix = "/v1"

// Patience is how long a request waits for a package that has not been read yet.
// Clients give an attempt ten seconds (checklist 25).
const Patience = 8 * time.Second

// Registry answers the requests of one site. Its fields must not change once it
// serves.
type Registry struct {
	// Snapshot returns the latest snapshot, or nil while the first scan runs.
	Snapshot func() *index.Snapshot

	// SnapshotOf returns a snapshot that has at least what is offered at a place, which may be
	// known while the first scan still runs; nil while it is not. Nil: Snapshot.
	SnapshotOf func(context.Context, index.Place) *index.Snapshot

	// Redirect is how long the URLs are valid by which clients download archives in an
	// object store directly from there. Zero: the registry passes the archives on.
	Redirect time.Duration

	// Ready reports whether there is a Snapshot, and does not wait for one. Nil: there
	// always is.
	Ready func() bool

	// Hostnames are the registry's names. Empty: the name of the request.
	Hostnames []svchost.Hostname

	// Prefix is the prefix of every path except discovery's. It begins with a slash and
	// does not end in one. Empty: DefaultPrefix.
	Prefix string

	// PublicURL makes the URLs in answers absolute, for clients that do not
	// resolve relative ones. It does not end in a slash.
	PublicURL string

	// BaseURL returns the scheme and host by which the client has reached the registry,
	// without a slash at the end. It returns an empty string if they are unknown. Some
	// tools do not resolve relative URLs of provider packages and modules (checklist
	// 38, 87). Without a PublicURL, BaseURL makes these URLs absolute. May be nil.
	BaseURL func(*http.Request) string

	// Tree identifies the tree of the Snapshot, under all names of the registry. Links
	// are signed for files of this tree, and are invalid at the registry of another
	// tree. It is the same after a restart, and at all instances that share the tree.
	Tree string

	// Rules say who may read which packages. Nil: everything is public. Discovery is
	// always public (checklist 4).
	Rules *access.Rules

	// Authenticate returns the user who makes a request. It is called at most once a
	// request, and only for private packages. An error means that the credentials
	// cannot be checked at the moment. Nil: every request is anonymous.
	Authenticate func(*http.Request) (access.Subject, error)

	// AuthenticateVisitor is Authenticate for a request for a page. People have
	// sessions there, which the protocols do not accept. Nil: Authenticate.
	AuthenticateVisitor func(*http.Request) (access.Subject, error)

	// Links authorize clients to fetch private files. Required with Rules.
	Links *access.Links

	// Login returns the part of discovery for `terraform login`, and the same pointer
	// as long as that does not change. It returns nil if the part is unknown at the
	// moment, after a short wait. May be nil.
	Login func(context.Context) *wire.Login

	// Upstream fetches packages that the mirror does not have. Nil: only the tree is
	// offered.
	Upstream pull.Upstream

	// Publisher takes files that clients send into the tree. Without Rules it accepts
	// none. Nil: nothing is published over HTTP.
	Publisher Publisher

	// Follower looks at the repositories of hosted modules when it is told of a change. Nil:
	// there is nobody to tell.
	Follower Follower

	// WebhookSecrets are shared with the code hosts that tell of changes.
	WebhookSecrets []webhook.Secret

	// Log returns the transparency log, or nil while it cannot be read. Nil: the registry
	// has none.
	Log func() *tlog.Log

	// LogNames are the names of the registry for the Log. What lies under them is entered as
	// hosted. They may be known without Hostnames.
	LogNames []svchost.Hostname

	// RequireLog means that nothing is offered before the Log could be read.
	RequireLog bool

	// Next waits for a snapshot other than the given one, for which the wanted packages
	// have been read first. It returns nil if ctx ends before. A request that cannot be
	// answered from its snapshot waits for the next. Nil: no request waits.
	Next func(ctx context.Context, after *index.Snapshot, wanted ...index.Selection) *index.Snapshot

	// ClientAddress returns the IP address of the client, by which an Upstream is
	// shared fairly. Nil: the address of the connection.
	ClientAddress func(*http.Request) string

	// Changed starts a scan. It is called with the folders of the tree that have a new
	// file, in the form of index.ReportedFolder, and without folders when a file
	// differs from the snapshot. May be nil.
	Changed func(folders ...string)

	// Answered is called after each request, also for a page, with a description of the
	// request and the answer, which it may keep. May be nil.
	Answered func(*http.Request, *Exchange)

	// Usage counts downloads. Nil: they are not counted.
	Usage *usage.Counter

	// UsageBy says what of users is counted: usage.BySubject, usage.ByGroup, or nothing.
	UsageBy string

	// Logger receives failures of the server. May be nil.
	Logger *slog.Logger

	once      sync.Once
	prefix    string
	base      string // the beginning of every URL in answers
	tag       string // the part of validators that depends on base
	rules     *access.Rules
	open      bool // everyone may read everything
	discovery atomic.Pointer[discovery]
	requested atomic.Pointer[requestedBase] // the last one

	// The prefix of URLs that are always paths: the URLs of a list's other pages, as in the
	// public registry, and of redirects.
	pagePrefix string

	requests sync.Pool // of *request
	buffers  sync.Pool // of *[]byte
	mapped   mapping.Files

	pull   *pull.PullThrough // of the Upstream
	signed cache.Cache[signedID, []byte]

	largeWebhooks chan struct{} // has a place for each that may be received

	derivation atomic.Pointer[derivation] // of the snapshot that was asked for last
}

// prepare derives the fields that depend only on the configuration.
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
	g.pull = pull.NewPullThrough(g.Upstream, g.fetched)
	g.largeWebhooks = make(chan struct{}, largeWebhooks)
	g.signed.MaxBytes, g.signed.Size = maxSigned, func(body []byte) int { return len(body) }
}

// An answerer answers a request from r.snapshot. If it returns errPending or
// errReplaced, it has not written anything, and the next snapshot may have the answer.
type answerer func(*Registry, http.ResponseWriter, *request) error

// ServeHTTP answers r and returns true. If the path does not belong to the registry, it
// writes nothing and returns false. If there is a Publisher, every path below the
// prefix belongs to the registry for requests that would change something.
func (g *Registry) ServeHTTP(w http.ResponseWriter, r *http.Request) bool {
	g.once.Do(g.prepare)

	path := r.URL.EscapedPath()
	var service servicePath
	if path != wire.DiscoveryPath {
		path, ok := strings.CutPrefix(path, g.prefix+"/")
		if !ok {
			return false
		}
		service, ok = splitServicePath(path)
		if service.protocol == "tlog" && g.Log == nil || service.protocol == "refresh" && g.Follower == nil {
			ok = false
		}
		if !ok {
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
	defer func() { // also when an answer is broken off by a panic
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

// serve answers a request for a path of the registry. If it returns an error, it has
// written nothing.
func (g *Registry) serve(w http.ResponseWriter, r *request, service servicePath) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return g.serveChange(w, r, service)
	}
	if service.protocol == "" {
		return g.serveDiscovery(w, r) // discovery does not depend on the tree
	}
	if service.protocol == "ready" {
		return g.serveReady(w, r)
	}
	if service.protocol == "refresh" {
		return methodNotAllowed(http.MethodPost, "this path accepts the webhook of a code host by POST only")
	}
	if service.protocol == "tlog" {
		return g.serveLog(w, r, service.rest)
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
	return g.lookUp(w, r, func() error {
		if g.unknown(r) {
			return errPending
		}
		return answer(g, w, r)
	})
}

// lookUp answers r from a snapshot, unless the user may not read the target.
func (g *Registry) lookUp(w http.ResponseWriter, r *request, answer func() error) error {
	if r.snapshot = g.snapshotFor(r); r.snapshot == nil {
		return errStarting
	}
	if !r.target.readable {
		return g.notFound(w, r)
	}
	return g.await(r, answer)
}

// snapshotFor returns a snapshot for the answer to r, or nil if there is none yet.
//
// While the first scan runs, the requests of an init are answered from the target's folders alone.
// The time of an answer must not depend on a target that the user may not read. With a log, packages
// are offered when they have been compared with it, and a package that is fetched gets its entry from
// a snapshot.
func (g *Registry) snapshotFor(r *request) *index.Snapshot {
	if g.SnapshotOf == nil || !r.target.readable || g.Log != nil && (g.Log() == nil || g.Upstream != nil) {
		return g.Snapshot()
	}
	switch r.Kind {
	case KindProviderVersions, KindProviderDownload, KindProviderFile, KindMirrorIndex, KindMirrorArchives,
		KindModuleVersions, KindModuleDownload, KindModuleArchive:
		return g.SnapshotOf(r.Context(), g.listedPlace(r))
	}
	return g.Snapshot() // lists are of everything, and details say what uses a module
}

// await answers r, and waits for the next snapshot as long as that may have the answer.
// OpenTofu asks a mirror only once (checklist 72). A file that was replaced causes one scan, and no
// more: if the next snapshot has it as before, its volume may not be mounted.
func (g *Registry) await(r *request, answer func() error) error {
	isScanned := false
	attempt := func() error {
		err := answer()
		if errors.Is(err, errReplaced) && !isScanned {
			isScanned = true
			g.changed()
		}
		return err
	}
	err := attempt()
	for g.Next != nil && (errors.Is(err, errPending) || errors.Is(err, errReplaced)) {
		ctx, cancel := context.WithDeadline(r.Context(), r.waiting().Add(Patience))
		next := g.Next(ctx, r.snapshot, r.awaitedVersions()...)
		cancel()
		if next == nil {
			return err
		}
		r.snapshot = next
		err = attempt()
	}
	return err
}

// changed starts a scan.
func (g *Registry) changed(folders ...string) {
	if g.Changed != nil {
		g.Changed(folders...)
	}
}

// fetched starts a scan after a package was fetched. Keys may have come with a
// provider.
func (g *Registry) fetched(a address.Address) {
	if a.IsModule() {
		g.changed(tree.ReportedFolder(a))
		return
	}
	g.changed(tree.ReportedFolder(a), tree.ReportedKeys)
}

// Hostname returns the name under which the registry answers r: the name of the
// request, or, with Hostnames configured, one of them.
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
