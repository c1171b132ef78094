package index

import (
	"path"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A metadataFile is a registry.hcl as it was read.
//
// While the file cannot be read as a whole, the versions that the last whole one withdrew
// stay withdrawn: a file that has been copied by half must not offer a withdrawn version
// again. Removing the file does.
type metadataFile struct {
	metadata *registryhcl.File    // the metadata that counts
	problems []*tree.Finding      // the parts that do not count
	whole    bool                 // the parts that do not count withdraw no version
	good     []registryhcl.Notice // the notices by which the last whole file withdrew versions

	stamp   tree.Stamp
	settled bool        // a change after it was read would have changed its stamp
	sum     wire.SHA256 // of its content
}

// readMetadata reads the registry.hcl among the entries of an address's folder, if there is
// one. unreadable are the entries that cannot be read. bad says why it is unknown which
// versions are withdrawn; nil if it is known.
func (w *walker) readMetadata(f *folder, a address.Address, entries, unreadable []tree.Entry) (bad *tree.Finding) {
	if w.scan.options.IgnoreMetadata || w.scan.ctx.Err() != nil {
		return nil
	}
	report := path.Join(f.Report, tree.MetadataName)
	named := func(e tree.Entry) bool { return e.Name == tree.MetadataName }
	i, lost := slices.IndexFunc(entries, layout.IsMetadata), slices.IndexFunc(unreadable, named)
	switch {
	case lost >= 0: // the scan reports this
		bad = unreadable[lost].Bad
		f.metadata = w.lastMetadata(report).lost()
	case i >= 0:
		f.metadata = w.readMetadataFile(f.Part, report, entries[i])
		for _, p := range f.metadata.problems {
			w.report.Withhold(report, a, "", p)
			if p.IsFault() {
				bad = p
			}
		}
	default:
		w.scan.memo.Drop(tree.LocationOf(report))
	}
	if bad == nil {
		return nil
	}
	w.faulty = w.faulty || bad.Passes()
	if w.lastMetadata(report) != nil {
		return nil // the earlier metadata still counts
	}
	return bad
}

// readMetadataFile reads a registry.hcl that has changed since the last scan.
func (w *walker) readMetadataFile(part tree.Part, report string, e tree.Entry) *metadataFile {
	now, last := tree.StampOf(e.Info), w.lastMetadata(report)
	if last != nil && last.settled && last.stamp == now {
		return last
	}
	content, bad := w.metadataContent(part, report, e.Path(), now)
	if bad != nil {
		return last.lost(bad)
	}
	var file metadataFile
	if sum := wire.SHA256Of(content); last != nil && last.sum == sum {
		file = *last
	} else {
		file = parseMetadataFile(content, last)
	}
	metadata := *file.metadata
	metadata.Changed = e.Info.ModTime()
	file.metadata = &metadata
	file.stamp, file.settled = now, now.Settled(w.scan.now)
	if file.whole {
		w.Put(tree.LocationOf(report), memo.Record{Stamp: now, Digest: archive.Digest{Content: content}})
	} else {
		w.young = w.young || now.TooYoung(w.scan.options.now(), 0)
	}
	return &file
}

// metadataContent returns the content of a registry.hcl, which the memo may know.
func (w *walker) metadataContent(part tree.Part, report, name string, now tree.Stamp) ([]byte, *tree.Finding) {
	if known, ok := w.scan.memo.Get(tree.LocationOf(report), now); ok {
		return known.Content, nil
	}
	if now.Size > registryhcl.MaxSize {
		return nil, tree.Findingf(tree.TooLarge, "it is larger than %d KiB: shorten it", registryhcl.MaxSize>>10)
	}
	if now.Size == 0 {
		return nil, tree.Findingf(tree.Empty, "it is empty: copy it again, or remove it")
	}
	content, err := part.ReadDocument(name)
	if err != nil {
		return nil, tree.AsFinding(err)
	}
	return content, nil
}

// lastMetadata returns a registry.hcl as of the last scan or, in a new process, the last
// whole one in the memo; nil if there is none.
func (w *walker) lastMetadata(report string) *metadataFile {
	content, kept := w.scan.memo.Document(tree.LocationOf(report))
	if last := w.before.metadataIn(report); last != nil || !kept {
		return last
	}
	file := parseMetadataFile(content, nil)
	return &file
}

// metadataIn returns the registry.hcl of an entry, by its path in the report, or nil.
func (e *entry) metadataIn(report string) *metadataFile {
	if e == nil || tree.InFolder(e.folder.Report, tree.MetadataName) != report {
		return nil
	}
	return e.folder.metadata
}

// parseMetadataFile parses a registry.hcl. last is the file as it was before, or nil.
func parseMetadataFile(content []byte, last *metadataFile) metadataFile {
	metadata, problems := registryhcl.Parse(content)
	file := metadataFile{metadata: &metadata, whole: true, good: metadata.Withdrawn, sum: wire.SHA256Of(content)}
	for _, p := range problems {
		file.problems = append(file.problems, tree.Findingf(tree.BadMetadata, "%s", p))
		file.whole = file.whole && !p.MayWithdraw
	}
	if !file.whole {
		file.good = nil
		if last != nil {
			file.good = last.good
			metadata.Withdrawn = withNotices(metadata.Withdrawn, last.good)
		}
	}
	return file
}

// withNotices adds the notices whose versions no notice in list names.
func withNotices(list, further []registryhcl.Notice) []registryhcl.Notice {
	known := make(map[string]bool)
	for _, n := range list {
		known[n.Versions.String()] = true
	}
	list = slices.Clip(list)
	for _, n := range further {
		if !known[n.Versions.String()] {
			list = append(list, n)
		}
	}
	return list
}

// lost returns the file that replaces f, which cannot be read any more: the metadata of f
// still counts. f may be nil.
func (f *metadataFile) lost(problems ...*tree.Finding) *metadataFile {
	file := metadataFile{metadata: new(registryhcl.File), problems: problems}
	if f != nil {
		file.metadata, file.good = f.metadata, f.good
	}
	return &file
}
