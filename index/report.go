package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Reason names why something is not offered. The set is small and fixed: it
// labels metrics and is what scripts match on, where a Problem's Detail is for
// people.
type Reason string

// Every Reason a report can carry.
const (
	BadName          Reason = "bad_name"          // a folder or file name no client can ask for
	BadVersion       Reason = "bad_version"       // not a version clients accept
	BadChecksums     Reason = "bad_checksums"     // a SHA256SUMS that crashes or misleads clients
	BadManifest      Reason = "bad_manifest"      // a _manifest.json that cannot be used
	BadArchive       Reason = "bad_archive"       // an archive that cannot be read to its end
	BadSignature     Reason = "bad_signature"     // a signature that does not verify
	BadKeys          Reason = "bad_keys"          // a keys file, or one block of it, that cannot be used
	ChecksumMismatch Reason = "checksum_mismatch" // not the bytes SHA256SUMS lists
	MissingPackage   Reason = "missing_package"   // a package or manifest that SHA256SUMS lists and that is not there, told by publish
	NotListed        Reason = "not_listed"        // a package SHA256SUMS does not list
	NameMismatch     Reason = "name_mismatch"     // a file whose name disagrees with its folder
	NoBinary         Reason = "no_binary"         // a provider package without the provider in it
	NotExecutable    Reason = "not_executable"    // a provider that clients could not run
	NoConfiguration  Reason = "no_configuration"  // a module package without a module at its root
	UnknownKey       Reason = "unknown_key"       // signed by a key that the namespace's keys file does not have
	KeysMissing      Reason = "keys_missing"      // the namespace had keys, and its keys file is gone or cannot be read
	KeyExpired       Reason = "key_expired"       // signed by a key that had expired by then
	Unsigned         Reason = "unsigned"          // not signed by its publisher, where that is required
	Duplicate        Reason = "duplicate"         // the same address found twice
	Empty            Reason = "empty"             // a file without a byte in it
	TooLarge         Reason = "too_large"         // beyond the limits of bounded reading
	Unreadable       Reason = "unreadable"        // permission, I/O, or a symlink that leaves the root
	BeingWritten     Reason = "being_written"     // changed while it was read; the next scan tries again
	Secret           Reason = "secret"            // a module folder with a private key or a saved plan in it
	BadMetadata      Reason = "bad_metadata"      // something in a registry.hcl that cannot be used
	Misplaced        Reason = "misplaced"         // meant to be offered, but not where or how clients ask for it
	Withdrawn        Reason = "withdrawn"         // by a registry.hcl: it is offered to nobody
	NotPartOfTree    Reason = "not_part_of_tree"  // the tree has no files like this
	Temporary        Reason = "temporary"         // a hidden or temporary name: skipped until renamed
)

// A Report says what became of everything a scan found, in the manner of
// golang.org/x/mod/zip's CheckedFiles: one bad entry never hides another.
// Paths are relative to the tree, with slashes.
type Report struct {
	// Offered is what clients can install, by address, newest version first.
	Offered []Offer `json:"offered"`

	// Withheld is what was meant to be offered and is not.
	Withheld []Problem `json:"withheld"`

	// Ignored is what the tree has no use for, versions that are withdrawn, and files
	// with temporary names.
	// At most MaxIgnored are listed.
	Ignored []Problem `json:"ignored"`

	// Hint says what to do when no file of a tree is found: which folder the root
	// should be, or where the first file goes.
	Hint string `json:"hint,omitempty"`

	// Pending counts the packages that have not been read yet.
	Pending int `json:"pending"`

	// IgnoredTotal counts the ignored files, listed or not.
	IgnoredTotal int `json:"ignored_total"`

	// TemporaryTotal counts those of them that have temporary names, WithdrawnTotal
	// those that are withdrawn.
	TemporaryTotal int `json:"temporary_total"`
	WithdrawnTotal int `json:"withdrawn_total"`
}

// MaxIgnored is how many ignored files a report lists. A tree may lie beside
// any amount of junk; the report must stay readable, and small.
const MaxIgnored = 1000

// Kinds of Offer.
const (
	KindProvider = "provider"
	KindModule   = "module"
)

// An Offer is one version of a provider or a module that clients can install.
type Offer struct {
	Kind    string `json:"kind"`
	Address string `json:"address"`
	Version string `json:"version"`

	// Platforms of a provider release, as OS_ARCH.
	Platforms []string `json:"platforms,omitempty"`

	// Signature says whose signature clients get, in the form of
	// Signature.String; empty for a module.
	Signature string `json:"signature,omitempty"`

	// Notes are what the operator should know although it is offered.
	Notes []string `json:"notes,omitempty"`
}

// noticed returns the offer with a note of the notice that deprecates it, which may
// be nil.
func (o Offer) noticed(n *Notice) Offer {
	if n != nil {
		note := "it is deprecated"
		if why := n.String(); why != "" {
			note += ": " + why
		}
		o.Notes = append(slices.Clip(o.Notes), note)
	}
	return o
}

// A Problem is one thing that is not offered, and why.
type Problem struct {
	Path    string `json:"path"`
	Address string `json:"address,omitempty"`
	Version string `json:"version,omitempty"`
	Reason  Reason `json:"reason"`

	// Detail is one plain sentence that says what to do.
	Detail string `json:"detail"`

	passes bool // the cause may be over a moment later: nothing that was known is withheld
}

// newReport is an empty report. In JSON its lists are empty, not null.
func newReport() *Report {
	return &Report{Offered: []Offer{}, Withheld: []Problem{}, Ignored: []Problem{}}
}

func (r *Report) withhold(p Problem) { r.Withheld = append(r.Withheld, p) }

