package record

import (
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A ledger compares what folders offer with a log.
type ledger struct {
	log       func() *tlog.Log // nil while it cannot be read
	hostnames []svchost.Hostname
	require   bool // nothing is offered that is not known to be on record
}

// NewLedger returns what a scan compares with a log. Hostnames are the registry's own. With
// require, what is not on record is withheld.
func NewLedger(l *tlog.Log, hostnames []svchost.Hostname, require bool) index.Ledger {
	return ledger{func() *tlog.Log { return l }, hostnames, require}
}

// Package implements index.Ledger.
func (r ledger) Package(a address.Address, version string, k *index.Package) (time.Time, *tree.Finding) {
	c := r.compare(a, ofPackage(version, k))
	if c.Record == tlog.Replaced {
		return time.Time{}, tree.Findingf(tree.Replaced, "the package for %s is on record with other bytes since %s: put these back, or withdraw the version and publish another one",
			k.Platform, c.Since.Format(time.RFC3339))
	}
	return c.Offered, r.missing(c)
}

// ModuleVersion implements index.Ledger.
func (r ledger) ModuleVersion(a address.Address, v *index.ModuleVersion) (time.Time, *tree.Finding) {
	c := r.compare(a, ofModule(v))
	if c.Record == tlog.Replaced {
		return time.Time{}, tree.Findingf(tree.Replaced, "the version is on record with other bytes since %s: put these back, or withdraw the version and publish another one",
			c.Since.Format(time.RFC3339))
	}
	return c.Offered, r.missing(c)
}

// missing returns why a package must not be offered that is not on record yet; nil if it may
// be.
func (r ledger) missing(c tlog.Comparison) *tree.Finding {
	if !r.require || c.Record != tlog.NotOnRecord {
		return nil
	}
	return tree.Findingf(tree.NotOnRecord, "it is not in the transparency log yet, and tlog has the option require: it is offered when it has been entered, which the registry does by itself unless its log fails")
}

// compare compares a package of a folder with the log. While the log cannot be read, nothing
// is on record: a log that fails keeps nothing from being offered, unless it is required.
func (r ledger) compare(folder address.Address, l tlog.Leaf) tlog.Comparison {
	log := r.log()
	if log == nil {
		return tlog.Comparison{}
	}
	places := placesOf(folder, r.hostnames)
	l.Event, l.Address = tlog.Offered, addressIn(places[0])
	c := log.Compare(l)
	for _, p := range places {
		if c.Record != tlog.NotOnRecord || p.Address == l.Address {
			break
		}
		l.Address = p.Address // entered before the hostname was the registry's own
		c = log.Compare(l)
	}
	return c
}

// Interface guards
var _ index.Ledger = (*Recorder)(nil)
