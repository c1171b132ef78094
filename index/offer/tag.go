package offer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Tag is the tag of a git repository from which a version of a hosted module was fetched, by the
// record that pull-through keeps beside the package.
type Tag struct {
	Name   string `json:"tag"`
	Commit string `json:"commit"` // of the version

	// Source is the repository, and the folder in it: git::URL//FOLDER?ref=COMMIT.
	Source string `json:"source"`

	// Package is the SHA256 of the package that was packed.
	Package string `json:"package_sha256"`

	// Now is the commit to which the tag has been moved since, or TagGone. Empty: it is where it was.
	Now string `json:"tag_now"`
}

// TagGone is the Now of a tag that has been deleted.
const TagGone = "gone"

// maxTagRecord is the size in bytes of the largest record that is read.
const maxTagRecord = 8192

// Records are the entries of the records in the folder of a module, by name, as it was listed.
type Records map[string]tree.Entry

// Note adds an entry, if it is of a record.
func (r *Records) Note(e tree.Entry) {
	if _, ok := tree.VersionOfSource(e.Name); !ok {
		return
	}
	if *r == nil {
		*r = make(Records)
	}
	(*r)[e.Name] = e
}

// A TagReader reads the tags of the versions in the folder of a module. A record that the memo knows
// is not read again: with many versions, that would be as many requests to a store at each scan.
type TagReader struct {
	Git     *registryhcl.Git // nil: the module has no repository
	Part    tree.Part
	Dir     string // of the module
	Report  string // its path in a report
	Records Records
	Memo    *memo.Memo
	Now     time.Time
}

// Read returns the tag of a version, which was known before or is nil; nil if the version does not come
// from a tag, or if its record is damaged. bad says why this cannot be read at the moment: what is
// entered in a log without its commit never gets one.
func (r *TagReader) Read(version string, known *ModuleVersion) (t *Tag, bad *tree.Finding) {
	if r.Git == nil {
		return nil, nil
	}
	file := &tree.Location{Dir: r.Dir, Name: tree.SourceName(version), Report: r.Report}
	e, listed := r.Records[file.Name]
	switch {
	case e.Bad != nil:
		return nil, e.Bad
	case listed:
		if d, ok := r.Memo.Get(file, tree.StampOf(e.Info)); ok {
			return parseTag(d.Content), nil
		}
	case known != nil && known.Tag == nil:
		return nil, nil // a record is written before its package, which was there
	}
	content, err := r.Part.ReadFile(file.Path(), maxTagRecord)
	switch {
	case err != nil && !errors.Is(err, tree.ErrDocumentTooLarge):
		return nil, tree.AsFinding(err)
	case err == nil && content == nil && listed: // the listing is an old one, as of an NFS client, or the record has just gone
		return nil, tree.Faultf(tree.Passing, tree.Unreadable, "it is gone, or a symlink to nothing")
	}
	if listed {
		r.Memo.Put(file, memo.Record{Digest: archive.Digest{Content: content}, Stamp: tree.StampOf(e.Info)}, r.Now)
	}
	return parseTag(content), nil
}

// parseTag returns the tag in a record; nil if it has none.
func parseTag(record []byte) *Tag {
	t := new(Tag)
	if json.Unmarshal(record, t) != nil || t.Name == "" || !isCommit(t.Commit) {
		return nil
	}
	return t
}

func isCommit(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// ofPackage returns the tag if a package comes from it, and nil for another package: someone may have removed
// the fetched one, and published one of the same number.
func (t *Tag) ofPackage(f *File) *Tag {
	if t == nil || t.Package != f.SHA256.String() {
		return nil
	}
	return t
}

// IsGone reports whether the tag has been deleted.
func (t *Tag) IsGone() bool { return t.Now == TagGone }

// Note says that a tag is no longer where it was; empty if it is. A nil Tag is.
func (t *Tag) Note() string {
	switch {
	case t == nil || t.Now == "":
		return ""
	case t.IsGone():
		return fmt.Sprintf("its tag %s has been deleted, and the version stays as it was, at commit %s: withdraw it if that is wrong", t.Name, t.Commit)
	}
	return fmt.Sprintf("its tag %s has been moved to commit %s, and the version stays as it was, at commit %s: release a new one", t.Name, t.Now, t.Commit)
}
