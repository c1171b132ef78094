package tree

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A Provider is one in a tree, or one to be put there.
type Provider struct {
	// Hostname is empty for a provider of the registry itself.
	Hostname, Namespace, Type string

	// Versions are the oldest first, and have all platforms but perhaps the last.
	Versions []string

	packages int
	held     int  // of each release; the others are only listed. Zero: all
	folders  bool // one for each version
	documents
}

// documents are what a release has beside its packages.
type documents int

const (
	none     documents = iota
	unsigned           // SHA256SUMS and a manifest
	signed             // and the publisher's signature
)

// hostnames in the proportions of a company that has providers of its own.
var hostnames = []string{"", "registry.terraform.io", "", "registry.terraform.io", "registry.opentofu.org"}

// newProvider derives everything from the number. The numbers of hostnames, layouts and
// sets of documents have no common divisor, so every combination occurs.
func newProvider(number, packages int) Provider {
	p := Provider{
		Hostname:  hostnames[number%len(hostnames)],
		Namespace: fmt.Sprintf("team%02d", number%17),
		Type:      fmt.Sprintf("product%04d", number),
		packages:  packages,
		folders:   number%2 == 1,
		documents: documents(number % 3),
	}
	for version := 0; version*len(platforms) < packages; version++ {
		p.Versions = append(p.Versions, fmt.Sprintf("1.%d.0", version))
	}
	return p
}

// Signed is a provider with so many releases, all signed by its publisher.
func Signed(hostname, namespace, typ string, versions int) Provider {
	p := Provider{Hostname: hostname, Namespace: namespace, Type: typ, packages: versions * len(platforms), documents: signed}
	for version := range versions {
		p.Versions = append(p.Versions, fmt.Sprintf("1.%d.0", version))
	}
	return p
}

// Platforms are how many packages each of the releases has.
func (p Provider) Platforms() int { return len(platforms) }

// Holding is the provider in a mirror that holds so many packages of each
// release.
func (p Provider) Holding(packages int) Provider {
	p.held = packages
	return p
}

// PackageName is the name of a file.
func (p Provider) PackageName(version string, platform address.Platform) string {
	return fmt.Sprintf("terraform-provider-%s_%s_%s.zip", p.Type, version, platform)
}

// Dir is the provider's folder in a tree.
func (p Provider) Dir(root string) string {
	return filepath.Join(root, "providers", p.Hostname, p.Namespace, p.Type)
}

// Binary is the name of the file in a package.
func (p Provider) Binary(version string) string {
	return fmt.Sprintf("terraform-provider-%s_v%s", p.Type, version)
}

// Write makes the provider's folder under root.
func (p Provider) Write(root string, publisher index.Signer) error {
	if p.documents == signed {
		if err := p.writeKeys(root, publisher); err != nil {
			return err
		}
	}
	for i, version := range p.Versions {
		dir := p.Dir(root)
		if p.folders {
			dir = filepath.Join(dir, version)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		count := min(p.packages-i*len(platforms), len(platforms))
		if err := p.writeRelease(dir, version, count, publisher); err != nil {
			return err
		}
	}
	return nil
}

// writeKeys is done by each of the namespace's providers, always the same.
func (p Provider) writeKeys(root string, publisher index.Signer) error {
	keys := filepath.Join(root, "keys", p.Hostname)
	if err := os.MkdirAll(keys, 0o755); err != nil {
		return err
	}
	return writeFile(filepath.Join(keys, p.Namespace+".asc"), []byte(publisher.PublicKey().Armor))
}

func (p Provider) writeRelease(dir, version string, count int, publisher index.Signer) error {
	var sums strings.Builder
	for i, platform := range platforms[:count] {
		name := p.PackageName(version, platform)
		content, err := tinyZip(p.Binary(version), name)
		if err != nil {
			return err
		}
		if p.held == 0 || i < p.held {
			if err := writeFile(filepath.Join(dir, name), content); err != nil {
				return err
			}
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	if p.documents == none {
		return nil
	}
	return p.writeDocuments(dir, version, sums.String(), publisher)
}

// writeDocuments has all that a release has beside its packages.
func (p Provider) writeDocuments(dir, version, sums string, publisher index.Signer) error {
	manifest := []byte(`{"version":1,"metadata":{"protocol_versions":["5.0","6.0"]}}` + "\n")
	prefix := filepath.Join(dir, fmt.Sprintf("terraform-provider-%s_%s_", p.Type, version))
	if err := writeFile(prefix+"manifest.json", manifest); err != nil {
		return err
	}
	if err := writeFile(prefix+"SHA256SUMS", []byte(sums)); err != nil {
		return err
	}
	if p.documents == unsigned {
		return nil
	}
	signature, err := publisher.Sign([]byte(sums))
	if err != nil {
		return err
	}
	return writeFile(prefix+"SHA256SUMS.sig", signature)
}
