package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
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
	Replaced         Reason = "replaced"          // the transparency log has it with other bytes
	NotOnRecord      Reason = "not_on_record"     // the transparency log does not have it yet, and must
	Withdrawn        Reason = "withdrawn"         // by a registry.hcl: no client is offered it
	NotPartOfTree    Reason = "not_part_of_tree"  // the tree has no files like this
	Temporary        Reason = "temporary"         // a hidden or temporary name: skipped until renamed
)

// A Finding says why something is not offered, before its location is known.
type Finding struct {
	Reason Reason
	Detail string
	fault  fault
	failed error // see ReadError
}

func (f *Finding) Error() string { return f.Detail }

// Line says what was found, and where.
func (f *Finding) Line(report string) string { return report + ": " + f.Detail }

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
	failed := err
	switch err = WithoutPath(err); {
	case errors.Is(err, ErrStore):
		f = Faultf(Passing, StoreFailed, "it cannot be read: %v", err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		f = Faultf(Passing, Exhausted, "it cannot be read: give the server more open files (%v)", err)
	case errors.Is(err, fs.ErrPermission):
		f = Faultf(Lasting, Unreadable, "it cannot be read: give the server the right to (%v)", err)
	case errors.Is(err, fs.ErrNotExist):
		return Faultf(Lasting, Unreadable, "it is gone, or a symlink to nothing")
	case errors.Is(err, syscall.ELOOP):
		return Faultf(Lasting, Unreadable, "it cannot be read: %v", err)
	case LeavesRoot(err):
		return Faultf(Lasting, Unreadable, "a symlink leaves the root: keep its target inside, or copy what it leads to")
	default:
		f = Faultf(Passing, Unreadable, "it cannot be read: %v", err)
	}
	f.failed = failed
	return f
}

// LeavesRoot reports whether os.Root refused to leave its directory, for which package os
// exports no error value.
func LeavesRoot(err error) bool {
	return err != nil && strings.Contains(err.Error(), "escapes")
}

// Exhausted is the reason of a file that cannot be read because the server itself is short
// of something, which says nothing about the tree. Reports call it Unreadable, and a scan
// that no other scan follows fails as a whole.
const Exhausted Reason = "exhausted"

// StoreFailed is the reason of a file that the store of a Bucket failed to return. Like
// Exhausted, it says nothing about the tree. A later scan reads an archive that has not been
// read yet.
const StoreFailed Reason = "store_failed"

// A fault tells why the file system could not say whether a file or folder exists. It says
// nothing about the tree: only a file that does not exist is absent. While there is a fault
// in a folder, its earlier content stays offered.
type fault uint8

const (
	none    fault = iota // the finding is about the content
	Passing              // it may be over a moment later: EIO, ESTALE, EMFILE, a store that fails
	Lasting              // until the operator mends the tree: a dangling link or out of the root, a missing right
)

// Faultf makes a finding of a fault, with its detail as fmt.Sprintf does.
func Faultf(kind fault, reason Reason, format string, args ...any) *Finding {
	return &Finding{Reason: reason, Detail: fmt.Sprintf(format, args...), fault: kind}
}

// IsFault reports whether the result of an earlier scan still counts. f may be nil.
func (f *Finding) IsFault() bool { return f != nil && f.fault != none }

// Passes reports whether trying again soon may succeed. f may be nil.
func (f *Finding) Passes() bool { return f != nil && f.fault == Passing }

// ReadError returns the error with which this process could not read a file that another one may
// read: it has no right to, or the system fails. The error has the path. It is nil for a finding
// about the files, such as a symlink that leads nowhere. f may be nil.
func (f *Finding) ReadError() error {
	if f == nil {
		return nil
	}
	return f.failed
}

// HasNoFile reports whether an error of looking at a name says that no process finds a file
// there: there is none, or a symlink leads to nothing, to itself or out of the root. A file
// that this process may not read may be one that others offer.
func HasNoFile(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || !errors.Is(err, fs.ErrPermission) && !AsFinding(err).Passes()
}

// Inside returns the finding for the folder of a file that has the finding f.
func (f *Finding) Inside(name string) *Finding {
	return &Finding{Reason: f.Reason, Detail: fmt.Sprintf("%q in it: %s", name, f.Detail), fault: f.fault, failed: f.failed}
}

// The reasons why a tree cannot be written to. Callers compare them by errors.Is.
var (
	// ErrDiskFull means that the disk has no room for a file.
	ErrDiskFull = errors.New("the disk is full")

	// ErrNotWritable means that the process may not write, or that the disk fails.
	ErrNotWritable = errors.New("the tree cannot be read and written")

	// ErrReplaced means that the tree that was opened is no longer the tree on the disk. It
	// is an ErrNotWritable, and goes away once the tree has been opened again.
	ErrReplaced = fmt.Errorf("%w: its folder has been replaced meanwhile, try again", ErrNotWritable)

	// ErrEmptied means that a part of the tree is empty in which versions are known, as under
	// the mount point of a volume that is not mounted. It is an ErrNotWritable. What is written
	// there would hide what is missing: then the part is not empty any more.
	ErrEmptied error = notWritable("all that was in it is gone at once: is its volume mounted? If it is meant to be empty, ask for a rescan")

	// ErrStore means that the store of a Bucket failed, which says nothing about the file.
	// It is an ErrNotWritable, and a later attempt may succeed.
	ErrStore error = notWritable("the store failed")
)

// notWritable is an ErrNotWritable with its own text.
type notWritable string

func (n notWritable) Error() string        { return string(n) }
func (n notWritable) Is(target error) bool { return target == ErrNotWritable }

// StorageError returns an error of the disk as ErrDiskFull or ErrNotWritable, with advice
// and without a path; nil for nil. An error that is one of these already is returned
// unchanged.
func StorageError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrDiskFull), errors.Is(err, ErrNotWritable):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room for the tree", ErrDiskFull)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: give the server the right to", ErrNotWritable)
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		return fmt.Errorf("%w: %w", ErrNotWritable, number)
	}
	return ErrNotWritable
}
