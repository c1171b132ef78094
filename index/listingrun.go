package index

import (
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
)

// A listingRun lists the folders of a scan. In a scan of everything it makes the entries that can
// be made from one listing alone, and keeps these instead: the listings of a large tree take more
// memory than its entries.
type listingRun struct {
	*scan
	keys    *keys.Folder
	way     []*wayWalk
	folders []layout.Folder
	numbers map[address.Address][]int // of the folders, by their address without HOSTNAME
	run     *queue.Run

	// By the number of the folder; one of both is nil.
	listings []*listing
	entries  []*entry
}

func (s *scan) newListingRun(folders []layout.Folder, way []*wayWalk, k *keys.Folder) *listingRun {
	l := &listingRun{
		scan: s, keys: k, way: way, folders: folders, numbers: make(map[address.Address][]int),
		listings: make([]*listing, len(folders)), entries: make([]*entry, len(folders)),
	}
	for i, f := range folders {
		key := f.Address.WithHostname("")
		l.numbers[key] = append(l.numbers[key], i)
	}
	l.run = queue.NewRun(len(folders), l.listFolder)
	return l
}

// listFolder lists the folder of a number.
func (l *listingRun) listFolder(i int) {
	a := l.folders[i].Address
	hasSameAddress := func(j int) bool { return j != i && l.folders[j].Address == a }
	listed := l.list(l.folders[i], l.keys)
	if l.stale[""] && len(listed.walker.unread) == 0 && !slices.ContainsFunc(l.numbers[a.WithHostname("")], hasSameAddress) && l.isCopied(listed, l.keys) {
		l.entries[i] = l.entry(listed, l.keys)
	} else {
		l.listings[i] = listed
	}
}

// listAll lists all folders, and returns what was found in each: its listing or its entry.
func (l *listingRun) listAll() (listings []*listing, entries []*entry) {
	l.run.InParallel(l.options.workers())
	for i := range l.folders {
		if e := l.entries[i]; e != nil {
			entries = append(entries, e)
		} else {
			listings = append(listings, l.listings[i])
		}
	}
	l.listings = nil // each is dropped as soon as it has its entry
	return listings, entries
}
