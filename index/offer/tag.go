package offer

import (
	"encoding/json"
	"fmt"
	"path"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Tag is the tag of a git repository from which a version of a hosted module was fetched, by the
// record that pull-through keeps beside the package.
type Tag struct {
	Name   string `json:"tag"`
	Commit string `json:"commit"` // of the version

	// Now is the commit to which the tag has been moved since, or TagGone. Empty: it is where it was.
	Now string `json:"tag_now"`
}

// TagGone is the Now of a tag that has been deleted.
const TagGone = "gone"

// maxTagRecord is the size in bytes of the largest record that is read.
const maxTagRecord = 8192

// ReadTag returns the tag of a version in the folder of its module; nil if it does not come from one,
// or if that cannot be read: it is for information only.
func ReadTag(in tree.Part, dir, version string) *Tag {
	content, err := in.ReadFile(path.Join(dir, tree.SourceName(version)), maxTagRecord)
	if err != nil {
		return nil
	}
	t := new(Tag)
	if json.Unmarshal(content, t) != nil || t.Name == "" || t.Commit == "" {
		return nil
	}
	return t
}

// Note says that a tag is no longer where it was; empty if it is. A nil Tag is.
func (t *Tag) Note() string {
	switch {
	case t == nil || t.Now == "":
		return ""
	case t.Now == TagGone:
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
