package tree

import (
	"archive/zip"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// linux is the platform of providers that are made for one.
var linux = address.Platform{OS: "linux", Arch: "amd64"}

// Big is a package of about so many bytes for one platform.
type Big struct {
	Provider
	Size    int64
	Content Content
}

// Write makes the package of a version in the provider's folder under root,
// and returns its path. The version also decides about its bytes.
func (b Big) Write(root, version string) (string, error) {
	dir := b.Dir(root)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, b.PackageName(version, linux))
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := b.writeZip(f, version); err != nil {
		return "", fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return path, os.Chtimes(path, written, written)
}

// Sign publishes a version that Write has made: with SHA256SUMS, and a signature
// of it.
func (b Big) Sign(root, version string, publisher index.Signer) error {
	dir, name := b.Dir(root), b.PackageName(version, linux)
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if err := b.writeKeys(root, publisher); err != nil {
		return err
	}
	b.documents = signed
	return b.writeDocuments(dir, version, fmt.Sprintf("%x  %s\n", h.Sum(nil), name), publisher)
}

// writeZip lays out pieces that were compressed before, which is as fast as the
// disk. They are drawn first, because a raw entry's checksum comes before it.
func (b Big) writeZip(w io.Writer, version string) error {
	pieces, err := piecesOf(b.Content)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32.32s", b.Type+" "+version)))))
	var drawn []piece
	h := header(b.Binary(version), b.Content.method())
	sum := crc32.NewIEEE()
	for h.CompressedSize64 < uint64(b.Size) {
		p := pieces[random.IntN(len(pieces))]
		drawn = append(drawn, p)
		sum.Write(p.plain)
		h.CompressedSize64 += uint64(len(p.packed))
		h.UncompressedSize64 += uint64(len(p.plain))
	}
	end := b.Content.end()
	h.CompressedSize64 += uint64(len(end))
	h.CRC32 = sum.Sum32()

	z := zip.NewWriter(w)
	entry, err := z.CreateRaw(h)
	if err != nil {
		return err
	}
	for _, p := range drawn {
		if _, err := entry.Write(p.packed); err != nil {
			return err
		}
	}
	if _, err := entry.Write(end); err != nil {
		return err
	}
	return z.Close()
}
