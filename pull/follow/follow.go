// Package follow has the versions of hosted modules follow the tags of their git repositories: it renews
// their lists at an interval, and when a repository tells of a change, and fetches all versions of those
// that want it. What a list is and how a version comes into the tree is decided by package pull.
package follow

import (
	"context"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// A Filler renews lists and fetches versions. Usually it is a *pull.Filler, which logs what fails.
type Filler interface {
	Renew(ctx context.Context, a address.Address, since time.Time, told bool) error
	Versions(context.Context, address.Address) (pull.Offering, error)
	FillModule(ctx context.Context, a address.Address, version string, present *index.Module) (*pull.FilledModule, error)
	Looked(address.Address, registryhcl.Git) (last time.Time, failure error)
}

// Options of a Follower.
type Options struct {
	Filler Filler

	// Snapshot returns the latest snapshot of the tree, or nil while there is none.
	Snapshot func() *index.Snapshot

	// Changed is called with the address of a module when a package of it has come into the tree.
	Changed func(address.Address)

	// Left is called with a module whose repository has told of a change, and which was not looked at
	// before the follower ended. May be nil.
	Left func(address.Address)

	// Interval at which all lists are renewed.
	Interval time.Duration
}

// A Follower follows the repositories of the modules in a tree. It is safe for concurrent use.
type Follower struct {
	options Options
	ctx     context.Context

	told     *rounds // looks at modules whose repository has told of a change
	polling  *rounds // looks at all modules
	fetching *rounds // fetches the versions of modules that want all
}

// New returns a follower that ends with ctx. It looks at nothing yet.
func New(ctx context.Context, o Options) *Follower {
	f := &Follower{options: o, ctx: ctx}
	f.told = newRounds(ctx, func(a address.Address, begun time.Time) { f.look(a, begun, true) })
	f.polling = newRounds(ctx, func(a address.Address, begun time.Time) { f.look(a, begun.Add(-o.Interval/2), false) })
	f.fetching = newRounds(ctx, f.fetch)
	f.told.left = o.Left
	return f
}

// readAgain is how often it is looked whether the tree has been read. Another configuration may read it
// anew at any time.
const readAgain = time.Second

// Run looks at all modules as soon as the tree has been read and at every interval, until the follower ends.
func (f *Follower) Run() {
	tick := time.NewTicker(f.options.Interval)
	defer tick.Stop()
	for f.awaitTree() {
		f.lookAtAll()
		select {
		case <-tick.C:
		case <-f.ctx.Done():
			return
		}
	}
}

// awaitTree returns when the tree has been read. It is false if the follower ends before that.
func (f *Follower) awaitTree() bool {
	for !f.Ready() {
		select {
		case <-time.After(readAgain):
		case <-f.ctx.Done():
			return false
		}
	}
	return true
}

// lookAtAll has the lists renewed that neither this instance nor another one has renewed for half an interval.
func (f *Follower) lookAtAll() {
	for a := range f.modules() {
		f.polling.begin(a)
	}
}

// modules yields the modules that have a repository.
func (f *Follower) modules() iter.Seq2[address.Address, registryhcl.Git] {
	return func(yield func(address.Address, registryhcl.Git) bool) {
		s := f.options.Snapshot()
		if s == nil {
			return
		}
		for a := range s.Folders() {
			if g := repositoryOf(s, a); g != nil && !yield(a, *g) {
				return
			}
		}
	}
}

// repositoryOf returns the repository of a module; nil if it has none.
func repositoryOf(s *index.Snapshot, a address.Address) *registryhcl.Git {
	if !a.IsModule() || a.Hostname != "" {
		return nil
	}
	m := s.Metadata(index.PlaceOf(a))
	if m == nil {
		return nil
	}
	return m.Git
}

// look renews the list of a module, and has its versions fetched if all are wanted. That may take hours,
// in which other modules are looked at, and this one, too: each namespace counts as one client of the code
// hosts for its lists, and as another for its versions, and these take turns.
func (f *Follower) look(a address.Address, since time.Time, told bool) {
	if !f.awaitTree() {
		return
	}
	g, ok := f.Has(a)
	if !ok || f.options.Filler.Renew(upstream.ForClient(f.ctx, a.Namespace), a, since, told) != nil || !g.FetchAll {
		return
	}
	f.fetching.begin(a)
}

// fetch fetches the versions of a module that the tree lacks.
func (f *Follower) fetch(a address.Address, _ time.Time) {
	ctx := upstream.ForClient(f.ctx, a.Namespace+", all versions")
	offering, err := f.options.Filler.Versions(ctx, a)
	s := f.options.Snapshot()
	if err != nil || s == nil {
		return
	}
	present := s.Module(index.PlaceOf(a))
	for _, v := range offering.Versions {
		if f.ctx.Err() != nil {
			return
		}
		if present.Version(v.Version) != nil {
			continue
		}
		if filled, err := f.options.Filler.FillModule(ctx, a, v.Version, present); err == nil && filled.New {
			f.options.Changed(a)
		}
	}
}

// Ready reports whether the tree has been read, so that its modules are known.
func (f *Follower) Ready() bool { return f.options.Snapshot() != nil }

// Tell has modules looked at since their repository has told of a change. It returns at once. What is
// told of one module meanwhile has it looked at once more, however often it is told.
func (f *Follower) Tell(modules ...address.Address) { f.told.begin(modules...) }

// A Connection is a module with its repository.
type Connection struct {
	Module     address.Address
	Repository registryhcl.Git
	Looked     time.Time // when its tags were last listed; zero: it is not known
	Failure    error     // of the latest try; nil: it has not failed
}

// Connections returns all modules that have a repository, in order.
func (f *Follower) Connections() (all []Connection) {
	for a, g := range f.modules() {
		c := Connection{Module: a, Repository: g}
		c.Looked, c.Failure = f.options.Filler.Looked(a, g)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Connection) int { return a.Module.Compare(b.Module) })
	return all
}

// Has returns the repository of a module, and whether it has one.
func (f *Follower) Has(a address.Address) (g registryhcl.Git, ok bool) {
	s := f.options.Snapshot()
	if s == nil {
		return g, false
	}
	if found := repositoryOf(s, a); found != nil {
		return *found, true
	}
	return g, false
}

// ModulesIn returns the modules that are in one of the repositories with these URLs, in order.
func (f *Follower) ModulesIn(repositories ...string) (modules []address.Address) {
	wanted := make(map[string]bool)
	for _, text := range repositories {
		wanted[plain(text)] = true
	}
	delete(wanted, "")
	if len(wanted) == 0 {
		return nil
	}
	for a, g := range f.modules() {
		if wanted[plain(g.URL)] {
			modules = append(modules, a)
		}
	}
	slices.SortFunc(modules, address.Address.Compare)
	return modules
}

// plain returns a URL in a form in which two of one repository are the same: code hosts name it with
// .git at the end or without, and in any case. It is empty for what is no URL.
func plain(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	path := strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
	return strings.ToLower(strings.TrimSuffix(u.Host, ":443") + "/" + path)
}
