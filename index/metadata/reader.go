package metadata

import (
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Reader reads the registry.hcl in the folder of an address.
type Reader struct {
	Part   tree.Part
	Report string // the path of the file in a report
	Memo   *memo.Memo
	Last   *File            // as of the last scan; nil if there was none
	Began  time.Time        // when the scan began
	Now    func() time.Time // the clock

	// IsYoung is set if the file is too young to be remembered.
	IsYoung bool
}

// Read returns the file among the entries of the folder; nil if there is none. unreadable are
// the entries that cannot be read. bad says why the file cannot be read; nil if it can.
func (r *Reader) Read(entries, unreadable []tree.Entry) (f *File, bad *tree.Finding) {
	isLost := func(e tree.Entry) bool { return e.Name == tree.MetadataName }
	i, lost := slices.IndexFunc(entries, layout.IsMetadata), slices.IndexFunc(unreadable, isLost)
	switch {
	case lost >= 0: // the scan reports this
		return r.last().asLastRead(), unreadable[lost].Bad
	case i < 0:
		r.Memo.Drop(tree.LocationOf(r.Report))
		return nil, nil
	}
	f = r.read(entries[i])
	for _, p := range f.Problems {
		if p.IsFault() {
			bad = p
		}
	}
	return f, bad
}

// IsKnown reports whether there was a file before, whose metadata counts while the file cannot
// be read.
func (r *Reader) IsKnown() bool { return r.last() != nil }

// read returns a file, and reads it if it has changed since the last scan.
func (r *Reader) read(e tree.Entry) *File {
	now, last := tree.StampOf(e.Info), r.last()
	if last != nil && last.settled && last.stamp == now {
		return last
	}
	content, bad := r.content(e.Path(), now)
	if bad != nil {
		return last.asLastRead(bad)
	}
	var file File
	if sum := wire.SHA256Of(content); last != nil && last.sum == sum {
		file = *last
	} else {
		file = parse(content, last)
	}
	about := *file.Metadata
	about.Changed = e.Info.ModTime()
	file.Metadata = &about
	file.stamp, file.settled = now, now.Settled(r.Began)
	r.IsYoung = now.TooYoung(r.Now(), 0)
	if file.whole {
		r.Memo.Put(tree.LocationOf(r.Report), memo.Record{Stamp: now, Digest: archive.Digest{Content: content}}, r.Now())
	}
	return &file
}

// content returns the content of the file, which the memo may know.
func (r *Reader) content(name string, now tree.Stamp) ([]byte, *tree.Finding) {
	if known, ok := r.Memo.Get(tree.LocationOf(r.Report), now); ok {
		return known.Content, nil
	}
	if now.Size > registryhcl.MaxSize {
		return nil, tree.Findingf(tree.TooLarge, "it is larger than %d KiB: shorten it", registryhcl.MaxSize>>10)
	}
	if now.Size == 0 {
		return nil, tree.Findingf(tree.Empty, "it is empty: copy it again, or remove it")
	}
	content, err := r.Part.ReadDocument(name)
	if err != nil {
		return nil, tree.AsFinding(err)
	}
	return content, nil
}

// last returns the file as of the last scan or, in a new process, the last whole one in the
// memo; nil if there is none.
func (r *Reader) last() *File {
	content, kept := r.Memo.Document(tree.LocationOf(r.Report))
	if r.Last != nil || !kept {
		return r.Last
	}
	file := parse(content, nil)
	return &file
}
