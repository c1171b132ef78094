package fill

import (
	"context"
	"errors"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An Upstream fetches files that a mirror does not have from its origins. Usually it is
// a *Filler, and its errors are those of a Filler.
type Upstream interface {
	// Origins returns the registries that have an origin.
	Origins() []Origin

	// Mirrors reports whether a provider has an origin.
	Mirrors(address.Address) bool

	// Versions returns the versions of a provider that its origin offers.
	Versions(context.Context, address.Address) (Offering, error)

	// Available returns the packages of a version that the origin offers. present is
	// the release in the snapshot, or nil.
	Available(ctx context.Context, a address.Address, version string, present *index.Release) ([]wire.Archive, error)

	// MayHaveMore reports whether the origin may offer platforms of the release that
	// the tree does not have. It does not ask the origin.
	MayHaveMore(a address.Address, present *index.Release) bool

	// Fill returns a file of a provider once it is in the tree. present is the provider
	// in the snapshot, or nil.
	Fill(ctx context.Context, a address.Address, file string, present *index.Provider) (*Filled, error)

	// ReleaseFor returns a release in the form that clients verify, from the tree or
	// else from the origin. present is the release in the snapshot, or nil.
	ReleaseFor(ctx context.Context, a address.Address, version string, p address.Platform, present *index.Release) (*upstream.Release, error)

	// FillModule returns the package of a version of a module once it is in the tree.
	// present is the module in the snapshot, or nil.
	FillModule(ctx context.Context, a address.Address, version string, present *index.Module) (*FilledModule, error)

	// ModuleFolder returns the folder of the module in the package that FillModule
	// fetches, without waiting for the package. It is empty for the package's root.
	ModuleFolder(ctx context.Context, a address.Address, version string) (string, error)
}

// The errors of Offers, in addition to the errors of the Upstream.
var (
	// ErrNotOffered: the tree does not have it, and it may not be fetched.
	ErrNotOffered = errors.New("it is not offered")

	// ErrNoneLeft: the origin has versions, but none may be fetched.
	ErrNoneLeft = errors.New("all versions of the origin are withdrawn here or too young")

	// ErrUnfinished: the package is still being fetched, and the client waits no longer.
	ErrUnfinished = errors.New("it is still being fetched")
)

const (
	// PresentPatience is how long a request waits for an origin if the tree has an
	// answer, now or as soon as it has been read. Clients give an attempt ten seconds,
	// and OpenTofu asks a mirror only once (checklist 25, 72).
	PresentPatience = 3 * time.Second

	// folderPatience is how long a request waits for the folder of a module in a package
	// after it has waited for the package. Both are within the ten seconds that clients
	// allow (checklist 25).
	folderPatience = time.Second
)

// ListLife is how long a merged list of versions is kept. An Upstream renews its lists in
// the background when requests use them, so the requests have to reach it. A list is kept
// no longer than its own age either: if an Upstream renews its lists on every request, it
// gets every request.
const ListLife = time.Second

// MaxAge is the largest Age that caches understand (RFC 9111 §1.2.2).
const MaxAge = (1<<31 - 1) * time.Second

// maxMerged bounds the merged lists of modules, in bytes. Making one again takes
// microseconds.
const maxMerged = 32 << 20

// A PullThrough offers what its Upstream has together with what is in a tree.
type PullThrough struct {
	upstream Upstream
	added    func(address.Address) // called when a package has come into the tree
	modules  cache.Cache[address.Address, mergedModule]
}

// NewPullThrough makes a PullThrough. It calls added with the address of a package that
// has come into the tree.
func NewPullThrough(u Upstream, added func(address.Address)) *PullThrough {
	return &PullThrough{upstream: u, added: added, modules: cache.Cache[address.Address, mergedModule]{
		MaxBytes: maxMerged, Size: func(m mergedModule) int { return len(m.List().Head) + len(m.List().Tail) },
	}}
}

// Around returns the offers of a snapshot and of the Upstream for one request about a
// mirrored package. ask returns the context for asking the Upstream, and the time when
// the client stops waiting for an answer. It is called only if the Upstream is asked.
func (p *PullThrough) Around(s *index.Snapshot, ask func() (client context.Context, until time.Time)) *Offers {
	return &Offers{PullThrough: p, tree: s, ask: ask}
}

// Offers are what is in the tree, and what the Upstream can fetch, for one request.
type Offers struct {
	*PullThrough
	tree    *index.Snapshot
	ask     func() (client context.Context, until time.Time)
	fetched *Filled // the file that was fetched, which no snapshot has yet; nil: none
}

// A mergedModule merges the list of a module in the tree with the origin's. It is valid
// for a while, as long as the tree does not change.
type mergedModule struct {
	present presentModule
	*index.Module
}

// A presentModule is a module in the tree, and its metadata. Both may be nil.
type presentModule struct {
	*index.Module
	metadata *registryhcl.File
}

// Module returns a module with all versions of the tree and of the origin. The list may
// be that of the tree if the origin fails.
func (o *Offers) Module(p index.Place) (*index.Module, error) {
	present := presentModule{o.tree.Module(p), o.tree.Metadata(p)}
	if m, ok := o.modules.Get(p.Address); ok && m.present == present {
		return m.Module, nil
	}
	ctx, _ := o.ask()
	if present.Module != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, PresentPatience)
		defer cancel()
	}
	offering, err := o.upstream.Versions(ctx, p.Address)
	switch {
	case err != nil && present.Module != nil:
		return present.Module, nil
	case err != nil:
		return nil, err
	}
	further, _ := index.WithoutWithdrawn(present.metadata, offering.Versions, nil)
	m := index.MergedModule(p.Address, present.Module, further, present.metadata)
	if m == nil {
		return nil, ErrNoneLeft
	}
	if offering.Stale {
		m.Age = min(offering.Age, MaxAge) // larger if the clock has been set
	}
	o.modules.Put(p.Clone(), mergedModule{present, m}, min(ListLife, offering.Age))
	return m, nil
}

