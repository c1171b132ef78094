package offer

import (
	"fmt"
	"iter"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
)

// PackageNotes returns notes about packages that clients on some platforms have trouble with. It
// names the platforms in the order of the details.
func PackageNotes(details iter.Seq2[address.Platform, archive.PackageDetail]) (notes []string) {
	var withoutMode, otherHash []string
	for p, detail := range details {
		if p.OS != "windows" && detail.LacksMode() {
			withoutMode = append(withoutMode, p.String())
		}
		if detail.PackedHashes != "" {
			otherHash = append(otherHash, p.String())
		}
	}
	if len(withoutMode) > 0 {
		notes = append(notes, fmt.Sprintf("clients on %s cannot run it, since its zip was made on a system without file modes: "+
			"pack it with the executable bit, as on Linux or macOS", strings.Join(withoutMode, ", ")))
	}
	if len(otherHash) > 0 {
		notes = append(notes, fmt.Sprintf("Terraform that has locked %s from the mirror alone refuses to install it again, "+
			"since its zip has entries for folders, names like ./x or one name twice: pack the files alone, or lock it from its registry",
			strings.Join(otherHash, ", ")))
	}
	return notes
}
