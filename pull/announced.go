package pull

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// OpenTofu's registry announces the hashes of all packages of a release, which complete
// lock files. They are kept beside the packages, so that they are still known when the
// origin is down: for packages that are not in the tree they cannot be computed.

// An announcedFile has the announced hashes of a release. Nothing is verified with
// them.
type announcedFile struct {
	Format    int                           `json:"format"`
	Protocols []string                      `json:"protocols,omitempty"`
	Packages  map[string]wire.PackageHashes `json:"packages"` // by OS_ARCH
}

const (
	announcedFormat = 1       // the only format
	maxAnnounced    = 1 << 18 // bytes; twenty platforms have a tenth
)

// encodeAnnounced returns the content of the file; nil if the origin announced nothing.
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

// decodeAnnounced adds the content of the file to a release, for packages that
// SHA256SUMS lists with the same sum. Anything else is ignored.
func decodeAnnounced(content []byte, r *upstream.Release) {
	var file announcedFile
	if json.Unmarshal(content, &file) != nil || file.Format != announcedFormat {
		return
	}
	announced := make(map[address.Platform]wire.PackageHashes)
	for name, hashes := range file.Packages {
		p, err := address.ParsePlatformName(name)
		if err == nil && agreesWithSums(hashes, p, r) {
			announced[p] = hashes
		}
	}
	if len(announced) > 0 {
		r.Announced = announced
		r.Protocols = wire.ValidProtocols(slices.Clone(file.Protocols))
	}
}

// agreesWithSums reports whether clients know the hashes of a package, and whether they
// include the sum in SHA256SUMS.
func agreesWithSums(hashes wire.PackageHashes, p address.Platform, r *upstream.Release) bool {
	sum, listed := r.Sums[address.PackageName(r.Address.Name, r.Version, p)]
	zh := sum.ZH()
	known := func(hash string) bool { return hash == zh || wire.IsOfFiles(hash) }
	return listed && hashes.Size > 0 && slices.Contains(hashes.Hashes, zh) && !slices.ContainsFunc(hashes.Hashes, func(hash string) bool { return !known(hash) })
}

// keepAnnounced writes the hashes that the origin announces for a release, unless the
// file exists.
func (d *directory) keepAnnounced(r *upstream.Release) error {
	now := encodeAnnounced(r)
	if now == nil || len(now) > maxAnnounced {
		return nil
	}
	name := path.Join(d.path, tree.AnnouncedName(r.Version))
	before, err := read(d.providers, name, maxAnnounced)
	switch {
	case errors.Is(err, ErrUnread):
		return err
	case err == nil && bytes.Equal(before, now):
		return nil
	}
	return d.providers.WriteFile(name, now)
}

// addAnnounced adds the kept hashes to a release from the tree.
func (f *Filler) addAnnounced(r *upstream.Release) error {
	_, in, dir, err := f.folder(r.Address)
	if err != nil {
		return err
	}
	content, err := read(in, path.Join(dir, tree.AnnouncedName(r.Version)), maxAnnounced)
	if errors.Is(err, ErrUnread) {
		return err
	}
	decodeAnnounced(content, r)
	return nil
}
