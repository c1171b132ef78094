package address

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	tfaddr "github.com/hashicorp/terraform-registry-address"
	svchost "github.com/hashicorp/terraform-svchost"
)

// An Address is the name under which clients expect a provider or a module, in normal
// form. Addresses can be compared with == and used as map keys.
type Address struct {
	// Hostname it is mirrored from; empty for a hosted address.
	Hostname svchost.Hostname

	// Namespace, and the Name of a module or the type of a provider. Clients keep
	// the case of a module's parts (checklist 78); here it is folded, so that all
	// spellings find it.
	Namespace, Name string

	// System of a module; empty for a provider.
	System string
}

// IsModule reports whether a is the address of a module and not of a provider.
func (a Address) IsModule() bool { return a.System != "" }

// Clone returns an address that can be kept. The parts of a requested address may share
// memory with the request line, which is larger.
func (a Address) Clone() Address {
	a.Hostname = svchost.Hostname(strings.Clone(string(a.Hostname)))
	a.Namespace, a.Name, a.System = strings.Clone(a.Namespace), strings.Clone(a.Name), strings.Clone(a.System)
	return a
}

// WithHostname returns the same address under another hostname, or the hosted one for an
// empty hostname.
func (a Address) WithHostname(hostname svchost.Hostname) Address {
	a.Hostname = hostname
	return a
}

// String returns the address as users write it.
func (a Address) String() string {
	var hostname, name, system string
	if a.Hostname != "" {
		hostname = DisplayHostname(a.Hostname) + "/"
	}
	if a.Name != "" {
		name = "/" + a.Name
	}
	if a.System != "" {
		system = "/" + a.System
	}
	return hostname + a.Namespace + name + system
}

// Compare orders addresses by hostname and then by each name. Addresses without a
// hostname come first.
func (a Address) Compare(b Address) int {
	return cmp.Or(
		strings.Compare(string(a.Hostname), string(b.Hostname)),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
		strings.Compare(a.System, b.System),
	)
}

// Parse reads an address as users write it: [HOSTNAME/]NAMESPACE/TYPE for a
// provider, [HOSTNAME/]NAMESPACE/NAME/SYSTEM for a module.
func Parse(s string) (Address, error) {
	var hostname string
	path := s
	if first, rest, _ := strings.Cut(s, "/"); IsHostname(first) {
		if strings.HasPrefix(rest, "/") && strings.HasSuffix(first, ":") {
			return Address{}, fmt.Errorf("%q is a URL: leave out %q", s, first+"//")
		}
		hostname, path = first, rest
	}
	var a Address
	var err error
	switch parts := strings.Split(path, "/"); len(parts) {
	case 2:
		a, err = ParseProvider(hostname, parts[0], parts[1])
	case 3:
		if a, err = ParseModule(hostname, parts[0], parts[1], parts[2]); err != nil {
			err = fmt.Errorf("%q is not a module: %w", s, err)
		}
	default:
		err = fmt.Errorf("%q is not an address: write [HOSTNAME/]NAMESPACE/TYPE for a provider, [HOSTNAME/]NAMESPACE/NAME/SYSTEM for a module", s)
	}
	if err != nil {
		return Address{}, err
	}
	if IsHostname(a.Namespace) { // full-width letters become plain ones
		return Address{}, fmt.Errorf("%q is not an address: %s is a hostname, not a namespace", s, a.Namespace)
	}
	return a, nil
}

