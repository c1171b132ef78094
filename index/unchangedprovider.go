package index

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Most folders of providers do not change from one scan to the next. Of such a folder a
// scan only lists what is in it, and takes over what the last one has made of it.

// A providerOutcome is what a scan has made of a provider's folder, and all that depends on
// besides the options.
type providerOutcome struct {
	listed   []listedFolder // the folder and those in it
	keys     *keysFile      // of its namespace; nil if there is no file of them
	metadata *metadataFile  // nil without registry.hcl
	walk     *Report        // what the walk reported, nothing of which is withheld
	packages int            // in the folder
	offered  offeredProvider
}

// A listedFolder is a folder that was listed.
type listedFolder struct {
	dir, report string      // its paths in its part, and in a report
	entries     wire.SHA256 // of the names in it, and of what identifies the files
}

// note remembers the entries of a folder, or that the outcome depends on more than that: a
// file in it may change again unnoticed, or a symlink may lead elsewhere.
func (w *walker) note(dir, report string, entries []tree.Entry) {
	if !w.notes || w.depends {
		return
	}
	sum, lasts := w.scan.fingerprint(entries)
	w.listed, w.depends = append(w.listed, listedFolder{dir, report, sum}), !lasts
}

// fingerprint is of the names of entries, and of what identifies the files among them.
// lasts reports whether it tells of any change.
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

// takeOver takes over the outcome of the last scan if nothing has changed in the folder
// that it depends on, and reports whether it did.
func (w *walker) takeOver(p *providerFolder, keys *keysFolder) bool {
	o := w.scan.last.providers[p.report]
	if o == nil || !o.keys.same(keys.of(p.keysOf())) || w.scan.now.Sub(o.offered.since) >= verifiedFor || w.scan.now.Before(o.offered.since) {
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
	p.metadata, p.outcome = o.metadata, o
	return true
}

// newOutcome returns what the next scan can take over of what this one has made of a folder;
// nil if the outcome depends on more than the entries of folders.
func (p *providerFolder) newOutcome(offered offeredProvider, keys *keysFile) *providerOutcome {
	if p.outcome != nil {
		return p.outcome
	}
	if p.walked == nil || p.walked.depends || len(p.walked.report.Withheld) > 0 || !offered.lasts() {
		return nil
	}
	o := &providerOutcome{metadata: p.metadata, listed: slices.Clip(p.walked.listed), keys: keys, walk: p.walked.report, offered: offered}
	for _, r := range p.releases {
		o.packages += len(r.packages)
	}
	return o
}

// lasts reports whether the same files and keys give the same outcome again, until
// signatures have to be verified again.
func (o *offeredProvider) lasts() bool {
	return !o.passing && len(o.report.Withheld) == 0 && len(o.pending.versions) == 0 && o.report.Pending == 0
}

// same reports whether two files of keys have the same content. Either may be nil.
func (k *keysFile) same(other *keysFile) bool {
	if k == nil || other == nil {
		return k == other
	}
	return k.sum == other.sum && (k.Keyring == nil) == (other.Keyring == nil)
}

// sinceEarlier notes that something was verified at a time.
func (o *offeredProvider) sinceEarlier(at time.Time) {
	if at.Before(o.since) {
		o.since = at
	}
}
