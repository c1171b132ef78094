package offer

import (
	"fmt"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// ChangedBytes says that the bytes that clients download of a version have changed since the
// version was first offered.
type ChangedBytes struct {
	Path     string    // of the file or folder in the tree, as in a report
	Platform string    // OS_ARCH; empty for a module
	Was, Is  string    // the hash as in lock files, "zh:…", or for a module "h1:…"
	Noticed  time.Time // when the change was found

	// First are the bytes that it was first offered with.
	First *memo.EarlierBytes
}

// ChangesIn returns the change that the record of an archive has; nil if the archive has not
// changed. platform is empty for a module.
func ChangesIn(d memo.Record, at tree.Location, platform string) []ChangedBytes {
	b := d.Earlier
	if b == nil || d.Bad != nil {
		return nil
	}
	c := ChangedBytes{Path: at.ReportPath(), Platform: platform, Noticed: time.Unix(0, b.Noticed).UTC(), First: b}
	if c.Was, c.Is = b.H1, d.FileHashes.H1(); platform != "" || b.H1 == "" || d.FileHashes == "" {
		c.Was, c.Is = b.SHA256.ZH(), d.SHA256.ZH()
	}
	return []ChangedBytes{c}
}

// changedNotes returns the notes of a report about changes of one version.
func changedNotes(all []ChangedBytes) (notes []string) {
	for _, c := range all {
		day, was, is := c.Noticed.Format(time.DateOnly), shortHash(c.Was), shortHash(c.Is)
		if c.Platform == "" {
			notes = append(notes, fmt.Sprintf("its files differ from the files it was first offered with (%s, before %s: %s), and who installs it now gets these: put the old ones back, and publish the new ones as a new version", is, day, was))
			continue
		}
		notes = append(notes, fmt.Sprintf("its package for %s is another than the one it was first offered with (%s, before %s: %s), which lock files refuse: put the old one back, and publish the new one as a new version", c.Platform, is, day, was))
	}
	return notes
}

// shortHash returns the part of a hash that people compare.
func shortHash(hash string) string { return hash[:min(len(hash), len("zh:")+12)] + "…" }

// A ChangedVersion is an offered version whose bytes have changed since it was first
// offered.
type ChangedVersion struct {
	Address address.Address
	Version string
	ChangedBytes
}

// NewlyChanged returns the changes among now that are not among before.
func NewlyChanged(before, now []ChangedVersion) (list []ChangedVersion) {
	known := make(map[string]string)
	for _, c := range before {
		known[c.Path] = c.Is
	}
	for _, c := range now {
		if known[c.Path] != c.Is {
			list = append(list, c)
		}
	}
	return list
}

// BytesOf returns the bytes of a file, by its path, that clients can download of the version of
// a module or of a release; each may be nil. It returns nil if there is no such file.
func BytesOf(v *ModuleVersion, r *Release, name string) *memo.EarlierBytes {
	if v != nil && v.Archive.Path() == name {
		return &memo.EarlierBytes{SHA256: v.Archive.SHA256, H1: v.FileHashes.H1()}
	}
	if r != nil {
		for _, k := range r.Packages {
			if k.File.Path() == name {
				return &memo.EarlierBytes{SHA256: k.File.SHA256, H1: k.FileHashes.H1()}
			}
		}
	}
	return nil
}
