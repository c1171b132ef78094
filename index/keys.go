package index

import (
	"context"
	"fmt"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
)

// lastKeys returns the keys of the last scan; nil before the first.
func (s *scan) lastKeys() *keys.Folder {
	if s.last == nil {
		return nil
	}
	return s.last.keys
}

// keysFor returns the keys that verify the versions of an address; nil if none count.
func keysFor(a address.Address, k *keys.Folder) *keys.File {
	if !areSigned(a) {
		return nil
	}
	return k.For(keys.NamespaceOf(a))
}

// readKeys reads the keys of all namespaces.
func (s *scan) readKeys() *keys.Folder {
	w := s.newWalker(nil)
	r := keys.Reader{Part: s.tree.Keys, Walk: w, Report: w.report, Memo: &s.memo, Last: s.lastKeys(), Now: s.now}
	return r.Read()
}

// recallKeys returns the keys, with copies in place of the keys files that are gone or cannot
// be read. It looks for the namespaces of the folders that walks have found and, if the keys
// have been read again, of all others.
func (s *scan) recallKeys(k *keys.Folder, way []*wayWalk) *keys.Folder {
	var needed []keys.Namespace
	seen := make(map[keys.Namespace]bool)
	need := func(a address.Address) {
		if n := keys.NamespaceOf(a); areSigned(a) && !seen[n] && !k.For(n).IsFile() {
			seen[n], needed = true, append(needed, n)
		}
	}
	for _, v := range way {
		for i := range v.found {
			need(v.found[i].Address)
		}
	}
	if k != s.lastKeys() && !s.stale[""] {
		for _, g := range s.last.groups.All() {
			for _, e := range g.entries {
				need(e.folder.Address)
			}
		}
	}
	if s.last == nil {
		s.copies.Load(s.ctx, k)
	}
	return k.WithCopies(s.ctx, &s.copies, needed)
}

// copyKeys adds all releases that the keys files verify to the copies of keys, before the
// first of them is offered, renews copies whose files have other keys now, and drops the copies
// of namespaces that are not signed. failed says which copy could not be stored, and why;
// empty: all could.
func (s *scan) copyKeys(listings []*listing, k *keys.Folder) (failed string) {
	if s.copies.Store == nil {
		return ""
	}
	verified := make([][]verifiedRelease, len(listings))
	queue.InParallel(s.options.workers(), len(listings), func(i int) { verified[i] = s.verifiedReleases(listings[i], k) })
	all, releases := slices.Concat(verified...), make(map[keys.Namespace][]keys.Release)
	for _, v := range all {
		releases[v.namespace] = append(releases[v.namespace], v.release)
	}
	failed = s.copies.Keep(s.ctx, k, releases)
	for _, v := range all {
		v.files.copied = s.copies.Has(v.namespace, v.release)
	}
	return failed
}

// isCopied notes which releases of a listing the copies of keys list, and reports whether copyKeys
// would add nothing for it.
func (s *scan) isCopied(l *listing, k *keys.Folder) bool {
	verified := s.verifiedReleases(l, k)
	for _, v := range verified {
		if v.files.copied = s.copies.Has(v.namespace, v.release); !v.files.copied {
			return false
		}
	}
	return len(verified) == 0 || s.copies.HasKeys(verified[0].namespace, k.For(verified[0].namespace))
}

// A verifiedRelease is a release that the keys file of its namespace verifies.
type verifiedRelease struct {
	namespace keys.Namespace
	files     *releaseFiles
	release   keys.Release
}

// verifiedReleases verifies signatures in a folder, if it has changed and there are copies.
func (s *scan) verifiedReleases(l *listing, k *keys.Folder) (all []verifiedRelease) {
	p, isProvider := l.found.(*providerFolder)
	if s.copies.Store == nil || !isProvider || l.entry != nil {
		return nil
	}
	n, file := keys.NamespaceOf(p.Address), keysFor(p.Address, k)
	if !file.IsFile() || !file.Verifies() {
		return nil
	}
	v := s.verifier(p, file)
	for _, files := range p.ordered {
		if len(files.packages) == 0 {
			continue
		}
		if r, ok := v.Identify(&files.Files); ok {
			all = append(all, verifiedRelease{n, files, r})
		}
	}
	return all
}

// ForgetKeys removes the copy of a namespace's keys file, which must be gone. Releases of
// the namespace then count as if it had never had keys. ForgetKeys returns once a scan has
// seen that.
func (x *Index) ForgetKeys(ctx context.Context, n keys.Namespace) error {
	s, err := x.rescan(ctx, false)
	if err != nil {
		return err
	}
	if !s.keys.Knows(n) || s.keys.For(n).IsFile() {
		return fmt.Errorf("%w: remove %s, or write the line `unsigned` into it", keys.ErrNotGone, n.File())
	}
	if err := x.forgetCopy(ctx, n); err != nil {
		return err
	}
	_, err = x.rescan(ctx, false)
	return err
}

func (x *Index) forgetCopy(ctx context.Context, n keys.Namespace) error {
	x.scanning.Lock()
	defer x.scanning.Unlock()
	return x.scanner.copies.Forget(ctx, n)
}
