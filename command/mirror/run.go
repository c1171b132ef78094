package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/lockfile"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A mirrorRun is a run of the mirror command.
type mirrorRun struct {
	mirrorRequest
	fillers     fillers
	platforms   []address.Platform
	thisMachine bool   // platforms is the default
	into        string // the folder of the providers
	modulesInto string // the folder of the modules; empty: they are not mirrored
	parallel    int
	dry         bool
	progress    *cli.Transfer
	tree        treeFolders
	withdrawn   []string // versions that would have been chosen, and why they were not
}

// A mirrorRelease is a release to fetch.
type mirrorRelease struct {
	address    address.Address
	version    string
	locks      []*lockfile.Locked // that name it
	requiredBy []string
}

// A mirrorOutcome is the outcome of a package, or an error of a provider or module for which
// no version could be chosen. The latter has only the address with the constraints, and the
// error.
type mirrorOutcome struct {
	provider, module  string // one of them
	version, platform string // a module has no platform

	size       int64 // in bytes; zero in a dry run
	added      bool  // in a dry run: would be added
	err        error
	requiredBy []string
}

// run fetches what is required. A failure does not stop the rest. When ctx ends,
// no further package is begun.
func (m *mirrorRun) run(ctx context.Context) *mirrorResult {
	modules := m.followCalls(ctx)
	releases, failed := m.choose(ctx)
	packages := make([]mirrorOutcome, len(releases)*len(m.platforms))
	m.progress.Begin(len(packages), 0)
	m.inParallel(len(packages), func(i int) {
		r, p := releases[i/len(m.platforms)], m.platforms[i%len(m.platforms)]
		o := mirrorOutcome{provider: r.address.String(), version: r.version, platform: p.String(), requiredBy: r.requiredBy}
		progress := m.progress.File(0)
		if o.err = ctx.Err(); o.err == nil {
			o.size, o.added, o.err = m.fetch(ctx, r, p, progress)
		}
		progress.End()
		packages[i] = o
	})
	result := &mirrorResult{mirrorRun: m, outcomes: slices.Concat(modules, failed, packages)}
	if ctx.Err() != nil {
		result.interrupted = true
		result.outcomes = slices.DeleteFunc(result.outcomes, func(o mirrorOutcome) bool { return errors.Is(o.err, context.Canceled) })
	}
	return result
}

// inParallel calls do with every number below n.
func (m *mirrorRun) inParallel(n int, do func(int)) { cli.InParallel(m.parallel, n, do) }

// choose finds the required releases, each once and sorted by address.
func (m *mirrorRun) choose(ctx context.Context) (releases []*mirrorRelease, failed []mirrorOutcome) {
	versions, errs := make([]string, len(m.requirements)), make([]error, len(m.requirements))
	passedOver := make([]string, len(m.requirements))
	m.inParallel(len(m.requirements), func(i int) { versions[i], passedOver[i], errs[i] = m.version(ctx, m.requirements[i]) })
	for i, q := range m.requirements {
		m.noteWithdrawn(passedOver[i])
		if errs[i] != nil {
			failed = append(failed, mirrorOutcome{provider: q.Requirement.String(), err: errs[i]})
			continue
		}
		at := slices.IndexFunc(releases, func(r *mirrorRelease) bool { return r.address == q.Address && r.version == versions[i] })
		if at < 0 {
			at = len(releases)
			releases = append(releases, &mirrorRelease{address: q.Address, version: versions[i]})
		}
		r := releases[at]
		r.requiredBy = append(r.requiredBy, q.From...)
		if q.locked != nil {
			r.locks = append(r.locks, q.locked)
		}
	}
	slices.SortStableFunc(releases, func(a, b *mirrorRelease) int { return strings.Compare(a.address.String(), b.address.String()) })
	return releases, failed
}

// noteWithdrawn notes a version that is passed over, with the reason. An empty text is
// ignored.
func (m *mirrorRun) noteWithdrawn(passedOver string) {
	if passedOver != "" && !slices.Contains(m.withdrawn, passedOver) {
		m.withdrawn = append(m.withdrawn, passedOver)
	}
}

