package record

import (
	"slices"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// packRule is the number of the rule by which files of a folder are left out when it is
// packed. Another list of such files gets another number.
const packRule = 1

// placesOf returns the places at which clients find the versions of a folder. Hostnames are the registry's own: a
// folder under one of them is hosted, and merged with the folder without HOSTNAME.
func placesOf(folder address.Address, hostnames []svchost.Hostname) (places []index.Place) {
	switch {
	case folder.Hostname != "" && !slices.Contains(hostnames, folder.Hostname):
		return []index.Place{index.PlaceOf(folder)}
	case len(hostnames) == 0:
		return []index.Place{{Address: folder, Hosted: true}}
	}
	for _, h := range hostnames {
		places = append(places, index.Place{Address: folder.WithHostname(h), Merged: true, Hosted: true})
	}
	return places
}

// leavesOf returns the leaves that the log should have of a folder: its packages with the
// event, also those that are not offered before the log has them, and withdrawn versions. The
// log adds the new ones. changes has when packed folders were last changed, as far as that is known.
func leavesOf(s *index.Snapshot, folder address.Address, hostnames []svchost.Hostname, event tlog.Event) (leaves []tlog.Leaf, changes map[packed]time.Time) {
	withdrawn := make(map[string]bool)
	places := placesOf(folder, hostnames)
	for _, p := range places {
		for _, w := range s.WithdrawnVersions(p) {
			if !withdrawn[w.Version] {
				withdrawn[w.Version] = true
				leaves = append(leaves, tlog.Leaf{Event: tlog.Withdrawn, Address: addressIn(p), Version: w.Version})
			}
		}
	}
	add := func(a address.Address, releases []*index.Release, versions []*index.ModuleVersion) {
		add := func(l tlog.Leaf, evidence offer.Evidence, f *index.File, packages int) {
			if l.Key = evidence.Key(); evidence.Tag != nil {
				l.Commit = evidence.Tag.Commit
			}
			if since := f.UnchangedSince(); !since.IsZero() {
				if changes == nil {
					changes = make(map[packed]time.Time)
				}
				changes[packed{a, l.Version, l.Platform}] = since
			}
			if l.Address, l.Event = a, event; packages == 0 && !withdrawn[l.Version] {
				leaves = append(leaves, tlog.Leaf{Event: tlog.Restored, Address: a, Version: l.Version})
			}
			leaves = append(leaves, l)
		}
		for _, r := range releases {
			for i, k := range r.Packages {
				add(ofPackage(r.Version, k), r.Evidence, k.File, i)
			}
		}
		for _, v := range versions {
			add(ofModule(v), v.Evidence, v.Archive, 0)
		}
	}
	for _, p := range places {
		add(addressIn(p), s.Provider(p).ReleaseList(), s.Module(p).VersionList())
	}
	releases, versions := s.Unrecorded(folder)
	add(addressIn(places[0]), releases, versions)
	return leaves, changes
}

// addressIn returns the address of a place in a log: without HOSTNAME if it is hosted.
func addressIn(p index.Place) address.Address {
	if p.Hosted {
		return p.WithHostname("")
	}
	return p.Address
}

func ofPackage(version string, k *index.Package) tlog.Leaf {
	return tlog.Leaf{Version: version, Platform: k.Platform, Hashes: k.Hashes().Hashes, Pack: packOf(k.File)}
}

func ofModule(v *index.ModuleVersion) tlog.Leaf {
	return tlog.Leaf{Version: v.Version, Hashes: v.Hashes(), Pack: packOf(v.Archive)}
}

func packOf(f *index.File) int {
	if f.IsFolder() {
		return packRule
	}
	return 0
}
