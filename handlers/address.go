package handlers

import (
	"net/url"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Addresses are brought to their normal form before anything else is done with
// them: what may be read is decided, and what is there looked up, by the same
// address, and an address of what is not there takes the same way as one of what
// is. Nearly all come in the normal form, which costs nothing to see.

// hostedSegment stands for the HOSTNAME in the path of a file that is hosted,
// whatever names the registry has and is asked by. No hostname is like it: a label
// neither begins nor ends with a hyphen, so clients cannot have it in an address,
// and no folder of a tree is taken for it, as a HOSTNAME has a dot or a colon in
// it or is localhost.
const hostedSegment = "-"

// providerFiles is the path of a provider's files, below the registry's prefix:
// the address is the true one, where in the tree they are. Their links are signed
// for it.
func providerFiles(before string, a address.Address) string {
	host := hostedSegment
	if a.Hostname != "" {
		host = string(a.Hostname)
	}
	return before + "/mirror/" + host + "/" + url.PathEscape(a.Namespace) + "/" + url.PathEscape(a.Name) + "/"
}

// moduleFile is the same for the package of a module's version. A hosted one has no
// HOSTNAME in its path, which has a segment less then and cannot be another's.
func moduleFile(before string, a address.Address, version, name string) string {
	host, slash := string(a.Hostname), ""
	if host != "" {
		slash = "/"
	}
	return before + "/modules/" + host + slash + a.Namespace + "/" + a.Name + "/" + a.System + "/" + version + "/" + name
}
