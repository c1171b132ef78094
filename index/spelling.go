package index

import (
	"fmt"
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A spelling is a folder with an address that other folders may have as well,
// since clients compare addresses in their normal form: acme/demo, ACME/Demo.
type spelling struct {
	folder  *folder
	address address.Address
	normal  bool // it is written in the normal form
	empty   bool // there is nothing in it to offer
}

// oneSpellingEach chooses one folder for each address, in their order: that in
// the normal form, or else the first, but none that is empty while another is
// not. It merges what the walkers found in the folders it chooses, and reports
// the others. A stray ACME/demo/README must not take acme/demo away.
func (w *walker) oneSpellingEach(spellings []spelling, found []walker) (chosen []int) {
	by := make(map[address.Address]int)
	for i, s := range spellings {
		other, known := by[s.address]
		if !known || better(s, spellings[other]) {
			by[s.address] = i
		}
	}
	for i, s := range spellings {
		best := by[s.address]
		switch {
		case best == i:
			chosen = append(chosen, i)
			w.merge(&found[i])
		case s.empty:
			w.merge(&found[i])
		default:
			w.report.withhold(Problem{Path: s.folder.report, Address: s.address.String(), Reason: Duplicate,
				Detail: fmt.Sprintf("it has the address of %s, written differently, and that one is offered: move what is in it there", spellings[best].folder.report)})
		}
	}
	return chosen
}

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
		(f.hostname == string(hostname) || f.hostname == svchost.ForDisplay(string(hostname)))
}