// ParseProvider normalises the parts of a provider's address as the clients'
// own library does. The address is hosted if hostname is empty.
func ParseProvider(hostname, namespace, typ string) (Address, error) {
	h, err := parseOptionalHostname(hostname)
	if err != nil {
		return Address{}, err
	}
	if isNormalLabel(namespace) && isNormalLabel(typ) && !strings.HasPrefix(typ, "terraform-") {
		return Address{Hostname: h, Namespace: namespace, Name: typ}, nil
	}
	if !utf8.ValidString(namespace + "/" + typ) {
		return Address{}, fmt.Errorf("%q is not a provider's namespace and type: %w", namespace+"/"+typ, errNotUTF8)
	}
	a := Address{Hostname: h}
	if a.Namespace, err = ParseNamespace(namespace); err != nil {
		return Address{}, err
	}
	if a.Name, err = normalised(typ, tfaddr.ParseProviderPart); err != nil {
		return Address{}, fmt.Errorf("%q is not a provider type: %w", typ, err)
	}
	if strings.HasPrefix(a.Name, "terraform-") {
		prefix := "terraform-"
		if strings.HasPrefix(a.Name, filePrefix) {
			prefix = filePrefix
		}
		return Address{}, fmt.Errorf("%q is not a provider type: leave out the prefix %q", typ, prefix)
	}
	return a, nil
}

// ParseNamespace normalises the namespace of a provider.
func ParseNamespace(s string) (string, error) {
	namespace, err := normalised(s, tfaddr.ParseProviderNamespace)
	if err != nil {
		return "", fmt.Errorf("%q is not a provider namespace: %w", s, err)
	}
	return namespace, nil
}

// normalised parses a part of an address, and then parses the result once more. The
// clients' library looks for forbidden characters before it converts full-width
// characters to plain ones, so it accepts "／" and turns it into a slash.
func normalised(part string, parse func(string) (string, error)) (string, error) {
	normal, err := parse(part)
	if err != nil {
		return "", err
	}
	again, err := parse(normal)
	if err == nil && again != normal {
		err = errors.New("it is not written in its normal form")
	}
	return again, err
}

// ParseModule checks the parts of a module's address with the clients' own
// library and folds their case. The address is hosted if hostname is empty.
func ParseModule(hostname, namespace, name, system string) (Address, error) {
	h, err := parseOptionalHostname(hostname)
	if err != nil {
		return Address{}, err
	}
	if isNormalModuleName(namespace) && isNormalModuleName(name) && isWord(system, maxModulePart) {
		return Address{Hostname: h, Namespace: namespace, Name: name, System: system}, nil
	}
	// The library parses whole addresses only: no part may contain a separator.
	for _, part := range []string{namespace, name, system} {
		if strings.ContainsAny(part, "/?#") {
			return Address{}, fmt.Errorf("%q is not a part of a module address", part)
		}
	}
	source, err := tfaddr.ParseModuleSource(namespace + "/" + name + "/" + system)
	if err != nil {
		return Address{}, err
	}
	p := source.Package
	return Address{
		Hostname:  h,
		Namespace: strings.ToLower(p.Namespace), Name: strings.ToLower(p.Name), System: strings.ToLower(p.TargetSystem),
	}, nil
}

func parseOptionalHostname(s string) (svchost.Hostname, error) {
	if s == "" {
		return "", nil
	}
	h, err := ParseHostname(s)
	if err != nil {
		return "", fmt.Errorf("%q is not a hostname: %w", s, err)
	}
	return h, nil
}

// maxModulePart is the maximum length of each part of a module's address.
const maxModulePart = 64

// isNormalModuleName reports whether s is certainly the namespace or the name of a
// module in normal form.
func isNormalModuleName(s string) bool {
	if s == "" || len(s) > maxModulePart || !isLowerAlphanumeric(s[0]) || !isLowerAlphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLowerAlphanumeric(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// isWord reports whether s has at least one and at most so many characters, which are lower-case letters
// from a to z and digits.
func isWord(s string, most int) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		if !isLowerAlphanumeric(s[i]) {
			return false
		}
	}
	return true
}

// SameName reports whether two names of folders are spellings of one part of an address.
func SameName(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	if !strings.Contains(a, ".") || !strings.Contains(b, ".") { // no hostnames
		return false
	}
	one, err := ParseHostname(a)
	other, otherErr := ParseHostname(b)
	return err == nil && otherErr == nil && one == other
}
