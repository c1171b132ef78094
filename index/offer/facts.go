package offer

import (
	"cmp"
	"time"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// Facts are what is known of a version in the same way, whether it is the release of a provider or
// the version of a module. They do not change.
type Facts struct {
	version *version.Version

	// Hostname of its folder in the tree. Empty: it is hosted, not mirrored.
	Hostname svchost.Hostname

	// Version in the form clients request it: of a release, strict semantic versioning without a v.
	Version string

	// Evidence says where it comes from.
	Evidence

	// Changed lists packages whose bytes have changed since they were first offered.
	Changed []ChangedBytes

	published  int64 // the time of its newest file, in nanoseconds
	offered    int64 // when it was first offered, by a record, in nanoseconds; 0: there is none
	deprecated *registryhcl.Notice
	notes      []string // for the report
}

// Evidence is what files beside the packages of a version say of where it comes from.
type Evidence struct {
	// Signature says whose signature clients get; nil if versions of the kind are not signed.
	Signature *Signature

	// Tag of a repository from which it comes; nil if it comes from none.
	Tag *Tag
}

// Key returns the ID of the key by which the publisher has signed; empty if no publisher has.
func (e Evidence) Key() string {
	if e.Signature == nil || e.Signature.By != ByPublisher {
		return ""
	}
	return e.Signature.KeyID
}

// versioned is a release of a provider, or a version of a module.
type versioned interface{ facts() *Facts }

func (f *Facts) facts() *Facts { return f }

func number[V versioned](v V) *version.Version { return v.facts().version }

// numbers returns the versions in a list.
func numbers[V versioned](list []V) []string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = number(v).String()
	}
	return texts
}

// latestOf returns the version to use of a list that is ordered, the newest first.
func latestOf[V versioned](list []V) V {
	best, stable := list[0], false
	for _, v := range list {
		f := v.facts()
		if f.version.Prerelease() != "" {
			continue
		}
		if f.deprecated == nil {
			return v
		}
		if !stable {
			best, stable = v, true
		}
	}
	return best
}

// Deprecated returns the notice that deprecates the version; nil if there is none.
func (f *Facts) Deprecated() *registryhcl.Notice { return f.deprecated }

// Published returns when the version was first offered, by the record of it, or else the time of
// its newest file.
func (f *Facts) Published() time.Time { return time.Unix(0, cmp.Or(f.offered, f.published)) }

// reported returns the version in the form of a report.
func (f *Facts) reported(kind string, a address.Address) report.Offer {
	o := report.Offer{Kind: kind, Address: a.String(), Version: f.Version, Signature: f.Signature.String(), Notes: f.notes}
	return o.WithNotice(f.deprecated)
}

// with returns a version with another value of a fact, or the same version if it has that value.
func with[V any, F comparable](v *V, fact func(*V) *F, value F) *V {
	if *fact(v) == value {
		return v
	}
	other := *v
	*fact(&other) = value
	return &other
}
