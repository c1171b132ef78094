package index

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Most folders of providers do not change from one scan to the next. A scan only lists such
// a folder, and reuses the last scan's result.

// A providerResult has a scan's result for a provider's folder, and everything that the
// result depends on besides the options.
type providerResult struct {
	listed   []listedFolder // the folder and its subfolders
	keys     *keysFile      // of its namespace; nil if there is no keys file
	metadata *metadataFile  // nil without registry.hcl
	walk     *Report        // the report of the walk, in which nothing is withheld
	packages int            // in the folder
	offered  offeredProvider
}

// A listedFolder identifies the state of a folder when it was listed.
type listedFolder struct {
	dir, report string      // its paths in its part, and in a report
	entries     wire.SHA256 // of the names in it, and of the stamps of its files
}

// note remembers the entries of a folder, or that the result depends on more than the
// entries: a file may change again unnoticed, or a symlink may lead elsewhere.
func (w *walker) note(dir, report string, entries []tree.Entry) {
	if !w.notes || w.depends {
		return
	}
	sum, lasts := w.scan.fingerprint(entries)
	w.listed, w.depends = append(w.listed, listedFolder{dir, report, sum}), !lasts
}

// fingerprint returns a digest of the names of entries, and of the stamps of the files among
// them. lasts reports whether any change would change the digest.
func (s *scan) fingerprint(entries []tree.Entry) (sum wire.SHA256, lasts bool) {
	h := sha256.New()
	var b []byte
	lasts = true
	for _, e := range entries {
		b = append(b[:0], e.Name...)
		b = append(b, 0)
		switch {
		case e.Bad != nil || e.Link:
			lasts = false
		case e.Info.IsDir():
			b = append(b, 'd')
		default:
			stamp := tree.StampOf(e.Info)
			lasts = lasts && stamp.Settled(s.now)
			b = memo.AppendStamp(append(b, 'f'), stamp)
			if !e.Info.Mode().IsRegular() {
				lasts = false
			}
		}
		h.Write(b)
	}
	h.Sum(sum[:0])
	return sum, lasts
}

// reuse reuses the result of the last scan if nothing that it depends on has changed, and
// reports whether it did.
func (w *walker) reuse(p *providerFolder, keys *keysFolder) bool {
	o := w.scan.last.providers[p.report]
	if o == nil || !o.keys.same(keys.keysFor(p.keysOf())) || w.scan.now.Sub(o.offered.since) >= verifiedFor || w.scan.now.Before(o.offered.since) {
		return false
	}
	for _, l := range o.listed {
		w.scan.watch.add(p.part, l.dir)
		entries, err := p.part.List(l.dir)
		if err != nil || w.scan.ctx.Err() != nil {
			return false
		}
		if sum, lasts := w.scan.fingerprint(entries); !lasts || sum != l.entries {
			return false
		}
	}
	for _, l := range o.listed {
		w.scan.memo.Retain(l.report)
	}
	w.scan.releases.retain(p.address)
	w.report, w.recalled = o.walk, o.packages
	p.metadata, p.result = o.metadata, o
	return true
}

// newResult returns the result for the next scan to reuse; nil if the result depends on more
// than the entries of folders.
func (p *providerFolder) newResult(offered offeredProvider, keys *keysFile) *providerResult {
	if p.result != nil {
		return p.result
	}
	if p.walked == nil || p.walked.depends || len(p.walked.report.Withheld) > 0 || !offered.lasts() {
		return nil
	}
	o := &providerResult{metadata: p.metadata, listed: slices.Clip(p.walked.listed), keys: keys, walk: p.walked.report, offered: offered}
	for _, r := range p.releases {
		o.packages += len(r.packages)
	}
	return o
}

// lasts reports whether the same files and keys have the same result again, until signatures
// must be verified again.
func (o *offeredProvider) lasts() bool {
	return !o.passing && len(o.report.Withheld) == 0 && len(o.pending.versions) == 0 && o.report.Pending == 0
}

// same reports whether two keys files have the same content. Either may be nil.
func (k *keysFile) same(other *keysFile) bool {
	if k == nil || other == nil {
		return k == other
	}
	return k.sum == other.sum && (k.Keyring == nil) == (other.Keyring == nil)
}

// sinceEarlier notes the time of a verification.
func (o *offeredProvider) sinceEarlier(at time.Time) {
	if at.Before(o.since) {
		o.since = at
	}
}