// version returns the version that a client would choose, and a withdrawn version that the
// client would choose otherwise, with the reason. A locked version needs no request.
func (m *mirrorRun) version(ctx context.Context, q requirement) (chosen, passedOver string, err error) {
	if q.locked == nil {
		return m.newest(ctx, q.Address, q.From, q.Select)
	}
	why, err := m.tree.withdrawn(q.Address, q.locked.Version)
	if err == nil && why != "" {
		err = errors.New(why)
	}
	if err != nil {
		return "", "", fmt.Errorf("%w (for %s)", err, strings.Join(q.From, ", "))
	}
	return q.locked.Version, "", nil
}

// newest returns the version of a provider or module that choose selects from the offered
// ones, and a withdrawn version that it would select otherwise, with the reason.
func (m *mirrorRun) newest(ctx context.Context, a address.Address, from []string, choose func([]string) (string, error)) (chosen, passedOver string, err error) {
	if ctx.Err() != nil {
		return "", "", ctx.Err()
	}
	filler, err := m.fillers.fillerOf(ctx, a)
	var offering pull.Offering
	if err == nil {
		offering, err = filler.CurrentVersions(ctx, a)
	}
	if err != nil {
		return "", "", fmt.Errorf("%w (for %s)", err, strings.Join(from, ", "))
	}
	var versions []string
	for _, v := range offering.Versions {
		versions = append(versions, v.Version)
	}
	chosen, err = choose(versions)
	for err == nil {
		var why string
		if why, err = m.tree.withdrawn(a, chosen); err != nil || why == "" {
			break
		}
		passedOver = cmp.Or(passedOver, fmt.Sprintf("%s %s: %s", a, chosen, why))
		versions = slices.DeleteFunc(versions, func(v string) bool { return v == chosen })
		chosen, err = choose(versions)
	}
	return chosen, passedOver, err
}

// fetch fetches a package unless it is in the tree. It returns the size in bytes,
// and whether the package has been added or, in a dry run, would be.
func (m *mirrorRun) fetch(ctx context.Context, r *mirrorRelease, p address.Platform, progress *cli.FileTransfer) (size int64, added bool, err error) {
	filler, err := m.fillers.fillerOf(ctx, r.address)
	if err != nil {
		return 0, false, err
	}
	release, err := filler.ReleaseFor(ctx, r.address, r.version, p, nil)
	if err != nil {
		return 0, false, err
	}
	k, ok := release.Package(p)
	if !ok {
		return 0, false, fmt.Errorf("the release has no package for %s, only for %s", p, platformsOf(release))
	}
	for _, l := range r.locks {
		if err := checkLocked(l, release, k); err != nil {
			return 0, false, err
		}
	}
	filled, err := filler.Fill(context.WithoutCancel(ctx), r.address, k.Name, nil, pull.FillOptions{Progress: progress.Update})
	switch {
	case errors.Is(err, pull.ErrWouldFill):
		return 0, true, nil
	case err != nil:
		return 0, false, err
	}
	for _, l := range r.locks {
		if !l.Accepts(append([]string{filled.SHA256.ZH()}, filled.FileHashes...)) {
			return 0, false, fmt.Errorf("the hashes at %s are not those of the package for %s: the release was replaced, or never locked for that platform (`providers lock -platform=%[2]s` of the client adds it). It is in the tree now, as its publisher released it", l.From, p)
		}
	}
	return filled.Size, progress.Moved() > 0, nil
}

// checkLocked refuses a package other than the locked one before it is fetched. A lock file
// from a registry has the zh: hashes of all packages of the release, so a package without its
// hash there belongs to another release. Without zh: hashes only the fetched package can be
// compared.
func checkLocked(l *lockfile.Locked, r *upstream.Release, k upstream.Package) error {
	accepts := func(k upstream.Package) bool { return l.Accepts([]string{k.SHA256.ZH()}) }
	switch {
	case k.SHA256 == (wire.SHA256{}) || accepts(k):
		return nil
	case slices.ContainsFunc(r.Packages, accepts):
		return fmt.Errorf("it is locked at %s for other platforms than %s: add that one with the client's `providers lock -platform=%[2]s`", l.From, k.Platform)
	}
	return fmt.Errorf("it is not the release that was locked at %s, but has been replaced since: find out why before you use it", l.From)
}

func platformsOf(r *upstream.Release) string {
	names := make([]string, len(r.Packages))
	for i, p := range r.Packages {
		names[i] = p.Platform.String()
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}