// fetchedArchive is the name of every package of a module that an Upstream fetches.
const fetchedArchive = "archive.tar.gz"

// ModuleVersion returns a version of a module once its package is in the tree. The error
// is ErrUnfinished if that takes longer than the client waits.
func (o *Offers) ModuleVersion(p index.Place, version string) (*index.ModuleVersion, error) {
	m := o.tree.Module(p)
	if v := m.Version(version); v != nil {
		return v, nil
	}
	if !o.mayFetchModule(p, version) {
		return nil, ErrNotOffered
	}
	client, until := o.ask()
	ctx, cancel := context.WithDeadlineCause(client, until, ErrUnfinished)
	defer cancel()
	filled, err := o.fillModule(ctx, p, version, m)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	return &index.ModuleVersion{Hostname: p.Hostname, Version: version, Archive: filled.File, Folder: filled.Folder}, nil
}

// ModuleFolder returns the name of the package of a version of a module, and the folder
// of the module in it. It does not wait for the package.
func (o *Offers) ModuleFolder(p index.Place, version string) (archive, folder string, err error) {
	client, _ := o.ask()
	ctx, cancel := context.WithTimeout(client, folderPatience)
	defer cancel()
	folder, err = o.upstream.ModuleFolder(ctx, p.Address, version)
	return fetchedArchive, folder, err
}

// ModulePackage returns the package of a version of a module once it is in the tree,
// however long that takes. If the package has another name, it is not fetched: of the
// returned file only the name is known.
func (o *Offers) ModulePackage(p index.Place, version, name string) (*index.File, error) {
	m := o.tree.Module(p)
	switch v := m.Version(version); {
	case v != nil:
		return v.Archive, nil
	case !o.mayFetchModule(p, version):
		return nil, ErrNotOffered
	case name != fetchedArchive:
		return &index.File{Name: fetchedArchive}, nil
	}
	client, _ := o.ask()
	filled, err := o.fillModule(client, p, version, m)
	if err != nil {
		return nil, err
	}
	o.fetched = &filled.Filled
	return filled.File, nil
}

// mayFetchModule reports whether to ask the Upstream for a version that is not in the
// tree. The version has to be written as in lists, and must not be withdrawn.
func (o *Offers) mayFetchModule(p index.Place, text string) bool {
	v, err := address.ParseModuleVersion(text)
	return err == nil && v.String() == text && o.tree.Metadata(p).WithdrawnVersion(v) == nil
}

func (o *Offers) fillModule(ctx context.Context, p index.Place, version string, present *index.Module) (*FilledModule, error) {
	filled, err := o.upstream.FillModule(ctx, p.Address, version, present)
	if err == nil && filled.New {
		o.added(p.Address)
	}
	return filled, err
}

// Open opens a file that was returned. If it was fetched, it is opened in the present
// tree: the snapshot's may be a root that has been replaced since.
func (o *Offers) Open(f *index.File) (*index.OpenFile, error) {
	if o.isFetched(f) {
		return o.fetched.Open()
	}
	return o.tree.Open(f)
}

// OpenRange opens a file of which a part is read.
func (o *Offers) OpenRange(f *index.File) (*index.OpenFile, error) {
	if o.isFetched(f) {
		return o.fetched.Open()
	}
	return o.tree.OpenRange(f)
}

// CanRedirect reports whether clients can fetch a file from the store that has it.
func (o *Offers) CanRedirect(f *index.File) bool { return !o.isFetched(f) && o.tree.CanRedirect(f) }

func (o *Offers) isFetched(f *index.File) bool { return o.fetched != nil && o.fetched.File == f }
