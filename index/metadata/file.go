package metadata

import (
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A File is a registry.hcl as it was read. It is immutable.
//
// While the file cannot be read as a whole, the versions that the last whole one withdrew
// stay withdrawn: a file that has been copied by half must not offer a withdrawn version
// again. Removing the file does. Nor does a repository go with such a file.
type File struct {
	Metadata *registryhcl.File // the metadata that counts
	Problems []*tree.Finding   // about the parts that do not count

	whole   bool                 // the parts that do not count withdraw no version
	good    []registryhcl.Notice // the notices by which the last whole file withdrew versions
	stamp   tree.Stamp
	settled bool        // a change after it was read would have changed its stamp
	sum     wire.SHA256 // of its content
}

// Git returns the repository that the file names; nil if it names none, or if there is no file.
func (f *File) Git() *registryhcl.Git {
	if f == nil {
		return nil
	}
	return f.Metadata.Git
}

// parse parses a registry.hcl. last is the file as it was before, or nil.
func parse(content []byte, last *File) File {
	about, problems := registryhcl.Parse(content)
	file := File{Metadata: &about, whole: true, good: about.Withdrawn, sum: wire.SHA256Of(content)}
	for _, p := range problems {
		file.Problems = append(file.Problems, tree.Findingf(tree.BadMetadata, "%s", p))
		file.whole = file.whole && !p.MayWithdraw
	}
	if !file.whole {
		file.good = nil
		if last != nil {
			file.good = last.good
			about.Withdrawn = withNotices(about.Withdrawn, last.good)
			if about.Git == nil {
				about.Git = last.Metadata.Git // the part that cannot be read may be it
			}
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

// asLastRead returns the file that replaces f, which cannot be read any more: the metadata of f
// still counts. f may be nil.
func (f *File) asLastRead(problems ...*tree.Finding) *File {
	file := File{Metadata: new(registryhcl.File), Problems: problems}
	if f != nil {
		file.Metadata, file.good = f.Metadata, f.good
	}
	return &file
}
