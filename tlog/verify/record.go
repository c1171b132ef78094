package verify

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// A subject is a version of a provider or module.
type subject struct {
	address address.Address
	version string
}

// A record has the entries of a subject, and more that the registry says of it.
type record struct {
	place   place
	found   bool
	err     error    // why it is not known whether there are entries
	without []string // hosts without a log, from which it may come as well
	sought  bool     // a log has answered that it has no entry

	packages  []packageRecord
	withdrawn bool
	reason    string // of the withdrawal; empty: not known
	shasums   string // the digest of SHA256SUMS, which no entry proves; empty: none
	notice    string // a deprecation; empty: none is known
}

// A packageRecord has the hashes on record of the package for a platform: from the first
// entry, and from entries that say that the registry has packed the same files of a folder
// otherwise. A later entry with other files or bytes would be another package in its place, and
// does not count: "h1:" covers neither links nor all else that clients unpack, and nothing proves
// that it is the hash of the files in the archive.
type packageRecord struct {
	platform address.Platform
	h1, zh   []string
	packed   bool      // of a folder, by the registry
	replaced bool      // there is a later entry of another package
	since    time.Time // since when it can be downloaded; zero: not known
}

// lookUp finds the entries of a subject. The first log that has some counts.
func (f *Finder) lookUp(ctx context.Context, s subject) *record {
	r := &record{}
	places, without, err := f.places(ctx, s.address)
	errs := []error{err}
	for _, p := range places {
		found, ok, err := p.log.lookup(ctx, p.path(s.version), false)
		errs = append(errs, err)
		if err != nil {
			continue
		}
		r.sought = true
		if !ok {
			continue
		}
		r.place = p
		r.read(found, s)
		if r.withdrawn {
			r.reason = p.whyWithdrawn(ctx, string(s.address.Hostname), s.version)
		}
		if r.found {
			return r
		}
	}
	r.without, r.err = without, errors.Join(errs...)
	return r
}

// path returns the path of a look-up.
func (p place) path(version string) string {
	parts := []string{"providers", string(p.address.Hostname), p.address.Namespace, p.address.Name, p.address.System, version}
	if p.address.IsModule() {
		parts[0] = "modules"
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "/")
}

// read reads the entries that are about the subject.
func (r *record) read(found tlog.Lookup, s subject) {
	slices.SortFunc(found.Entries, func(a, b tlog.ProvenEntry) int { return int(min(max(a.Proof.Index-b.Proof.Index, -1), 1)) })
	for _, e := range found.Entries {
		leaf, err := tlog.ParseLeaf(e.Text)
		if err != nil || leaf.IsAmbiguous() || !r.place.accepts(leaf.Address, s.address) || leaf.Version != s.version {
			continue
		}
		switch {
		case leaf.Event == tlog.Withdrawn:
			r.withdrawn, r.found = true, true
		case leaf.Event == tlog.Restored:
			r.withdrawn, r.found = false, true
		default:
			r.found = true
			r.add(leaf)
		}
	}
	r.shasums = found.Shasums
}

// add adds a package.
func (r *record) add(l tlog.Leaf) {
	last := len(l.Hashes) - 1
	h1, zh := l.Hashes[:last], l.Hashes[last]
	for i := range r.packages {
		p := &r.packages[i]
		switch {
		case p.platform != l.Platform:
			continue
		case !slices.ContainsFunc(h1, func(h string) bool { return slices.Contains(p.h1, h) }):
			p.replaced = true
		case slices.Contains(p.zh, zh):
		case p.packed && l.Pack > 0:
			p.zh = append(p.zh, zh)
		default:
			p.replaced = true
		}
		return
	}
	p := packageRecord{platform: l.Platform, h1: h1, zh: []string{zh}, packed: l.Pack > 0}
	if p.since = l.Origin; p.since.IsZero() && l.Event != tlog.Found {
		p.since = l.Time
	}
	r.packages = append(r.packages, p)
}

// since returns since when the youngest of the packages that are used can be downloaded, or of
// all if none of them is on record; zero: not known. nil: all are used.
func (r *record) since(used func(packageRecord) bool) (youngest time.Time) {
	if used == nil || !slices.ContainsFunc(r.packages, used) {
		used = func(packageRecord) bool { return true }
	}
	for _, p := range r.packages {
		if used(p) && p.since.After(youngest) {
			youngest = p.since
		}
	}
	return youngest
}

// hashes returns the hashes on record of all packages, or of those for a platform.
func (r *record) hashes(platform *address.Platform) (h1, zh []string) {
	for _, p := range r.packages {
		if platform == nil || p.platform == *platform {
			h1, zh = append(h1, p.h1...), append(zh, p.zh...)
		}
	}
	return h1, zh
}
