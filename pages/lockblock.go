package pages

import (
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// lockBlock returns the block of a .terraform.lock.hcl that locks a release with the hashes
// of all its platforms, as clients write it.
func lockBlock(a address.Address, version string, rows []packageRow) code {
	var hashes []string
	for _, r := range rows {
		if r.H1.Full != "" {
			hashes = append(hashes, r.H1.Full)
		}
		hashes = append(hashes, "zh:"+r.SHA256.Full)
	}
	slices.Sort(hashes) // all of h1: before all of zh:
	var b strings.Builder
	b.WriteString("provider " + literal(a.String()) + " {\n  version = " + literal(version) + "\n  hashes = [\n")
	for _, h := range slices.Compact(hashes) {
		b.WriteString("    " + literal(h) + ",\n")
	}
	b.WriteString("  ]\n}")
	return code{"terraform", b.String()}
}
