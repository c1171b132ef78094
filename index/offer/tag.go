package offer

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

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

// ReadTag returns the tag of a version in the folder of its module, which has a repository; nil if the
// version does not come from a tag, or if its record is damaged. bad says why this cannot be read at the
// moment: what is entered in a log without its commit never gets one.
func ReadTag(of *registryhcl.Git, in tree.Part, dir, version string) (t *Tag, bad *tree.Finding) {
	if of == nil {
		return nil, nil
	}
	content, err := in.ReadFile(path.Join(dir, tree.SourceName(version)), maxTagRecord)
	if err != nil && !errors.Is(err, tree.ErrDocumentTooLarge) {
		return nil, tree.AsFinding(err)
	}
	t = new(Tag)
	if json.Unmarshal(content, t) != nil || t.Name == "" || !isCommit(t.Commit) {
		return nil, nil
	}
	return t, nil
}

func isCommit(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// of returns the tag if a package comes from it, and nil for another package: someone may have removed
// the fetched one, and published one of the same number.
func (t *Tag) of(f *File) *Tag {
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

// equal reports whether two tags, which may be nil, say the same.
func (t *Tag) equal(other *Tag) bool {
	if t == nil || other == nil {
		return t == other
	}
	return *t == *other
}
