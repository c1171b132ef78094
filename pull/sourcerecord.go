package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Modules are not signed: TLS and the first fetch determine the content of a version.
// The fetched content is recorded beside the package, and the record stays when the
// package is removed, so that the registry detects a tag that has been moved.

// A sourceRecord describes the source and the content of a module's package. It is
// written before the package, which is offered as soon as it is there, and is pending
// until then. If a pending record has no package, no client has received the package,
// and the version may have other content now. Otherwise the record does not change.
type sourceRecord struct {
	Format  int       `json:"format"`
	Source  string    `json:"source"` // without the query of an archive's URL, which may be a secret
	Folder  string    `json:"folder,omitempty"`
	Tag     string    `json:"tag,omitempty"`            // of a hosted module
	TagNow  string    `json:"tag_now,omitempty"`        // the commit to which it has been moved since, or offer.TagGone
	Commit  string    `json:"commit,omitempty"`         // of a repository, or of an archive that names its commit
	Archive string    `json:"archive_sha256,omitempty"` // of the received archive
	Package string    `json:"package_sha256"`           // of the kept package
	Fetched time.Time `json:"fetched"`
	Pending bool      `json:"pending,omitempty"`
}

const (
	sourceRecordFormat = 1    // the only format
	maxSourceRecord    = 8192 // bytes; a URL and some hashes need a tenth
)

// newSourceRecord returns the record of a module that has just been fetched and packed.
func newSourceRecord(s upstream.ModuleSource, c upstream.ModuleContent, packed wire.SHA256) *sourceRecord {
	r := &sourceRecord{
		Format: sourceRecordFormat, Source: s.String(), Folder: s.Folder, Tag: s.Tag,
		Commit: c.Commit, Package: packed.String(), Fetched: time.Now().UTC().Truncate(time.Second),
	}
	if c.SHA256 != (wire.SHA256{}) {
		r.Archive = c.SHA256.String()
	}
	return r
}

// isIn reports whether the source is in the repository of another one.
func (r *sourceRecord) isIn(repository upstream.ModuleSource) bool {
	rest, ok := strings.CutPrefix(r.Source, "git::"+repository.URL.String())
	return ok && (rest == "" || rest[0] == '?' || strings.HasPrefix(rest, "//")) // after one slash it is another repository
}

// settled returns the record with the state after its package was written.
func (r *sourceRecord) settled() *sourceRecord {
	s := *r
	s.Pending = false
	return &s
}

// agrees reports whether two records describe the same module. A commit proves it for
// the files of a repository, in whatever form they were received. The commit in other
// archives proves nothing: for them the received archive counts, or else the kept
// package.
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

// ofRepository reports whether the source is a repository. A code host sends the commit
// of a repository as an archive to servers without git.
func (r *sourceRecord) ofRepository() bool { return strings.HasPrefix(r.Source, "git::") }

// conflict returns the error for a version with other content than at an earlier fetch.
func (r *sourceRecord) conflict(before *sourceRecord) error {
	return fmt.Errorf("%w: it was %s when it was fetched on %s, and is now %s: if it is meant to be, remove %s from its folder",
		ErrConflict, before.identity(), before.Fetched.Format(time.DateOnly), r.identity(), tree.SourceName("VERSION"))
}

// identity returns a short text that distinguishes the record from others.
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

// decodeSourceRecord reads a result of encode; nil for anything else.
func decodeSourceRecord(content []byte) *sourceRecord {
	r := new(sourceRecord)
	if err := json.Unmarshal(content, r); err != nil || r.Format != sourceRecordFormat || r.Commit+r.Archive == "" || r.Package == "" || r.Fetched.IsZero() {
		return nil
	}
	return r
}

