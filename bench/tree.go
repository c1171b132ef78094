package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A tree is a folder that a registry serves. Its content is a function of its shape, so
// that two runs measure the same. Only the key is new each time.
type tree struct {
	shape
	root      string
	providers []provider // the first is hosted, the second mirrored
	module    module     // hosted
}

// A shape says how many packages a tree has, and of how many providers.
type shape struct {
	packages, addresses, namespaces int
	linked                          bool // packages of one platform are one file in all versions
}

// evenly is the shape of most trees.
func evenly(packages int) shape {
	return shape{packages: packages, addresses: (packages + packagesEach - 1) / packagesEach, namespaces: 17}
}

// publicRegistry is the shape of a mirror of all of the public registry, or of a part of
// it. Packages are linked because a million files would need four times the space.
func publicRegistry(packages int) shape {
	const addresses = 24 // for a thousand packages
	s := shape{packages: packages, addresses: packages * addresses / 1000, linked: true}
	s.namespaces = max(s.addresses/8, 17)
	return s
}

// packagesOf returns how many packages a provider has.
func (s shape) packagesOf(number int) int {
	return (number+1)*s.packages/s.addresses - number*s.packages/s.addresses
}

// moduleVersions returns how many versions all modules have.
func (s shape) moduleVersions() int { return max(s.packages/packagesByModule, 1) }

const (
	versionsEach     = 10  // of a module
	packagesEach     = 100 // of a provider
	packagesByModule = 100 // packages for each version of a module

	// minPackages is the size from which a tree has everything that its type names.
	minPackages = 2 * packagesEach
)

// platforms are the platforms of most providers.
var platforms = []string{
	"darwin_amd64", "darwin_arm64", "freebsd_amd64", "linux_386", "linux_amd64",
	"linux_arm", "linux_arm64", "windows_386", "windows_amd64", "windows_arm64",
}

// modified is the time of all files. It is long ago, because a registry does not rely
// on the time of a file that was just written.
var modified = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// newTree fills a new folder with packages, tiny and all different unless they are linked.
// The numbers of hostnames, layouts and sets of documents have no common divisor, so that
// every combination occurs.
func newTree(root string, s shape, publisher key) (*tree, error) {
	hostnames := []string{"", "registry.terraform.io", "", "registry.terraform.io", "registry.opentofu.org"}
	t := &tree{shape: s, root: root}
	for number := range s.addresses {
		packages := s.packagesOf(number)
		p := provider{
			hostname: hostnames[number%len(hostnames)], namespace: fmt.Sprintf("team%02d", number%s.namespaces), typ: fmt.Sprintf("product%04d", number),
			versions:  versions((packages + len(platforms) - 1) / len(platforms)),
			platforms: platforms, packages: packages, linked: s.linked,
			folders: number%2 == 1, documents: documents(number % 3),
		}
		if err := p.write(root, publisher); err != nil {
			return nil, err
		}
		t.providers = append(t.providers, p)
	}
	for number, left := 0, s.moduleVersions(); left > 0; number, left = number+1, left-versionsEach {
		m := module{fmt.Sprintf("team%02d", number%17), fmt.Sprintf("network%04d", number), versions(min(left, versionsEach))}
		if err := m.write(root); err != nil {
			return nil, err
		}
		if number == 0 {
			t.module = m
		}
	}
	return t, nil
}

func (t *tree) hosted() provider   { return t.providers[0] }
func (t *tree) mirrored() provider { return t.providers[1] }

// versions returns that many versions, the oldest first.
func versions(count int) []string {
	var all []string
	for minor := range count {
		all = append(all, fmt.Sprintf("1.%d.0", minor))
	}
	return all
}

// documents are the files of a release beside its packages.
type documents int

const (
	none     documents = iota
	unsigned           // SHA256SUMS and a manifest
	signed             // and the publisher's signature
)

// A provider of a tree.
type provider struct {
	hostname       string // empty: hosted
	namespace, typ string
	versions       []string
	platforms      []string
	packages       int   // 0: one for each version and platform
	size           int64 // of a package in bytes, about; 0: tiny
	folders        bool  // one for each version
	linked         bool  // packages of one platform are one file in all versions
	dense          bool  // the content of packages does not compress
	documents      documents
}

// bigProvider has large packages for one platform.
func bigProvider(typ string, size int64, count int) provider {
	return provider{
		hostname: "registry.terraform.io", namespace: "bench", typ: typ,
		versions: versions(count), platforms: []string{"linux_amd64"}, size: size,
	}
}

// hosted returns the provider as its origin hosts it.
func (p provider) hosted() provider {
	p.hostname = ""
	return p
}

func (p provider) dir(root string) string {
	return filepath.Join(root, "providers", p.hostname, p.namespace, p.typ)
}

func (p provider) packageName(version, platform string) string {
	return fmt.Sprintf("terraform-provider-%s_%s_%s.zip", p.typ, version, platform)
}

