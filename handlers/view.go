package handlers

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A View is a snapshot as the user of one request may see it, under the registry's name in
// the request. In lists, counts and errors of look-ups, hidden packages look as if they did
// not exist. The API and the pages read everything except files through a View.
//
// In a View, addresses without a HOSTNAME are hosted, and addresses with one belong to that
// registry.
type View struct {
	registry *Registry
	request  *request
}

// Visit calls render with a view for a request. If render returns the error of a
// look-up for a package that has not been read yet, Visit calls it again with a view of
// the next snapshot. Before that, render must not have written anything.
func (g *Registry) Visit(r *http.Request, render func(*View) error) error {
	g.once.Do(g.prepare)
	q := &request{Request: r, Exchange: new(Exchange), self: g.Hostname(r), visit: true}
	if q.snapshot = g.Snapshot(); q.snapshot == nil {
		return errStarting
	}
	v := &View{g, q}
	return g.await(q, func() error { return render(v) })
}

// Detached returns the View for work that may go on when the request has been answered. It
// refers to r, a copy of the request or one with another context.
func (v *View) Detached(r *http.Request) *View {
	q := *v.request
	q.Request, q.Exchange = r, new(Exchange)
	return &View{v.registry, &q}
}

// Await tells Visit what to wait for, if render returns the error of a look-up in another
// View of the same snapshot.
func (v *View) Await(a address.Address) {
	_ = v.resolve(a)
}

// Snapshot returns the snapshot of the view. After a look-up, packages and
// documentation are read from it.
func (v *View) Snapshot() *index.Snapshot { return v.request.snapshot }

// Hostname returns the name of the registry, which is the first part of hosted
// addresses in configurations.
func (v *View) Hostname() svchost.Hostname { return v.request.self }

// ServicesURL returns the beginning of the absolute URLs of the registry's services,
// such as "https://registry.example.com/v1".
func (v *View) ServicesURL() string {
	base := v.registry.baseFor(v.request)
	if base == "" {
		base = "https://" + string(v.request.self)
	}
	return base + v.registry.prefix
}

// Origin returns the scheme and host at which browsers reach the registry, for pages to
// which another site sends them back.
func (g *Registry) Origin(r *http.Request) string {
	return cmp.Or(g.KnownOrigin(r), "https://"+string(g.Hostname(r)))
}

// KnownOrigin is Origin where it is known for certain, else empty.
func (g *Registry) KnownOrigin(r *http.Request) string {
	if u, err := url.Parse(g.PublicURL); g.PublicURL != "" && err == nil {
		return u.Scheme + "://" + u.Host
	}
	if g.BaseURL != nil {
		return g.BaseURL(r)
	}
	return ""
}

// LinkQuery returns the query that makes the URL of a file of the last look-up a signed
// link, for a browser whose credentials the protocols do not accept. The hostname is the
// HOSTNAME of the version in the tree. The query is empty if there is no need, or no key.
func (v *View) LinkQuery(hostname svchost.Hostname, version, file string) string {
	g, t := v.registry, &v.request.target
	if !t.private || g.Links == nil {
		return ""
	}
	query, err := g.Links.AppendQuery(nil, g.Tree, filePath("", t.WithHostname(hostname), version, file), g.Links.Expiry(time.Now()))
	if err != nil {
		return ""
	}
	return string(query)
}

// FilesURL returns the beginning of the URLs of files: a path, unless there is a
// PublicURL.
func (v *View) FilesURL() string { return v.registry.base }

// Public reports whether everyone may see everything, so that no answer depends on the
// user.
func (v *View) Public() bool { return v.registry.open }

// PublicUnder reports whether everyone may see everything under the hostname of another
// registry or, if that is empty, everything that is hosted.
func (v *View) PublicUnder(hostname svchost.Hostname) bool {
	g := v.registry
	return g.open || g.rules.AllowsHostname(access.Subject{}, access.Read, hostname)
}

// Fetches reports whether clients get versions of a mirrored provider or module that are not
// in the tree. That depends on the configuration alone.
func (v *View) Fetches(a address.Address) bool {
	t := v.targetOf(a)
	return !t.place.Hosted && v.registry.fetches(&t, v.request.snapshot)
}

// Subject returns the user who makes the request.
func (v *View) Subject() (access.Subject, error) { return v.registry.subject(v.request) }

// Operator reports whether the user may manage everything, and so may know what is
// withheld and why. Without rules no user is an operator.
func (v *View) Operator() bool {
	if v.registry.Rules == nil {
		return false
	}
	subject, err := v.Subject()
	return err == nil && v.registry.rules.AllowsAll(subject, access.Manage)
}