func (r *Report) ignore(path string, reason Reason, detail string) {
	r.ignoreProblem(Problem{Path: path, Reason: reason, Detail: detail})
}

func (r *Report) ignoreProblem(p Problem) {
	r.IgnoredTotal++
	switch p.Reason {
	case Temporary:
		r.TemporaryTotal++
	case Withdrawn:
		r.WithdrawnTotal++
	}
	if len(r.Ignored) < MaxIgnored {
		r.Ignored = append(r.Ignored, p)
	}
}

// withdraw reports a version that a notice withdraws.
func (r *Report) withdraw(path string, a address.Address, version string, n *Notice) {
	detail := "it is withdrawn: " + cmp.Or(n.String(), "no reason is given")
	r.ignoreProblem(found(Withdrawn, "%s", detail).at(path, a, version))
}

// merge adds what another part of the walk, or of an assembly, reported.
func (r *Report) merge(other *Report) {
	r.Offered = append(r.Offered, other.Offered...)
	r.Withheld = append(r.Withheld, other.Withheld...)
	r.Pending += other.Pending
	r.IgnoredTotal += other.IgnoredTotal
	r.TemporaryTotal += other.TemporaryTotal
	r.WithdrawnTotal += other.WithdrawnTotal
	room := MaxIgnored - len(r.Ignored)
	r.Ignored = append(r.Ignored, other.Ignored[:min(room, len(other.Ignored))]...)
}

// clone copies the report of a walk, to which each snapshot adds its offers.
func (r *Report) clone() *Report {
	c := *r
	c.Offered, c.Withheld, c.Ignored = slices.Clone(r.Offered), slices.Clone(r.Withheld), slices.Clone(r.Ignored)
	return &c
}

// sort makes two reports of the same tree equal, in whatever order the scan's
// workers finished. Offers keep their order within an address.
func (r *Report) sort() {
	slices.SortStableFunc(r.Offered, func(a, b Offer) int {
		return cmp.Or(-cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Address, b.Address))
	})
	byPath := func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Detail, b.Detail))
	}
	slices.SortStableFunc(r.Withheld, byPath)
	slices.SortStableFunc(r.Ignored, byPath)
}

// noteBuilds notes of offers, which are sorted, that clients take them for another one.
func (r *Report) noteBuilds() {
	number := func(o Offer) string { // all but the build metadata
		text, _, _ := strings.Cut(o.Version, "+")
		return text
	}
	first := 0
	for i, o := range r.Offered {
		of := r.Offered[first]
		switch {
		case o.Kind != of.Kind || o.Address != of.Address || number(o) != number(of):
			first = i
		case o.Version != of.Version:
			r.Offered[i].Notes = append(slices.Clip(o.Notes), fmt.Sprintf("clients take it for %s, from which it differs in build metadata only: withdraw or remove it", of.Version))
		}
	}
}

// A finding is why something is not offered, before it is known where.
type finding struct {
	reason Reason
	detail string
	fault  fault
}

func (f *finding) Error() string { return f.detail }

// found makes a finding, with its detail as fmt.Sprintf does.
func found(reason Reason, format string, args ...any) *finding {
	return &finding{reason: reason, detail: fmt.Sprintf(format, args...)}
}

// at is the finding as a report has it. The address may be zero, and the version
// empty.
func (f *finding) at(path string, a address.Address, version string) Problem {
	p := Problem{Path: path, Version: version, Reason: f.reason, Detail: f.detail, passes: f.passes()}
	if a != (address.Address{}) {
		p.Address = a.String()
	}
	return p
}

// asFinding returns err itself if it is a finding, and any other error as that of a
// file that cannot be read, without the path that file system errors begin with:
// the report names it, relative to the tree.
func asFinding(err error) *finding {
	var f *finding
	if errors.As(err, &f) {
		return f
	}
	switch err = withoutPath(err); {
	case errors.Is(err, ErrStore):
		return faulty(passing, storeFailed, "it cannot be read: %v", err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return faulty(passing, exhausted, "it cannot be read: give the server more open files (%v)", err)
	case errors.Is(err, fs.ErrPermission):
		return faulty(lasting, Unreadable, "it cannot be read: give the server the right to (%v)", err)
	case errors.Is(err, fs.ErrNotExist):
		return faulty(lasting, Unreadable, "it is gone, or a symlink to nothing")
	case errors.Is(err, syscall.ELOOP):
		return faulty(lasting, Unreadable, "it cannot be read: %v", err)
	case escapes(err):
		return faulty(lasting, Unreadable, "a symlink leaves the root: keep its target inside, or copy what it leads to")
	}
	return faulty(passing, Unreadable, "it cannot be read: %v", err)
}

// exhausted is the reason of what cannot be read because the server itself is
// short of something, which says nothing about the tree. Reports call it Unreadable, and
// a scan that nothing follows fails as a whole.
const exhausted Reason = "exhausted"

// storeFailed is the reason of what the store of a Bucket did not give, for the same
// reason. An archive that was to be read for the first time is read by a later scan.
const storeFailed Reason = "store_failed"

// failure is why a scan that nothing follows fails as a whole with this report; nil if it
// does not.
func (r *Report) failure() error {
	i := slices.IndexFunc(r.Withheld, func(p Problem) bool { return p.Reason == exhausted || p.Reason == storeFailed })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", r.Withheld[i].Path, r.Withheld[i].Detail)
}

// nameUnreadable gives what is reported for a reason that no report has the one that
// reports have.
func (r *Report) nameUnreadable() {
	for i := range r.Withheld {
		if p := &r.Withheld[i]; p.Reason == exhausted || p.Reason == storeFailed {
			p.Reason = Unreadable
		}
	}
}
