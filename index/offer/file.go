package offer

import (
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A File is a file that clients download: a package, or a document that vouches for it.
type File struct {
	// Name is the last part of its URL.
	Name string

	// Version and Platform, OS_ARCH, of the package. Platform is empty for files of all
	// platforms, and for modules.
	Version, Platform string

	// Size in bytes; zero for a signature of the registry, which is made when it is first
	// requested.
	Size int64

	// SHA256 of its bytes; for a signature of the registry, the SHA256 of the signed
	// document.
	SHA256 wire.SHA256

	// ContentType is its media type.
	ContentType string

	part    func(*tree.Tree) tree.Part // the part of the tree it lies in
	dir     string                     // its folder, by the path in that part
	base    string                     // its name there
	modTime int64                      // nanoseconds
	inode   uint64
	changed int64 // nanoseconds: when its inode was last changed

	made *madeFile // nil if the file lies in the tree in the form that clients download
}

// NewFile returns a file in a part of the tree, as it was read, in the form that clients download.
// If it is packed, that is made of a folder.
func NewFile(name string, part func(*tree.Tree) tree.Part, at tree.Location, read memo.Record, packed archive.Packed) File {
	s := read.Stamp
	f := File{
		Name: name, ContentType: contentTypeOf(name), Size: read.Size, SHA256: read.SHA256,
		part: part, dir: at.Dir, base: at.Name, modTime: s.ModTime, inode: s.Inode, changed: s.Changed,
	}
	if packed != nil {
		f.made = &madeFile{packed: packed}
	}
	return f
}

// Part returns the part of a tree in which the file lies. ok is false for a document in memory.
func (f *File) Part(t *tree.Tree) (in tree.Part, ok bool) {
	if f.part == nil {
		return in, false
	}
	return f.part(t), true
}

// Stamp returns the stamp of the file when it was verified.
func (f *File) Stamp() tree.Stamp {
	return tree.Stamp{Size: f.Size, ModTime: f.modTime, Inode: f.inode, Changed: f.changed}
}

// A madeFile has the source of a file's bytes if they are not in a file of the tree. One of
// these is set.
type madeFile struct {
	packed  archive.Packed // packed when it is requested
	since   time.Time      // see UnchangedSince
	content []byte         // of a document, which stays in memory
	sign    func() ([]byte, error)
	signer  string // the ID of the key that signs
}

// source returns how the file is made; zero for a file that is not made.
func (f *File) source() madeFile {
	if f.made == nil {
		return madeFile{}
	}
	return *f.made
}

// Tag returns a strong validator: the digest of the bytes.
func (f *File) Tag() string {
	if m := f.source(); m.sign != nil {
		return f.SHA256.String() + "-" + m.signer
	}
	return f.SHA256.String()
}

// Path returns where a package lies in its part of the tree, with slashes: a file, or a
// folder that is packed on request. It is empty for documents in memory. Paths are for
// operators and do not belong in answers.
func (f *File) Path() string { return tree.InFolder(f.dir, f.base) }

// IsFolder reports whether Path is a folder.
func (f *File) IsFolder() bool { return f.source().packed != nil }

// UnchangedSince returns when a file in a folder that is packed was last changed, as its file system
// tells it. A folder that is renamed into place keeps this time. Zero: it is not known.
func (f *File) UnchangedSince() time.Time { return f.source().since }

// NoteChanges has UnchangedSince of a new file tell what the part of the tree tells in which it lies.
func (f *File) NoteChanges(in tree.Part) {
	if !f.IsFolder() {
		return
	}
	if since, ok := in.UnchangedSince(f.Stamp(), f.Path()); ok {
		f.made.since = since
	}
}

// Immutable reports whether the bytes stay the same as long as the file is offered. The
// registry's own SHA256SUMS grows with its packages, and files in a folder can change while
// its version stays.
func (f *File) Immutable() bool { return f.made == nil }

const (
	zipType       = "application/zip"
	gzipType      = "application/gzip"
	textType      = "text/plain; charset=utf-8"
	signatureType = "application/pgp-signature"
)

// contentTypeOf returns the media type of a file of a release, by its name.
func contentTypeOf(name string) string {
	switch path.Ext(name) {
	case ".zip":
		return zipType
	case ".gz":
		return gzipType
	case ".sig":
		return signatureType
	}
	return textType
}

// NewDocumentFile returns a file of verified bytes that stay in memory. The verified bytes
// are served, whatever happens to the file on the disk.
func NewDocumentFile(name, version string, content []byte) *File {
	return &File{Name: name, Version: version, Size: int64(len(content)), SHA256: wire.SHA256Of(content), ContentType: contentTypeOf(name), made: &madeFile{content: content}}
}

// newSignatureFile returns a signature of document that is made on the first request: an RSA
// signature takes milliseconds, a tree may have thousands of releases, and most of them are
// never requested.
func newSignatureFile(name, version string, document []byte, signer Signer) *File {
	return &File{
		Name: name, Version: version, SHA256: wire.SHA256Of(document), ContentType: signatureType,
		made: &madeFile{sign: sync.OnceValues(func() ([]byte, error) { return signer.Sign(document) }), signer: signer.PublicKey().ID},
	}
}

// NewPackageFile returns a package that CheckPackage has verified and that no scan has seen
// yet. Its name is the path in the tree's providers, with slashes, and info describes the
// verified file.
func NewPackageFile(name, version string, platform address.Platform, info fs.FileInfo, sum wire.SHA256) *File {
	read := memo.Record{Digest: archive.Digest{SHA256: sum, Size: info.Size()}, Stamp: tree.StampOf(info)}
	f := NewFile(path.Base(name), InProviders, tree.Location{Name: name}, read, nil)
	f.Version, f.Platform = version, platform.String()
	return &f
}

// InProviders returns the part of a tree with the files of providers.
func InProviders(t *tree.Tree) tree.Part { return t.Providers }

// InModules returns the part of a tree with the files of modules.
func InModules(t *tree.Tree) tree.Part { return t.Modules }
