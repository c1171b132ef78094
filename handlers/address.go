package handlers

import (
	"net/url"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
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

// hostname normalises a hostname.
func hostname(s string) (svchost.Hostname, error) {
	if isNormalHostname(s) {
		return svchost.Hostname(s), nil
	}
	return index.ParseHostname(s)
}

// providerAddress normalises the address of a provider under a hostname.
func providerAddress(host svchost.Hostname, namespace, typ string) (index.ProviderAddress, error) {
	if isNormalProviderName(namespace) && isNormalProviderName(typ) && !strings.HasPrefix(typ, "terraform-") {
		return index.ProviderAddress{Hostname: host, Namespace: namespace, Type: typ}, nil
	}
	a, err := index.ParseProviderAddress("", namespace, typ)
	a.Hostname = host
	return a, err
}

// moduleAddress normalises the address of a module under a hostname.
func moduleAddress(host svchost.Hostname, namespace, name, system string) (index.ModuleAddress, error) {
	if isNormalModuleName(namespace) && isNormalModuleName(name) && isNormalSystem(system) {
		return index.ModuleAddress{Hostname: host, Namespace: namespace, Name: name, System: system}, nil
	}
	a, err := index.ParseModuleAddress("", namespace, name, system)
	a.Hostname = host
	return a, err
}

// providerFiles is the path of a provider's files, below the registry's prefix:
// the address is the true one, where in the tree they are. Their links are signed
// for it.
func providerFiles(before string, a index.ProviderAddress) string {
	host := hostedSegment
	if a.Hostname != "" {
		host = string(a.Hostname)
	}
	return before + "/mirror/" + host + "/" + url.PathEscape(a.Namespace) + "/" + url.PathEscape(a.Type) + "/"
}

// moduleFile is the same for the package of a module's version. A hosted one has no
// HOSTNAME in its path, which has a segment less then and cannot be another's.
func moduleFile(before string, a index.ModuleAddress, version, name string) string {
	host, slash := string(a.Hostname), ""
	if host != "" {
		slash = "/"
	}
	return before + "/modules/" + host + slash + a.Namespace + "/" + a.Name + "/" + a.System + "/" + version + "/" + name
}

// maxLabel is the length of a hostname's label, and of a provider's name.
const maxLabel = 63

// isNormalHostname reports whether s is a hostname in the normal form: labels in
// lower-case ASCII, with a port or without. It says no to some that are, those in
// punycode among them.
func isNormalHostname(s string) bool {
	name, port, hasPort := strings.Cut(s, ":")
	if hasPort && (port == "" || port == "443" || len(port) > 4 || port[0] == '0' || strings.Trim(port, "0123456789") != "") {
		return false
	}
	if len(name) > 253 {
		return false
	}
	for more := true; more; {
		var label string
		if label, name, more = strings.Cut(name, "."); !isNormalLabel(label) {
			return false
		}
	}
	return true
}

// isNormalProviderName reports whether s is a provider's namespace or type in the
// normal form. It says no to some that are.
func isNormalProviderName(s string) bool { return isNormalLabel(s) }

// isNormalLabel reports whether s has lower-case letters from a to z, digits, and
// hyphens that are neither first nor last nor beside one another.
func isNormalLabel(s string) bool {
	if s == "" || len(s) > maxLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLowerAlphanumeric(c) && (c != '-' || s[i-1] == '-') {
			return false
		}
	}
	return true
}

// isNormalModuleName reports whether s is a module's namespace or name in the
// normal form.
func isNormalModuleName(s string) bool {
	if s == "" || len(s) > 64 || !isLowerAlphanumeric(s[0]) || !isLowerAlphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLowerAlphanumeric(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func isNormalSystem(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		if !isLowerAlphanumeric(s[i]) {
			return false
		}
	}
	return true
}

func isLowerAlphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
