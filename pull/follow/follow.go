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
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// A Filler renews lists and fetches versions. Usually it is a *pull.Filler, which logs what fails.
type Filler interface {
	Renew(ctx context.Context, a address.Address, since time.Time, told bool) error
	Versions(context.Context, address.Address) (pull.Offering, error)
	FillModule(ctx context.Context, a address.Address, version string, present *index.Module) (*pull.FilledModule, error)
	Looked(address.Address) (last time.Time, failure error)
}

// Options of a Follower.
type Options struct {
	Filler Filler

	// Snapshot returns the latest snapshot of the tree, or nil while there is none.
	Snapshot func() *index.Snapshot

	// Changed is called with the address of a module when a package of it has come into the tree.
	Changed func(address.Address)

	// Interval at which all lists are renewed.
	Interval time.Duration
}

// A Follower follows the repositories of the modules in a tree. It is safe for concurrent use.
type Follower struct {
	options Options
	ctx     context.Context

	mutex sync.Mutex
	told  map[address.Address]bool // modules that are looked at since their repository told of a change; true: it has told again
}

// New returns a follower that ends with ctx. It looks at nothing yet.
func New(ctx context.Context, o Options) *Follower {
	return &Follower{options: o, ctx: ctx, told: make(map[address.Address]bool)}
}

// atOnce is how many modules are looked at at the same time. Those in one repository share its list.
const atOnce = 8

// Run looks at all modules now and at every interval, until the follower ends.
func (f *Follower) Run() {
	tick := time.NewTicker(f.options.Interval)
	defer tick.Stop()
	for {
		f.lookAtAll()
		select {
		case <-tick.C:
		case <-f.ctx.Done():
			return
		}
	}
}

// lookAtAll renews the lists that neither this instance nor another one has renewed for half an interval.
func (f *Follower) lookAtAll() {
	since := time.Now().Add(-f.options.Interval / 2)
	var all errgroup.Group
	all.SetLimit(atOnce)
	for a, g := range f.modules() {
		if f.ctx.Err() != nil {
			break
		}
		all.Go(func() error {
			f.look(a, g, since, false)
			return nil
		})
	}
	all.Wait()
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

// look renews the list of a module, and fetches its versions if all are wanted.
func (f *Follower) look(a address.Address, g registryhcl.Git, since time.Time, told bool) {
	if err := f.options.Filler.Renew(f.ctx, a, since, told); err != nil || !g.FetchAll {
		return
	}
	offering, err := f.options.Filler.Versions(f.ctx, a)
	if err != nil {
		return
	}
	present := f.options.Snapshot().Module(index.PlaceOf(a))
	for _, v := range offering.Versions {
		if f.ctx.Err() != nil {
			return
		}
		if present.Version(v.Version) != nil {
			continue
		}
		if filled, err := f.options.Filler.FillModule(f.ctx, a, v.Version, present); err == nil && filled.New {
			f.options.Changed(a)
		}
	}
}

// Tell has modules looked at since their repository has told of a change. It returns at once. What is
// told of one module while that is looked at is one further look, however often it is told.
func (f *Follower) Tell(modules ...address.Address) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, a := range modules {
		if _, looking := f.told[a]; looking {
			f.told[a] = true
			continue
		}
		f.told[a] = false
		go f.lookTold(a)
	}
}

func (f *Follower) lookTold(a address.Address) {
	for again := true; again; {
		if s := f.options.Snapshot(); s != nil {
			if g := repositoryOf(s, a); g != nil {
				f.look(a, *g, time.Now(), true)
			}
		}
		f.mutex.Lock()
		if again = f.told[a] && f.ctx.Err() == nil; again {
			f.told[a] = false
		} else {
			delete(f.told, a)
		}
		f.mutex.Unlock()
	}
}

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
		c.Looked, c.Failure = f.options.Filler.Looked(a)
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

// In returns the modules that are in one of the repositories with these URLs, in order.
func (f *Follower) In(repositories ...string) (modules []address.Address) {
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
