package offer

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A ModulePackage is the package of a version of a module that has been read, as an archive or a
// folder.
type ModulePackage struct {
	tree.Location
	memo.Record

	Part    tree.Part             // in which it lies
	Folder  *archive.ModuleFolder // nil for an archive
	Version *version.Version
	Format  string
	Evidence
}

// NewWrittenModuleVersion returns the version of a module whose package has been written to the
// tree as VERSION.tar.gz, before a scan has seen it. path is the path in the tree's modules,
// info describes the file, and d is the result of CheckModule.
func NewWrittenModuleVersion(hostname svchost.Hostname, v *version.Version, path string, info fs.FileInfo, d archive.Digest) *ModuleVersion {
	p := ModulePackage{Location: tree.Location{Name: path}, Record: memo.Record{Digest: d, Stamp: tree.StampOf(info)}, Version: v, Format: "tar.gz"}
	return p.ModuleVersion(hostname, nil)
}

// ModuleVersion returns the version of a module that has the package: before, which may be nil, if
// it was made of the same package and evidence, and otherwise a new one. The hostname is of its
// folder in the tree.
func (p *ModulePackage) ModuleVersion(hostname svchost.Hostname, before *ModuleVersion) *ModuleVersion {
	state := p.state()
	if before != nil && before.state == state {
		return before
	}
	v := NewModuleVersion(hostname, p.Version, p.file(), "")
	v.FileHashes, v.Evidence, v.Changed, v.summary, v.state = p.FileHashes, p.Evidence, ChangesIn(p.Record, p.Location, ""), archive.SummaryIn(p.Content), state
	v.Tag = p.Tag.ofPackage(v.Archive)
	if p.Folder == nil {
		v.Folder, v.Doubts = archive.ModuleFolderIn(p.Content), archive.DoubtsOf(p.Digest)
	} else {
		v.Folder, v.Doubts = p.Folder.Folder(), p.Folder.Doubts(p.Digest)
		if leftOut := p.Folder.LeftOut(); leftOut != "" {
			v.notes = []string{"leaves out " + leftOut}
		}
	}
	v.notes = slices.Concat(v.notes, v.Doubts.All(), changedNotes(v.Changed))
	if moved := v.Tag.Note(); moved != "" {
		v.notes = append(v.notes, moved)
	}
	return v
}

// state returns a digest of all that a version is made of.
func (p *ModulePackage) state() wire.SHA256 {
	evidence, err := json.Marshal(p.Evidence)
	if err != nil { // it has a time that JSON does not have: the version is a new one each time
		evidence = fmt.Appendf(nil, "%p", p)
	}
	b := memo.AppendRecord(evidence, p.Path(), p.Record)
	if p.Folder != nil {
		b = append(b, p.Folder.LeftOut()...) // its record has the stamps of all other files
	}
	return wire.SHA256Of(b)
}

// file returns the file that clients download.
func (p *ModulePackage) file() *File {
	var packed archive.Packed
	if p.Folder != nil {
		packed = p.Folder.Pack(p.Digest)
	}
	f := NewFile("archive."+p.Format, InModules, p.Location, p.Record, packed)
	f.Version = p.Version.String()
	f.NoteChanges(p.Part)
	return &f
}
