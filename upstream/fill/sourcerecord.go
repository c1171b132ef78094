package fill

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Nobody signs modules: TLS and the first fetch decide what a version is. What was fetched
// is recorded beside the package, and stays when that is removed, so that a tag which
// has been moved meanwhile is noticed.

// A sourceRecord says where the package of a module's version came from, and what it was.
// It comes before the package, which is offered as soon as it is there, and is pending
// until then. Whoever finds a pending one without its package knows that nobody has had
// that, and that the version may be another one now. Otherwise it does not change.
type sourceRecord struct {
	Format  int       `json:"format"`
	Source  string    `json:"source"` // without the query of an archive, which may be a secret
	Folder  string    `json:"folder,omitempty"`
	Commit  string    `json:"commit,omitempty"`         // of a repository, or of an archive that says so
	Archive string    `json:"archive_sha256,omitempty"` // as it was received
	Package string    `json:"package_sha256"`           // as it was kept
	Fetched time.Time `json:"fetched"`
	Pending bool      `json:"pending,omitempty"`
}

const (
	sourceRecordFormat = 1    // the only one there is
	maxSourceRecord    = 8192 // bytes; a URL and some hashes have a tenth
)

// sourceRecordName is hidden: the index ignores it.
func sourceRecordName(version string) string { return "." + version + ".source.json" }

// versionOfSourceRecord is the version whose record has a name.
func versionOfSourceRecord(name string) (version string, ok bool) {
	name, hidden := strings.CutPrefix(name, ".")
	text, ok := strings.CutSuffix(name, ".source.json")
	v, err := address.ParseModuleVersion(text)
	if !ok || !hidden || err != nil {
		return "", false
	}
	return v.String(), true
}

// newSourceRecord is for a module that has just been fetched and packed.
func newSourceRecord(s upstream.ModuleSource, c upstream.ModuleContent, packed wire.SHA256) *sourceRecord {
	r := &sourceRecord{
		Format: sourceRecordFormat, Source: s.String(), Folder: s.Folder,
		Commit: c.Commit, Package: packed.String(), Fetched: time.Now().UTC().Truncate(time.Second),
	}
	if c.SHA256 != (wire.SHA256{}) {
		r.Archive = c.SHA256.String()
	}
	return r
}

// settled is the record once its package is there.
func (r *sourceRecord) settled() *sourceRecord {
	s := *r
	s.Pending = false
	return &s
}

// agrees reports whether two records are of the same module. A commit says so of what is
// in a repository, however it was received. Of other archives it is only what they say
// about themselves: what was received counts, or else what is kept of it.
func (r *sourceRecord) agrees(other *sourceRecord) bool {
	switch {
	case r.Folder != other.Folder:
		return false
	case r.Commit != "" && other.Commit != "" && (r.Commit != other.Commit || r.ofRepository() && other.ofRepository()):
		return r.Commit == other.Commit
	case r.Archive != "" && r.Archive == other.Archive:
		return true
	}
	return r.Package == other.Package
}

// ofRepository reports whether the source is a repository, of which a code host sends the
// commit as an archive to servers without git.
func (r *sourceRecord) ofRepository() bool { return strings.HasPrefix(r.Source, "git::") }

// conflict is the error for a version that was another one when it was fetched before.
func (r *sourceRecord) conflict(before *sourceRecord) error {
	return fmt.Errorf("%w: it was %s when it was fetched on %s, and is now %s: if it is meant to be, remove %s from its folder",
		ErrConflict, before.identity(), before.Fetched.Format(time.DateOnly), r.identity(), sourceRecordName("VERSION"))
}

// identity is what a record is told from others by, in short.
func (r *sourceRecord) identity() (text string) {
	switch {
	case r.ofRepository() && r.Commit != "":
		text = "commit " + r.Commit
	case r.Commit != "":
		text = "an archive of commit " + r.Commit + " with the sha256 " + r.Archive
	case r.Archive != "":
		text = "an archive with the sha256 " + r.Archive
	default:
		text = "a package with the sha256 " + r.Package
	}
	if r.Folder != "" {
		text += " in " + r.Folder
	}
	return text
}

func (r *sourceRecord) encode() []byte {
	content, _ := json.MarshalIndent(r, "", "  ") // cannot fail: its date has four digits
	return append(content, '\n')
}

// decodeSourceRecord reads what encode wrote; nil for anything else.
func decodeSourceRecord(content []byte) *sourceRecord {
	r := new(sourceRecord)
	if err := json.Unmarshal(content, r); err != nil || r.Format != sourceRecordFormat || r.Commit+r.Archive == "" || r.Package == "" || r.Fetched.IsZero() {
		return nil
	}
	return r
}

// readSourceRecord returns the record of a version in the folder of its module; nil if
// there is none. One that cannot be read is ErrConflict: without it, nothing shows whether
// the version is still the one that was fetched before. An empty file is no record: records
// come to their place whole, and it only reserves the name. Creating a record decides whether
// somebody still writes to it.
func readSourceRecord(in tree.Part, dir, version string) (*sourceRecord, error) {
	content, err := read(in, path.Join(dir, sourceRecordName(version)), maxSourceRecord)
	if err != nil || len(content) == 0 {
		return nil, err
	}
	r := decodeSourceRecord(content)
	if r == nil {
		return nil, fmt.Errorf("%w: the record of where it came from is damaged: to fetch it again, remove %s from its folder", ErrConflict, sourceRecordName("VERSION"))
	}
	return r, nil
}
