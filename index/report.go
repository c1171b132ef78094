package index

import (
	"cmp"
	"slices"
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
	NotListed        Reason = "not_listed"        // a package SHA256SUMS does not list
	NameMismatch     Reason = "name_mismatch"     // a file whose name disagrees with its folder
	NoBinary         Reason = "no_binary"         // a provider package without the provider in it
	NotExecutable    Reason = "not_executable"    // a provider that clients could not run
	NoConfiguration  Reason = "no_configuration"  // a module package without a module at its root
	UnknownKey       Reason = "unknown_key"       // signed by a key that the namespace's keys file does not have
	KeyExpired       Reason = "key_expired"       // signed by a key that had expired by then
	Unsigned         Reason = "unsigned"          // not signed by its publisher, where that is required
	Duplicate        Reason = "duplicate"         // the same address found twice
	Empty            Reason = "empty"             // a file without a byte in it
	TooLarge         Reason = "too_large"         // beyond the limits of bounded reading
	Unreadable       Reason = "unreadable"        // permission, I/O, or a symlink that leaves the root
	BeingWritten     Reason = "being_written"     // changed while it was read; the next scan tries again
	Secret           Reason = "secret"            // a module folder with a private key or a saved plan in it
	Misplaced        Reason = "misplaced"         // meant to be offered, but not where or how clients ask for it
	NotPartOfTree    Reason = "not_part_of_tree"  // the tree has no files like this
	Temporary        Reason = "temporary"         // a hidden or temporary name: not looked at until it is renamed
)

// A Report says what a scan made of everything it found, in the manner of
// golang.org/x/mod/zip's CheckedFiles: one bad entry never hides another.
// Paths are relative to the tree, with slashes.
type Report struct {
	// Offered is what clients are told of, by address, newest version first.
	Offered []Offer `json:"offered"`

	// Withheld is what was meant to be offered and is not.
	Withheld []Problem `json:"withheld"`

	// Ignored is what the tree has no use for, and files with temporary names.
	// At most MaxIgnored are listed.
	Ignored []Problem `json:"ignored"`

	// Hint says what to do where nothing of a tree is found: which folder the root
	// should be, or where the first file goes.
	Hint string `json:"hint,omitempty"`

	// Pending counts the packages that have not been read yet.
	Pending int `json:"pending"`

	// IgnoredTotal counts the ignored files, listed or not.
	IgnoredTotal int `json:"ignored_total"`

	// TemporaryTotal counts those of them that have temporary names.
	TemporaryTotal int `json:"temporary_total"`
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

	// Signature says whose signature clients get: "publisher KEYID",
	// "registry KEYID", or "none" for a release only the mirror offers.
	Signature string `json:"signature,omitempty"`

	// Notes are what the operator should know although it is offered.
	Notes []string `json:"notes,omitempty"`
}

// A Problem is one thing that is not offered, and why.
type Problem struct {
	Path    string `json:"path"`
	Address string `json:"address,omitempty"`
	Version string `json:"version,omitempty"`
	Reason  Reason `json:"reason"`

	// Detail is one plain sentence that says what to do.
	Detail string `json:"detail"`
}

// newReport is one with nothing in it, which in JSON are empty lists.
func newReport() *Report {
	return &Report{Offered: []Offer{}, Withheld: []Problem{}, Ignored: []Problem{}}
}

func (r *Report) withhold(p Problem) { r.Withheld = append(r.Withheld, p) }

func (r *Report) ignore(path string, reason Reason, detail string) {
	r.IgnoredTotal++
	if reason == Temporary {
		r.TemporaryTotal++
	}
	if len(r.Ignored) < MaxIgnored {
		r.Ignored = append(r.Ignored, Problem{Path: path, Reason: reason, Detail: detail})
	}
}

// merge adds what another part of the walk, or of an assembly, reported.
func (r *Report) merge(other *Report) {
	r.Offered = append(r.Offered, other.Offered...)
	r.Withheld = append(r.Withheld, other.Withheld...)
	r.Pending += other.Pending
	r.IgnoredTotal += other.IgnoredTotal
	r.TemporaryTotal += other.TemporaryTotal
	room := MaxIgnored - len(r.Ignored)
	r.Ignored = append(r.Ignored, other.Ignored[:min(room, len(other.Ignored))]...)
}

// clone copies the report of the walk, to which each snapshot adds its own.
func (r *Report) clone() *Report {
	c := *r
	c.Offered, c.Withheld, c.Ignored = slices.Clone(r.Offered), slices.Clone(r.Withheld), slices.Clone(r.Ignored)
	return &c
}

// sort makes two reports of the same tree equal, whatever order the scan's
// workers finished in. Offers keep their order within an address.
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
