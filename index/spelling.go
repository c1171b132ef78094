package index

import (
	"fmt"
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A spelling is a folder whose address other folders may have as well, since
// clients compare addresses in their normal form: acme/demo and ACME/Demo are one.
type spelling struct {
	folder  *folder
	address address.Address
	normal  bool // its path is the address in normal form
	empty   bool // it has nothing to offer
}

// oneSpellingEach chooses one folder for each address, keeping their order: the one
// in normal form or else the first, but no empty one if another is not empty: a stray
// ACME/demo/README must not hide acme/demo. It merges what the walkers found in the
// folders it chooses, and reports the others.
func (w *walker) oneSpellingEach(spellings []spelling, found []walker) (chosen []int) {
	best := make(map[address.Address]int)
	for i, s := range spellings {
		other, known := best[s.address]
		if !known || better(s, spellings[other]) {
			best[s.address] = i
		}
	}
	for i, s := range spellings {
		winner := best[s.address]
		switch {
		case winner == i:
			chosen = append(chosen, i)
			w.merge(&found[i])
		case s.empty:
			w.merge(&found[i])
		default:
			w.report.withhold(Problem{Path: s.folder.report, Address: s.address.String(), Reason: Duplicate,
				Detail: fmt.Sprintf("it has the address of %s in another spelling, and that folder is offered: move its content there", spellings[winner].folder.report)})
		}
	}
	return chosen
}

// better reports whether a is chosen rather than b.
func better(a, b spelling) bool {
	if a.empty != b.empty {
		return b.empty
	}
	return a.normal && !b.normal
}

// inNormalForm reports whether the folder's path is the address as clients
// compare it, with the hostname as users write it or as clients request it.
func (f *folder) inNormalForm(hostname svchost.Hostname, names ...string) bool {
	return slices.Equal(f.names, names) &&
		(f.hostname == string(hostname) || f.hostname == address.DisplayHostname(hostname))
}
