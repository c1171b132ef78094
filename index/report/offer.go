package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// Kinds of Offer.
const (
	KindProvider = "provider"
	KindModule   = "module"
)

// An Offer is a version of a provider or a module that clients can install.
type Offer struct {
	Kind    string `json:"kind"`
	Address string `json:"address"`
	Version string `json:"version"`

	// Platforms of a provider release, as OS_ARCH.
	Platforms []string `json:"platforms,omitempty"`

	// Signature says whose signature clients get, in the form of
	// Signature.String; empty for a module.
	Signature string `json:"signature,omitempty"`

	// Notes tell the operator about an offered version.
	Notes []string `json:"notes,omitempty"`
}

// WithNotice returns the offer with a note about the notice that deprecates it, which may be
// nil.
func (o Offer) WithNotice(n *registryhcl.Notice) Offer {
	if n != nil {
		note := "it is deprecated"
		if why := n.String(); why != "" {
			note += ": " + why
		}
		o.Notes = append(slices.Clip(o.Notes), note)
	}
	return o
}

// NoteShadows adds notes to hosted versions that are found under other hostnames too, which
// twice has by version.
func NoteShadows(offers []Offer, twice map[string][]string) {
	for i := range offers {
		o := &offers[i]
		o.Notes = slices.Clip(o.Notes) // the release shares them
		for _, h := range slices.Sorted(slices.Values(twice[o.Version])) {
			o.Notes = append(o.Notes, fmt.Sprintf("it is found under %s too: asked as %s, the registry offers that one", h, h))
		}
	}
}

// NoteBuilds adds notes to offers of one address that clients take for one another. The
// newest version is first.
func NoteBuilds(offers []Offer) {
	number := func(o Offer) string { // the version without its build metadata
		text, _, _ := strings.Cut(o.Version, "+")
		return text
	}
	first := 0
	for i, o := range offers {
		of := offers[first]
		switch {
		case number(o) != number(of):
			first = i
		case o.Version != of.Version:
			offers[i].Notes = append(slices.Clip(o.Notes), fmt.Sprintf("clients take it for %s, from which it differs in build metadata only: withdraw or remove it", of.Version))
		}
	}
}

// Changes returns the offers that are new and the offers that are gone. A release that
// has gained or lost platforms is listed with these platforms. All lists are ordered by kind
// and address, as in reports.
func Changes(before, now []Offer) (added, removed []Offer) {
	for len(before) > 0 || len(now) > 0 {
		var old, current []Offer // of one address
		order := compareOffers(before, now)
		if order <= 0 {
			old, before = cutAddress(before)
		}
		if order >= 0 {
			current, now = cutAddress(now)
		}
		if !slices.EqualFunc(old, current, sameOffer) {
			added = append(added, missingFrom(old, current)...)
			removed = append(removed, missingFrom(current, old)...)
		}
	}
	return added, removed
}

// compareOffers compares the first addresses of two lists. One of the lists may be empty.
// Providers come before modules.
func compareOffers(a, b []Offer) int {
	switch {
	case len(b) == 0:
		return -1
	case len(a) == 0:
		return 1
	}
	return cmp.Or(-cmp.Compare(a[0].Kind, b[0].Kind), cmp.Compare(a[0].Address, b[0].Address))
}

// cutAddress splits off the offers of the first address.
func cutAddress(offers []Offer) (first, rest []Offer) {
	n := 1
	for n < len(offers) && offers[n].Kind == offers[0].Kind && offers[n].Address == offers[0].Address {
		n++
	}
	return offers[:n], offers[n:]
}

func sameOffer(a, b Offer) bool {
	return a.Version == b.Version && slices.Equal(a.Platforms, b.Platforms)
}

// missingFrom returns the versions and platforms of one address that are in offers but not
// in known.
func missingFrom(known, offers []Offer) []Offer {
	versions := make(map[string]Offer, len(known))
	for _, o := range known {
		versions[o.Version] = o
	}
	var missing []Offer
	for _, o := range offers {
		other, ok := versions[o.Version]
		if !ok {
			missing = append(missing, o)
			continue
		}
		o.Platforms = slices.DeleteFunc(slices.Clone(o.Platforms), func(p string) bool { return slices.Contains(other.Platforms, p) })
		if len(o.Platforms) > 0 {
			missing = append(missing, o)
		}
	}
	return missing
}