// packageFile returns the path of a package of a large provider.
func (p provider) packageFile(root, version string) string {
	return filepath.Join(p.dir(root), p.packageName(version, p.platforms[0]))
}

// mirrorPath returns the path of a file in the mirror protocol.
func (p provider) mirrorPath(file string) string {
	hostname := p.hostname
	if hostname == "" {
		hostname = host
	}
	return fmt.Sprintf("/v1/mirror/%s/%s/%s/%s", hostname, p.namespace, p.typ, file)
}

// originPath returns a path in the registry protocol.
func (p provider) originPath(rest string) string {
	return fmt.Sprintf("/v1/providers/%s/%s/%s", p.namespace, p.typ, rest)
}

// write makes the provider's folder under root.
func (p provider) write(root string, publisher key) error {
	if p.documents == signed {
		file := filepath.Join(root, "keys", p.hostname, p.namespace+".asc")
		if _, err := writeFile(file, text(publisher.public)); err != nil {
			return err
		}
	}
	left := p.packages
	if left == 0 {
		left = len(p.versions) * len(p.platforms)
	}
	first := make(map[string]writtenPackage) // by platform
	for _, version := range p.versions {
		dir := p.dir(root)
		if p.folders {
			dir = filepath.Join(dir, version)
		}
		var sums strings.Builder
		for _, platform := range p.platforms[:min(left, len(p.platforms))] {
			name := p.packageName(version, platform)
			sum, err := p.writePackage(dir, version, platform, first)
			if err != nil {
				return err
			}
			fmt.Fprintf(&sums, "%x  %s\n", sum, name)
			left--
		}
		if p.documents == none {
			continue
		}
		if err := p.writeDocuments(dir, version, []byte(sums.String()), publisher); err != nil {
			return err
		}
	}
	return nil
}

// A writtenPackage is a file and its SHA-256.
type writtenPackage struct {
	file string
	sum  []byte
}

// writePackage writes a package and returns its SHA-256. If packages are linked, it links
// to the first package of the platform.
func (p provider) writePackage(dir, version, platform string, first map[string]writtenPackage) ([]byte, error) {
	name := p.packageName(version, platform)
	file := filepath.Join(dir, name)
	if same, ok := first[platform]; ok && p.linked {
		return same.sum, errors.Join(os.MkdirAll(dir, 0o755), os.Link(same.file, file))
	}
	binary := fmt.Sprintf("terraform-provider-%s_v%s", p.typ, version)
	if p.linked {
		binary = "terraform-provider-" + p.typ
	}
	sum, err := writeFile(file, func(w io.Writer) error { return writeZip(w, binary, name, p.size, p.content()) })
	first[platform] = writtenPackage{file, sum}
	return sum, err
}

// content is what is in large packages.
func (p provider) content() func() ([]byte, error) {
	if p.dense {
		return noise
	}
	return program
}

func (p provider) writeDocuments(dir, version string, sums []byte, publisher key) error {
	prefix := filepath.Join(dir, fmt.Sprintf("terraform-provider-%s_%s_", p.typ, version))
	_, manifestErr := writeFile(prefix+"manifest.json", text([]byte(`{"version":1,"metadata":{"protocol_versions":["5.0","6.0"]}}`+"\n")))
	_, err := writeFile(prefix+"SHA256SUMS", text(sums))
	if err := errors.Join(manifestErr, err); err != nil || p.documents == unsigned {
		return err
	}
	signature, err := publisher.sign(sums)
	if err != nil {
		return err
	}
	_, err = writeFile(prefix+"SHA256SUMS.sig", text(signature))
	return err
}

// A module of a tree, for one system.
type module struct {
	namespace, name string
	versions        []string
}

func (m module) path(rest string) string {
	return fmt.Sprintf("/v1/modules/%s/%s/aws/%s", m.namespace, m.name, rest)
}

func (m module) write(root string) error {
	for _, version := range m.versions {
		file := filepath.Join(root, "modules", m.namespace, m.name, "aws", version+".tar.gz")
		configuration := fmt.Sprintf("# %s %s\nvariable \"name\" {}\n", m.name, version)
		if _, err := writeFile(file, func(w io.Writer) error { return writeModule(w, "main.tf", configuration) }); err != nil {
			return err
		}
	}
	return nil
}

// writeModule writes a module package with files given as names and contents in turn.
func writeModule(w io.Writer, files ...string) error {
	compressed := gzip.NewWriter(w)
	packed := tar.NewWriter(compressed)
	for i := 0; i < len(files); i += 2 {
		header := &tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), ModTime: modified}
		if err := packed.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.WriteString(packed, files[i+1]); err != nil {
			return err
		}
	}
	return errors.Join(packed.Close(), compressed.Close())
}

// writeFile writes a file that looks old, and its folder, and returns the
// SHA-256 of its content.
func writeFile(path string, write func(io.Writer) error) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	if err := errors.Join(write(io.MultiWriter(f, h)), f.Close()); err != nil {
		return nil, fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	return h.Sum(nil), os.Chtimes(path, modified, modified)
}

func text(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(content))
		return err
	}
}
