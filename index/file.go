package index

import (
	"path"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A File is something clients download: a package, or one of the documents
// that vouch for it.
type File struct {
	// Name is the last part of its URL.
	Name string

	// Version and Platform, OS_ARCH, of the package. Platform is empty for what
	// belongs to all platforms, or to a module.
	Version, Platform string

	// Size in bytes; zero for a signature the registry makes, which is made
	// when it is first asked for.
	Size int64

	// SHA256 of its bytes; of a signature that the registry makes, that of the
	// document it signs.
	SHA256 wire.SHA256

	// ContentType is its media type.
	ContentType string

	in      func(*tree.Tree) tree.Part // the part of the tree it lies in
	dir     string                     // it is in, by its path in that part
	base    string                     // its name there
	modTime int64                      // nanoseconds
	inode   uint64
	changed int64 // nanoseconds: when its inode was last changed

	made *madeFile // nil if it lies in the tree as clients download it
}

func (f *File) stamp() tree.Stamp {
	return tree.Stamp{Size: f.Size, ModTime: f.modTime, Inode: f.inode, Changed: f.changed}
}

// A madeFile is where the bytes of a file come from that no file of the tree has: one of
// these.
type madeFile struct {
	packed  archive.Packed // packed when it is asked for
	content []byte         // of a document, which stays in memory
	sign    func() ([]byte, error)
	signer  string // the ID of the key that signs
}

// source is empty for a file that is not made.
func (f *File) source() madeFile {
	if f.made == nil {
		return madeFile{}
	}
	return *f.made
}

// Tag is a strong validator: the digest of the bytes.
func (f *File) Tag() string {
	if m := f.source(); m.sign != nil {
		return f.SHA256.String() + "-" + m.signer
	}
	return f.SHA256.String()
}

// Path is where a package lies in its part of the tree, with slashes: a file, or
// the folder of one that is packed on request. It is empty for what is kept in
// memory. Paths are for operators: none belongs in an answer.
func (f *File) Path() string { return tree.InFolder(f.dir, f.base) }

// IsFolder reports whether Path is a folder.
func (f *File) IsFolder() bool { return f.source().packed != nil }

// Immutable reports whether the bytes stay the same as long as the file is
// offered. The registry's own SHA256SUMS grows with its packages, and files in a
// folder can change while its version stays.
func (f *File) Immutable() bool { return f.made == nil }

const (
	zipType       = "application/zip"
	gzipType      = "application/gzip"
	textType      = "text/plain; charset=utf-8"
	signatureType = "application/pgp-signature"
)

// contentTypeOf is the media type of a file of a release, by its name.
func contentTypeOf(name string) string {
	switch path.Ext(name) {
	case ".zip":
		return zipType
	case ".sig":
		return signatureType
	}
	return textType
}

// newDocumentFile makes a file of verified bytes that stay in memory: what is served
// is what was checked, whatever happens to the file on the disk.
func newDocumentFile(name, version string, content []byte) *File {
	return &File{Name: name, Version: version, Size: int64(len(content)), SHA256: wire.SHA256Of(content), ContentType: contentTypeOf(name), made: &madeFile{content: content}}
}

// newSignatureFile is a signature of document that is made on the first request: an
// RSA signature takes milliseconds, a tree may have thousands of releases, and most
// of them are never requested.
func newSignatureFile(name, version string, document []byte, signer Signer) *File {
	return &File{
		Name: name, Version: version, SHA256: wire.SHA256Of(document), ContentType: signatureType,
		made: &madeFile{sign: sync.OnceValues(func() ([]byte, error) { return signer.Sign(document) }), signer: signer.PublicKey().ID},
	}
}

func inProviders(t *tree.Tree) tree.Part { return t.Providers }

func inModules(t *tree.Tree) tree.Part { return t.Modules }
