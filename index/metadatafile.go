package index

import (
	"path"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/metadata"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// readMetadata reads the registry.hcl among the entries of an address's folder, if there is
// one. unreadable are the entries that cannot be read. bad says why it is unknown which
// versions are withdrawn; nil if it is known.
func (w *walker) readMetadata(f *folder, a address.Address, entries, unreadable []tree.Entry) (bad *tree.Finding) {
	s := w.scan
	if s.options.IgnoreMetadata || s.ctx.Err() != nil {
		return nil
	}
	report := path.Join(f.Report, tree.MetadataName)
	r := metadata.Reader{Part: f.Part, Report: report, Memo: &s.memo, Last: w.before.metadataIn(f.Report), Began: s.now, Now: s.options.now}
	f.metadata, bad = r.Read(entries, unreadable)
	if f.metadata != nil {
		for _, p := range f.metadata.Problems {
			w.report.Withhold(report, a, "", p)
		}
	}
	w.young, w.faulty = w.young || r.IsYoung, w.faulty || bad.Passes()
	if bad != nil && r.IsKnown() {
		return nil // the earlier metadata still counts
	}
	return bad
}

// metadataIn returns the registry.hcl of an entry, if that is of a folder in the report. The
// entry may be nil.
func (e *entry) metadataIn(folder string) *metadata.File {
	if e == nil || e.folder.Report != folder {
		return nil
	}
	return e.folder.metadata
}
