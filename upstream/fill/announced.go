package fill

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// OpenTofu's registry tells the hashes of all packages of a release, which lock files are
// complete with. They are kept beside the packages, so that they are still told when the
// origin is down: of packages that are not in the tree they cannot be computed.

// announcedFile is what is kept of a release. Nothing is verified by it.
type announcedFile struct {
	Format    int                           `json:"format"`
	Protocols []string                      `json:"protocols,omitempty"`
	Packages  map[string]wire.PackageHashes `json:"packages"` // by OS_ARCH
}

const (
	announcedFormat = 1       // the only one there is
	maxAnnounced    = 1 << 18 // bytes; twenty platforms have a tenth
)

// announcedName is hidden: the index ignores it.
func AnnouncedName(version string) string { return "." + version + ".packages.json" }

// encodeAnnounced returns what is kept of a release; nil if its origin announced nothing.
func encodeAnnounced(r *upstream.Release) []byte {
	if len(r.Announced) == 0 {
		return nil
	}
	file := announcedFile{Format: announcedFormat, Protocols: r.Protocols, Packages: make(map[string]wire.PackageHashes)}
	for p, hashes := range r.Announced {
		file.Packages[p.String()] = hashes
	}
	content, _ := json.Marshal(file) // cannot fail
	return append(content, '\n')
}

// decodeAnnounced adds to a release what encodeAnnounced wrote, of packages that its
// SHA256SUMS lists with the same sum. Anything else is ignored.
func decodeAnnounced(content []byte, r *upstream.Release) {
	var file announcedFile
	if json.Unmarshal(content, &file) != nil || file.Format != announcedFormat {
		return
	}
	announced := make(map[address.Platform]wire.PackageHashes)
	for name, hashes := range file.Packages {
		os, arch, _ := strings.Cut(name, "_")
		p, err := address.ParsePlatform(os, arch)
		if err == nil && agreesWithSums(hashes, p, r) {
			announced[p] = hashes
		}
	}
	if len(announced) > 0 {
		r.Announced = announced
		r.Protocols = wire.ValidProtocols(slices.Clone(file.Protocols))
	}
}

// agreesWithSums reports whether the hashes of a package are such as clients know, with the
// sum that SHA256SUMS lists among them.
func agreesWithSums(hashes wire.PackageHashes, p address.Platform, r *upstream.Release) bool {
	sum, listed := r.Sums[address.PackageName(r.Address.Name, r.Version, p)]
	zh := "zh:" + sum.String()
	known := func(hash string) bool { return hash == zh || strings.HasPrefix(hash, "h1:") }
	return listed && hashes.Size > 0 && slices.Contains(hashes.Hashes, zh) && !slices.ContainsFunc(hashes.Hashes, func(hash string) bool { return !known(hash) })
}

// keepAnnounced writes what the origin announces of a release, unless that is there
// already.
func (d *directory) keepAnnounced(r *upstream.Release) error {
	now := encodeAnnounced(r)
	if now == nil || len(now) > maxAnnounced {
		return nil
	}
	name := path.Join(d.path, AnnouncedName(r.Version))
	before, err := read(d.providers, name, maxAnnounced)
	switch {
	case errors.Is(err, ErrUnread):
		return err
	case err == nil && bytes.Equal(before, now):
		return nil
	}
	return d.providers.WriteFile(name, now)
}

// addAnnounced adds to a release from the tree what its origin announced of it.
func (f *Filler) addAnnounced(r *upstream.Release) error {
	_, in, dir, err := f.folder(r.Address)
	if err != nil {
		return err
	}
	content, err := read(in, path.Join(dir, AnnouncedName(r.Version)), maxAnnounced)
	if errors.Is(err, ErrUnread) {
		return err
	}
	decodeAnnounced(content, r)
	return nil
}
