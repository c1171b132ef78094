package handlers

import (
	"net/url"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// Appearance returns the first entry of a version in the transparency log, for an address that
// the user may see, and the path of its proof, if it is public. ok is false without such an
// entry.
func (v *View) Appearance(a address.Address, version string) (first tlog.Appearance, proof string, ok bool) {
	g := v.registry
	if g.Log == nil {
		return first, "", false
	}
	l := g.Log()
	if l == nil {
		return first, "", false
	}
	first, ok = l.Appearance(a, version)
	return first, v.proofPath(a, version), ok
}

// proofPath returns the path at which everybody finds the entries of a version with their
// proofs. It is empty if they are not public: a browser that has signed in has no credentials
// for them.
func (v *View) proofPath(a address.Address, version string) string {
	if !v.PublicUnder(a.Hostname) {
		return ""
	}
	kind := "providers"
	if a.IsModule() {
		kind = "modules"
	}
	return v.registry.base + "/tlog/lookup/" + kind + "/" + a.String() + "/" + url.PathEscape(version)
}

// SeesLog reports whether there is a transparency log, and the user may read anything, and so
// its checkpoint.
func (v *View) SeesLog() bool {
	g := v.registry
	if g.Log == nil || g.open {
		return g.Log != nil
	}
	subject, err := v.Subject()
	return err == nil && g.rules.AllowsAny(subject, access.Read)
}

// A SeenLog is the transparency log as a user may see it.
type SeenLog struct {
	tlog.Checkpoint
	Key string // the line by which others know its key

	// Path is the path of the checkpoint and all else of the log; empty: it is not public.
	Path string

	// Whole reports that the user may read everything, and so all entries.
	Whole bool

	// Looked is the number of the latest entries. Latest are those of them that the user may
	// see, the latest first.
	Looked int64
	Latest []SeenEntry
}

// A SeenEntry is an entry of the log about something that the user may see.
type SeenEntry struct {
	tlog.NumberedLeaf
	Proof string // the path of its proof; empty: it is not public
}

// latestEntries is how many entries of a log are looked at.
const latestEntries = 256

// Log returns the transparency log, for who may read anything. The error is the answer for all
// others, and the same whether there is a log or not.
//
// Of entries about something else than the user may read, it tells what the numbers, times and
// proofs of the others and the size of the log tell: how many there are between two others.
// The same entries are read for all users, and the rules decide by their addresses alone: so
// its time tells nothing.
func (v *View) Log() (seen SeenLog, err error) {
	g, r := v.registry, v.request
	r.target = target{}
	if err := g.authorizeLog(r, false); err != nil {
		return seen, err
	}
	if g.Log == nil {
		return seen, errNotFound
	}
	l := g.Log()
	if l == nil {
		return seen, errNoLog
	}
	var subject access.Subject
	if !g.open {
		if subject, err = g.subject(r); err != nil {
			return seen, err
		}
	}
	h := l.Head()
	seen = SeenLog{Checkpoint: h.Checkpoint, Key: l.Public(), Looked: min(h.Size, latestEntries), Whole: g.open || g.rules.AllowsAll(subject, access.Read)}
	if g.open || g.rules.AllowsAny(access.Subject{}, access.Read) {
		seen.Path = g.base + "/tlog"
	}
	latest, err := l.Latest(r.Context(), h, latestEntries)
	if err != nil {
		return seen, logUnread(err)
	}
	for _, leaf := range latest {
		t := g.named(r.self, leaf.Address)
		if seen.Whole || g.rules.Decide(subject, access.Read, t.resource()).Allowed {
			seen.Latest = append(seen.Latest, SeenEntry{leaf, v.proofPath(leaf.Address, leaf.Version)})
		}
	}
	return seen, nil
}
