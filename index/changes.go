package index

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// offerChanges are what is offered now and was not before, and the other way
// round. A release that has come to more platforms, or to fewer, is offered for
// those. Both lists are ordered by kind and address, as reports have them.
func offerChanges(before, now []Offer) (added, removed []Offer) {
	for len(before) > 0 || len(now) > 0 {
		var was, is []Offer
		switch order := compareOffers(before, now); {
		case order <= 0:
			was, before = cutAddress(before)
			if order < 0 {
				removed = append(removed, was...)
				continue
			}
			fallthrough
		default:
			is, now = cutAddress(now)
		}
		if len(was) == 0 {
			added = append(added, is...)
			continue
		}
		if !slices.EqualFunc(was, is, sameOffer) {
			added = append(added, missingFrom(was, is)...)
			removed = append(removed, missingFrom(is, was)...)
		}
	}
	return added, removed
}

// compareOffers compares the addresses that two lists begin with. Providers come
// before modules.
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
func cutAddress(offers []Offer) (of, rest []Offer) {
	n := 1
	for n < len(offers) && offers[n].Kind == offers[0].Kind && offers[n].Address == offers[0].Address {
		n++
	}
	return offers[:n], offers[n:]
}

func sameOffer(a, b Offer) bool {
	return a.Version == b.Version && slices.Equal(a.Platforms, b.Platforms)
}

// missingFrom are the versions and platforms of one address that known lacks.
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
		platforms := slices.Clone(o.Platforms)
		platforms = slices.DeleteFunc(platforms, func(p string) bool { return slices.Contains(other.Platforms, p) })
		if len(platforms) > 0 {
			o.Platforms = platforms
			missing = append(missing, o)
		}
	}
	return missing
}

// A file that is copied slowly under its final name cannot be read until it is
// whole. It counts as damaged when nothing has been written to it for copyRest.
const copyRest = 5 * time.Second

// unfinishedReasons are what a file that is not whole yet looks like.
var unfinishedReasons = []Reason{BadArchive, BadChecksums, BadKeys, BadManifest, BadSignature, Empty, NoConfiguration, NotListed}

// beingWritten reports whether a problem may pass by itself.
func (s *Snapshot) beingWritten(p Problem, now time.Time) bool {
	if p.Reason == BeingWritten {
		return true
	}
	if !slices.Contains(unfinishedReasons, p.Reason) {
		return false
	}
	info, err := s.stat(p.Path)
	if err != nil {
		return false
	}
	return now.Sub(info.ModTime()).Abs() < copyRest // the clock of a file server may be ahead
}

// unfinished reports whether an archive that cannot be offered may be one that is
// being written in the place of another. A file that is copied over an old one is
// shorter at first.
func (a *archive) unfinished(now time.Time) bool {
	switch {
	case a.pending || a.bad == nil:
		return false
	case a.bad.reason == BeingWritten:
		return true
	}
	return slices.Contains(unfinishedReasons, a.bad.reason) && now.Sub(time.Unix(0, a.stamp.modTime)).Abs() < copyRest
}

// stat looks at a file by its path in the report.
func (s *Snapshot) stat(report string) (fs.FileInfo, error) {
	part, name, _ := strings.Cut(report, "/")
	parts := map[string]Part{"providers": s.tree.Providers, "modules": s.tree.Modules, "keys": s.tree.Keys}
	p, ok := parts[part]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return p.Fs.Stat(path.Join(p.Dir, name))
}
