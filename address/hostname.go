package address

import (
	"errors"
	"strings"
	"unicode/utf8"

	svchost "github.com/hashicorp/terraform-svchost"
)

// The registries that Terraform and OpenTofu ask for an address without a hostname.
const (
	TerraformHost svchost.Hostname = "registry.terraform.io"
	OpenTofuHost  svchost.Hostname = "registry.opentofu.org"
)

// IsDefaultHost reports whether Terraform or OpenTofu asks this registry for addresses without a
// hostname.
func IsDefaultHost(hostname svchost.Hostname) bool {
	return hostname == TerraformHost || hostname == OpenTofuHost
}

// maxHostname limits the input of the parsers; a name has 253 bytes at most.
const maxHostname = 300

var errNotUTF8 = errors.New("it is not UTF-8")

// ParseHostname normalises a hostname with an optional port, given in Unicode
// as users and `terraform providers mirror` write it, or in punycode as
// clients request it (checklist 62).
func ParseHostname(s string) (svchost.Hostname, error) {
	if isNormalHostname(s) {
		return svchost.Hostname(s), nil
	}
	if len(s) > maxHostname {
		return "", errors.New("a hostname is at most 253 characters long")
	}
	if !utf8.ValidString(s) { // the parsers would replace the invalid bytes
		return "", errNotUTF8
	}
	return svchost.ForComparison(svchost.ForDisplay(s))
}

// IsHostname reports whether the first part of an address, of a pattern or of a
// path in the tree is a HOSTNAME rather than a NAMESPACE. No namespace has a dot
// or a colon in it.
func IsHostname(part string) bool {
	return strings.EqualFold(part, "localhost") || strings.ContainsAny(part, ".:")
}

// DisplayHostname returns a hostname as users write it, in Unicode. The result always
// passes IsHostname: the normal form of internal:443 has neither dot nor colon, and
// gets its port back.
func DisplayHostname(h svchost.Hostname) string {
	s := string(h)
	if !isNormalHostname(s) { // others are displayed as they are
		s = svchost.ForDisplay(s)
	}
	if !IsHostname(s) {
		s += ":443"
	}
	return s
}

// maxLabel is the maximum length of a label in a hostname, and of a provider's name.
const maxLabel = 63

// isNormalHostname reports whether s is certainly a hostname in normal form: labels in
// lower-case ASCII, with or without a port. It returns false for some normal hostnames,
// for example in punycode.
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

// isNormalLabel reports whether s consists of lower-case letters from a to z, digits,
// and hyphens that are neither first nor last nor next to one another. A provider's
// namespace and type have the same normal form.
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

func isLowerAlphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
