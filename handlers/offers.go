package handlers

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Offers are what a request may be given. A snapshot has what is in the tree. The
// *pull.Offers around it also have what can be fetched from an origin, and no handler
// asks which of the two it has. The error is pull.ErrNotOffered if neither the tree nor an origin
// has something; other errors come from an Upstream.
type Offers interface {
	// Provider returns a provider, whose lists, latest version and age count: versions that
	// are not in the tree have no packages.
	Provider(index.Place) (*index.Provider, error)

	// FetchRelease has a release that the tree lacks in the next snapshot.
	FetchRelease(p index.Place, version string) error

	// Archives returns the mirror's VERSION.json.
	Archives(p index.Place, version string, h1Only bool) (*wire.Document, error)

	// Download returns the registry's description of a package.
	Download(p index.Place, version string, platform address.Platform) (*wire.Document, error)

	// ProviderFile returns a package, SHA256SUMS or its signature. If the client follows,
	// the package may be one that grows. The issuer is the ID of the key whose signature the
	// client can verify, according to the link that it follows; empty: any.
	ProviderFile(p index.Place, name, issuer string, follows bool) (*index.File, error)

	// Module returns a module, whose list, latest version and age count: versions that are
	// not in the tree have no package.
	Module(index.Place) (*index.Module, error)

	// ModuleVersion returns a version of a module. The error is pull.ErrUnfinished if
	// its package will be there later than the client waits for an answer.
	ModuleVersion(p index.Place, version string) (*index.ModuleVersion, error)

	// ModuleFolder returns the name of such a package, and the folder of the module in
	// it.
	ModuleFolder(p index.Place, version string) (archive, folder string, err error)

	// ModulePackage returns the package of a version of a module.
	ModulePackage(p index.Place, version string) (*index.File, error)

	fileOffers
}

// fileOffers open files that are offered.
type fileOffers interface {
	Open(*index.File) (*index.OpenFile, error)
	OpenRange(*index.File) (*index.OpenFile, error)
	CanRedirect(*index.File) bool

	// Grows reports whether a file is still being received, and is not verified. Then Follow
	// sends its beginning, and returns the file to open when it is verified.
	Grows(*index.File) bool
	Follow(ctx context.Context, f *index.File, to pull.Follower) (sent int64, verified *index.File, err error)

	// Misled reports whether a client may have a wrong beginning of a file, which it must not
	// continue.
	Misled(*index.File) bool
}

// offers returns what r may be given. A visit reads what is in the tree, and fetches nothing:
// anyone can follow links, and crawlers follow all.
func (g *Registry) offers(r *request) Offers {
	if r.visit || !g.fetches(&r.target, r.snapshot) {
		return treeOffers{r.snapshot}
	}
	return g.pull.Around(r.snapshot, func() (context.Context, time.Time) {
		until := r.waiting().Add(Patience)
		return upstream.ForClient(r.Context(), g.clientOf(r)), until
	})
}

// fetches reports whether the Upstream can fetch files of a target that the tree does not
// have. Of what is hosted, it can for modules whose registry.hcl names a repository.
func (g *Registry) fetches(t *target, s *index.Snapshot) bool {
	switch {
	case g.Upstream == nil:
		return false
	case !t.place.Hosted:
		return g.Upstream.Mirrors(t.Address)
	case !t.IsModule():
		return false
	}
	hosted := t.WithHostname("")
	m := s.Metadata(index.PlaceOf(hosted))
	return m != nil && m.Git != nil && g.Upstream.Mirrors(hosted)
}

// clientOf returns the IP address of the client, by which the Upstream is shared fairly.
func (g *Registry) clientOf(r *request) string {
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	if g.ClientAddress != nil {
		client = cmp.Or(g.ClientAddress(r.Request), client)
	}
	return client
}

// treeOffers are the offers of the tree alone.
type treeOffers struct{ *index.Snapshot }

func (s treeOffers) Grows(*index.File) bool { return false }

func (s treeOffers) Misled(*index.File) bool { return false }

func (s treeOffers) Follow(context.Context, *index.File, pull.Follower) (int64, *index.File, error) {
	return 0, nil, pull.ErrNotOffered
}

// found returns what a snapshot has, or that it is not offered.
func found[T any](v *T) (*T, error) {
	if v == nil {
		return nil, pull.ErrNotOffered
	}
	return v, nil
}

func (s treeOffers) Provider(p index.Place) (*index.Provider, error) {
	return found(s.Snapshot.Provider(p))
}

func (s treeOffers) FetchRelease(index.Place, string) error { return pull.ErrNotOffered }

func (s treeOffers) release(p index.Place, version string) (*index.Release, error) {
	return found(s.Snapshot.Provider(p).Release(version))
}

func (s treeOffers) Archives(p index.Place, version string, _ bool) (*wire.Document, error) {
	r, err := s.release(p, version)
	if err != nil {
		return nil, err
	}
	return r.Archives(), nil
}

func (s treeOffers) Download(p index.Place, version string, platform address.Platform) (*wire.Document, error) {
	r, err := s.release(p, version)
	if err != nil {
		return nil, err
	}
	k := r.Package(platform.OS, platform.Arch)
	if k == nil || k.Download() == nil {
		return nil, pull.ErrNoPackage
	}
	return k.Download(), nil
}

func (s treeOffers) ProviderFile(p index.Place, name, _ string, _ bool) (*index.File, error) {
	provider, err := s.Provider(p)
	if err != nil {
		return nil, err
	}
	return found(provider.File(name))
}

func (s treeOffers) Module(p index.Place) (*index.Module, error) {
	return found(s.Snapshot.Module(p))
}

func (s treeOffers) ModuleVersion(p index.Place, version string) (*index.ModuleVersion, error) {
	return found(s.Snapshot.Module(p).Version(version))
}

func (s treeOffers) ModuleFolder(p index.Place, version string) (archive, folder string, err error) {
	v, err := s.ModuleVersion(p, version)
	if err != nil {
		return "", "", err
	}
	return v.Archive.Name, v.Folder, nil
}

func (s treeOffers) ModulePackage(p index.Place, version string) (*index.File, error) {
	v, err := s.ModuleVersion(p, version)
	if err != nil {
		return nil, err
	}
	return v.Archive, nil
}

// requireVersion returns nil if a version to describe is found in the tree. Otherwise it has
// the version fetched, and returns errPending until the next snapshot has it. An empty
// version is the latest of all.
func (g *Registry) requireVersion(r *request, version string, found bool, latest func() (string, error), fetch func(version string) error) error {
	switch {
	case (found || version == "") && r.listPending(): // it is not known either whether a version is withdrawn
		return errPending
	case found:
		return nil
	}
	if version == "" {
		var err error
		switch version, err = latest(); {
		case errors.Is(err, pull.ErrNotOffered):
			return g.pendingOrNotFound(nil, r)
		case err != nil:
			return g.listFailed(nil, r, err)
		}
	}
	r.target.version = version
	if err := fetch(version); err != nil {
		return g.versionFailed(r, err)
	}
	return errPending // the next snapshot has it
}
