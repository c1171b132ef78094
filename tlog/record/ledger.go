package record

import (
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Package implements index.Ledger.
func (r *Recorder) Package(a address.Address, version string, k *index.Package) *tree.Finding {
	since, replaced := r.compare(a, ofPackage(version, k))
	if !replaced {
		return nil
	}
	return tree.Findingf(tree.Replaced, "the package for %s is on record with other bytes since %s: put these back, or withdraw the version and publish another one",
		k.Platform, since.UTC().Format(time.RFC3339))
}

// ModuleVersion implements index.Ledger.
func (r *Recorder) ModuleVersion(a address.Address, v *index.ModuleVersion) *tree.Finding {
	since, replaced := r.compare(a, ofModule(v))
	if !replaced {
		return nil
	}
	return tree.Findingf(tree.Replaced, "the version is on record with other files since %s: put these back, or withdraw the version and publish another one",
		since.UTC().Format(time.RFC3339))
}

// compare reports whether the log has a package of a folder with other bytes only, and since
// when. While the log cannot be read, nothing is known of it: a log that fails keeps nothing
// from being offered.
func (r *Recorder) compare(folder address.Address, l tlog.Leaf) (since time.Time, replaced bool) {
	log := r.Log()
	if log == nil {
		return time.Time{}, false
	}
	l.Event, l.Address = tlog.Offered, addressIn(placesOf(folder, r.options.Hostnames)[0])
	record, since := log.Compare(l)
	return since, record == tlog.Replaced
}

// Interface guards
var _ index.Ledger = (*Recorder)(nil)