// Module looks up a module. The error is the answer for a module that the user may not
// see, that does not exist, or that has not been read yet.
func (v *View) Module(a address.Address) (*index.Module, error) {
	if err := v.resolve(a); err != nil {
		return nil, err
	}
	m := v.request.module()
	if m == nil {
		return nil, v.registry.pendingOrNotFound(nil, v.request)
	}
	return m, v.complete()
}

// Provider looks up a provider like Module.
func (v *View) Provider(a address.Address) (*index.Provider, error) {
	if err := v.resolve(a); err != nil {
		return nil, err
	}
	p := v.request.provider()
	if p == nil {
		return nil, v.registry.pendingOrNotFound(nil, v.request)
	}
	return p, v.complete()
}

// names returns the names of the registry: see Registry.isName.
func (v *View) names() []svchost.Hostname {
	if len(v.registry.Hostnames) > 0 {
		return v.registry.Hostnames
	}
	return []svchost.Hostname{v.request.self}
}

// targetOf returns the target of an address in the view.
func (v *View) targetOf(a address.Address) target { return v.registry.targetOf(v.request.self, a) }

// resolve is what all look-ups begin with. What is not there is answered as in a list of versions.
func (v *View) resolve(a address.Address) error {
	g, r := v.registry, v.request
	r.Kind = KindProviderVersions
	if a.IsModule() {
		r.Kind = KindModuleVersions
	}
	r.target = g.targetOf(r.self, a)
	if err := g.authorize(r); err != nil {
		return err
	}
	if !r.target.readable {
		return g.notFound(nil, r)
	}
	return nil
}

// complete returns an error if the snapshot may lack some versions.
func (v *View) complete() error {
	if v.request.listPending() {
		return errPending
	}
	return nil
}

// Modules returns the modules that the user may see, hosted ones first, ordered by
// address. The list is shared, and must not be changed.
func (v *View) Modules() ([]Listed, error) {
	l, err := v.listing()
	if err != nil {
		return nil, err
	}
	return l.modules.entries(), nil
}

// Providers returns the providers that the user may see, like Modules.
func (v *View) Providers() ([]Listed, error) {
	l, err := v.listing()
	if err != nil {
		return nil, err
	}
	return l.providers.entries(), nil
}

// Unread returns an error if lists and searches lack something that the user may see, because it
// could not be read yet: something at or below an address, of which parts may be empty, or
// anything without an address. What only its folder's path tells is told to nobody who may not read
// all of it.
func (v *View) Unread(at *address.Address) error {
	for u := range v.Snapshot().Unread() {
		t := v.targetOf(u.Address)
		if at != nil && !isBelow(v.Folded(u.Address), u.IsModule, *at) {
			continue
		}
		allowed := v.Public()
		if !allowed {
			subject, err := v.Subject()
			if err != nil {
				return err
			}
			rules := v.registry.rules
			allowed = rules.AllowsAll(subject, access.Read) || u.IsWhole && rules.Decide(subject, access.Read, t.resource()).Allowed
		}
		if allowed {
			return errPending
		}
	}
	return nil
}

// isBelow reports whether an address, or what begins like it, may lie at or below another one.
func isBelow(a address.Address, isModule bool, at address.Address) bool {
	begins := a.Namespace == "" && a.Hostname == "" // it may have a HOSTNAME
	same := func(name, at string) bool { return name == "" || at == "" || strings.EqualFold(name, at) }
	return (a.Hostname == at.Hostname || begins) && same(a.Namespace, at.Namespace) && same(a.Name, at.Name) && (isModule || at.Name == "")
}

// Folded returns an address as lists have it: without a HOSTNAME that is the registry's own, if
// both name the same.
func (v *View) Folded(a address.Address) address.Address {
	if t := v.targetOf(a); a.Hostname == v.request.self && t.place.Hosted {
		return a.WithHostname("")
	}
	return a
}

// WithoutOwnName returns the address of a provider or module, without a HOSTNAME that is a name of the
// registry, if the snapshot has the same without it. What is hosted has the same rules under each
// name, so that the user may see either or none. The last look-up stays the last one.
func (v *View) WithoutOwnName(a address.Address) address.Address {
	t, s := v.targetOf(a), v.request.snapshot
	own := v.targetOf(a.WithHostname("")).place
	same := t.place.Hosted
	if a.IsModule() {
		same = same && s.Module(t.place) == s.Module(own)
	} else {
		same = same && s.Provider(t.place) == s.Provider(own)
	}
	if same {
		return a.WithHostname("")
	}
	return a
}

