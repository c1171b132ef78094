package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Reason names why something is not offered. The set is small and fixed, since reasons are
// labels of metrics and scripts compare them. The Detail of a Problem is for people.
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
	Withdrawn        Reason = "withdrawn"         // by a registry.hcl: no client is offered it
	NotPartOfTree    Reason = "not_part_of_tree"  // the tree has no files like this
	Temporary        Reason = "temporary"         // a hidden or temporary name: skipped until renamed
)

// A Finding says why something is not offered, before its location is known.
type Finding struct {
	Reason Reason
	Detail string
	fault  fault
}

func (f *Finding) Error() string { return f.Detail }

// At says what was found, and where.
func (f *Finding) At(report string) string { return report + ": " + f.Detail }

// Findingf returns a finding whose detail is formatted as by fmt.Sprintf.
func Findingf(reason Reason, format string, args ...any) *Finding {
	return &Finding{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// AsFinding returns err itself if it is a finding. It turns any other error into the finding
// of a file that cannot be read. The path that file system errors begin with is left out,
// since the report names the path relative to the tree.
func AsFinding(err error) *Finding {
	var f *Finding
	if errors.As(err, &f) {
		return f
	}
	switch err = WithoutPath(err); {
	case errors.Is(err, ErrStore):
		return Faultf(Passing, StoreFailed, "it cannot be read: %v", err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return Faultf(Passing, Exhausted, "it cannot be read: give the server more open files (%v)", err)
	case errors.Is(err, fs.ErrPermission):
		return Faultf(Lasting, Unreadable, "it cannot be read: give the server the right to (%v)", err)
	case errors.Is(err, fs.ErrNotExist):
		return Faultf(Lasting, Unreadable, "it is gone, or a symlink to nothing")
	case errors.Is(err, syscall.ELOOP):
		return Faultf(Lasting, Unreadable, "it cannot be read: %v", err)
	case escapes(err):
		return Faultf(Lasting, Unreadable, "a symlink leaves the root: keep its target inside, or copy what it leads to")
	}
	return Faultf(Passing, Unreadable, "it cannot be read: %v", err)
}