// readSourceRecord returns the record of a version in the folder of its module; nil if
// there is none. The error is ErrConflict if the record cannot be decoded: without it,
// nothing shows whether the version still has the fetched content. An empty file is not
// a record: it only reserves the name, since records are renamed to their place. The
// creation of the record then finds out whether another process is still writing it.
func readSourceRecord(in tree.Part, dir, version string) (*sourceRecord, error) {
	content, err := read(in, path.Join(dir, tree.SourceName(version)), maxSourceRecord)
	if err != nil || len(content) == 0 {
		return nil, err
	}
	r := decodeSourceRecord(content)
	if r == nil {
		return nil, fmt.Errorf("%w: the record of where it came from is damaged: to fetch it again, remove %s from its folder", ErrConflict, tree.SourceName("VERSION"))
	}
	return r, nil
}

// readSource is readSourceRecord, and completes a record that is pending although its package is in the tree:
// the process was killed in between, or the record could not be written. The record then counts also without
// the package. If it cannot be written now, it is returned all the same, together with the error.
func (f *Filler) readSource(in tree.Part, dir, version string) (*sourceRecord, error) {
	r, err := readSourceRecord(in, dir, version)
	if err != nil || r == nil || !r.Pending {
		return r, err
	}
	name := path.Join(dir, version+".tar.gz")
	if exists, err := in.Exists(name); !exists || err != nil {
		return r, err
	}
	sum, err := in.Digest(name)
	if err != nil || sum.String() != r.Package {
		return r, err
	}
	r = r.settled()
	if f.options.ReadOnly {
		return r, nil
	}
	return r, in.WriteFile(path.Join(dir, tree.SourceName(version)), r.encode())
}

// readSources reads the records of all versions of a module, and calls visit with each. The error is of the
// tree: a record could not be read, or not be completed.
func (f *Filler) readSources(a address.Address, visit func(in tree.Part, dir, version string, r *sourceRecord)) (failed error) {
	_, in, dir, err := f.folder(a)
	if err != nil {
		return err
	}
	entries, err := in.Entries(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		version, ok := tree.VersionOfSource(e.Name)
		if !ok || f.ctx.Err() != nil {
			continue
		}
		r, err := f.readSource(in, dir, version)
		if r != nil {
			visit(in, dir, version, r)
		}
		if err != nil && !errors.Is(err, ErrConflict) { // which it is with a damaged record, until someone removes that
			failed = err
		}
	}
	return failed
}

// settleSources completes the records of the versions of a mirrored module, once for each process, and again
// after that has failed: packages that the index has are not filled again, which would do it. The records of
// hosted modules are read whenever their tags are listed.
func (c *originList) settleSources() {
	if c.address.Hostname == "" || !c.address.IsModule() || c.options.ReadOnly || c.settled.Swap(true) {
		return
	}
	if c.readSources(c.address, func(tree.Part, string, string, *sourceRecord) {}) != nil {
		c.settled.Store(false)
	}
}

// noteUnsettled has the records of a module completed when its list is renewed.
func (f *Filler) noteUnsettled(a address.Address) {
	if c, ok := f.lists.Get(a); ok {
		c.settled.Store(false)
	}
}

// CheckModule asks the origin for the present content of a version of a module in the
// tree. It returns ErrConflict if it differs from the fetched content. It fetches
// nothing: if the origin names neither a commit nor a checksum, or does not answer,
// there is nothing to compare.
func (f *Filler) CheckModule(ctx context.Context, a address.Address, version string) error {
	w, err := f.moduleRequest(a, version)
	if err != nil {
		return err
	}
	_, in, dir, err := f.folder(a)
	if err != nil {
		return err
	}
	before, err := f.readSource(in, dir, w.version)
	if before == nil || before.Pending { // it may belong to another package
		return err
	}
	s, err := f.locate(ctx, w)
	if err != nil {
		return nil
	}
	named := newSourceRecord(s, s.NamedContent(), wire.SHA256{})
	if named.Commit+named.Archive == "" {
		return nil
	}
	if named.Folder != before.Folder ||
		named.Commit != "" && before.Commit != "" && named.Commit != before.Commit ||
		named.Archive != "" && before.Archive != "" && named.Archive != before.Archive {
		return fmt.Errorf("%w: it was %s when it was fetched, and is now %s: what is in the tree stays", ErrConflict, before.identity(), named.identity())
	}
	return nil
}