// Hosted reports whether what is at an address in the tree is hosted. Only the configuration decides.
func (v *View) Hosted(a address.Address) bool { return v.registry.located(a).place.Hosted }

// Own reports whether an address in the tree is the same in the view. The name in the request may be
// the HOSTNAME of what is mirrored, under which the view has what is hosted.
func (v *View) Own(a address.Address) bool {
	return v.Hosted(a) == v.targetOf(a).place.Hosted
}

// Withdrawals returns the modules and providers that the user may see and whose versions are
// all withdrawn, like Modules. Some may also be in the lists of Modules and Providers, see
// catalog.Catalog.
func (v *View) Withdrawals() ([]Listed, error) {
	l, err := v.listing()
	if err != nil {
		return nil, err
	}
	return l.withdrawn(), nil
}

// listing returns the part of the snapshot that the user may see.
func (v *View) listing() (*listing, error) {
	id, subject, err := v.listingID()
	if err != nil {
		return nil, err
	}
	return v.registry.listing(v.Snapshot(), id, subject), nil
}

// listingID returns what a list in the view depends on. It authenticates the user only
// if that makes a difference.
func (v *View) listingID() (id listingID, subject access.Subject, err error) {
	if catalog.For(v.Snapshot()).Has(v.request.self) {
		id.self = v.request.self
	}
	if v.Public() {
		return id, subject, nil
	}
	if subject, err = v.Subject(); err != nil {
		return id, subject, err
	}
	id.audience = v.registry.rules.Audience(subject, access.Read)
	return id, subject, nil
}

// ModuleVersion looks up a version of a module like Module. An empty version is the
// latest. A version that the tree lacks is not fetched. If only the version is missing, or
// cannot be told yet, ModuleVersion returns the module with the error.
func (v *View) ModuleVersion(a address.Address, version string) (*index.Module, *index.ModuleVersion, error) {
	if err := v.resolve(a); err != nil {
		return nil, nil, err
	}
	return v.registry.findModule(v.request, version)
}

// Describe returns the variables, outputs and other parts of a version of a module that
// was looked up.
func (v *View) Describe(m *index.ModuleVersion) (*moduledoc.Package, error) {
	p, err := v.Snapshot().Describe(v.request.Context(), m)
	return p, v.unreadable("package of the module", err)
}

// ModuleFiles lists the files of the package of a module that was looked up.
func (v *View) ModuleFiles(m *index.ModuleVersion) (*content.Files, error) {
	f, err := v.Snapshot().ListModule(v.request.Context(), m)
	return f, v.unreadable("package of the module", err)
}

// ModuleFile returns a file of the package of a module that was looked up, by its path
// from the root module. The error is fs.ErrNotExist if there is none, and
// content.ErrFileTooLarge if it is too large.
func (v *View) ModuleFile(m *index.ModuleVersion, name string) ([]byte, error) {
	text, err := v.Snapshot().ReadModuleFile(v.request.Context(), m, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, content.ErrFileTooLarge) {
		return nil, err
	}
	return text, v.unreadable("package of the module", err)
}

// ProviderRelease looks up a release of a provider like Provider. An empty version is
// the latest. A release that the tree lacks is not fetched. If only the release is missing,
// or cannot be told yet, ProviderRelease returns the provider with the error.
func (v *View) ProviderRelease(a address.Address, version string) (*index.Provider, *index.Release, error) {
	if err := v.resolve(a); err != nil {
		return nil, nil, err
	}
	return v.registry.findRelease(v.request, version)
}

// Docs lists the documentation of a release that was looked up, or returns nil if there
// is none.
func (v *View) Docs(r *index.Release) (*content.Docs, error) {
	d, err := v.Snapshot().Docs(v.request.Context(), r)
	return d, v.unreadable("documentation of the release", err)
}

// ReadDoc returns the text of a page of that documentation, cut if it is too long. The
// error is fs.ErrNotExist if the page is gone.
func (v *View) ReadDoc(p *content.DocPage) (text string, cut bool, err error) {
	text, cut, err = v.Snapshot().ReadDoc(v.request.Context(), p)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	return text, cut, v.unreadable("documentation of the release", err)
}

// unreadable returns the answer if a part of the tree cannot be read, and nil without
// an error.
func (v *View) unreadable(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tree.ErrChanged):
		return errReplaced
	case v.request.Context().Err() != nil:
		return errTooSlow
	}
	return unavailable("the "+what+" cannot be read at the moment: try again in a moment", err)
}
