package index

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	tfaddr "github.com/hashicorp/terraform-registry-address"
	svchost "github.com/hashicorp/terraform-svchost"
)

// A ProviderAddress is where clients expect a provider, in the normal form
// they compare addresses in: lower case, the hostname in punycode. An empty
// Hostname is the registry itself, whatever it is called.
type ProviderAddress struct {
	Hostname        svchost.Hostname
	Namespace, Type string
}

// A ModuleAddress is where clients expect a module. Clients keep the case of
// its parts (checklist 78); here it is folded, so that they all find it.
type ModuleAddress struct {
	Hostname                svchost.Hostname
	Namespace, Name, System string
}

// String is the address as a user writes it.
func (a ProviderAddress) String() string {
	return displayHost(a.Hostname) + a.Namespace + "/" + a.Type
}

// String is the address as a user writes it.
func (a ModuleAddress) String() string {
	return displayHost(a.Hostname) + a.Namespace + "/" + a.Name + "/" + a.System
}

func displayHost(h svchost.Hostname) string {
	if h == "" {
		return ""
	}
	return svchost.ForDisplay(string(h)) + "/"
}

// ParseHostname normalises a hostname with an optional port, given in Unicode
// as users and `terraform providers mirror` write it, or in punycode as
// clients request it (checklist 62).
func ParseHostname(s string) (svchost.Hostname, error) {
	if len(s) > 300 { // a name has 253 bytes at most; do not feed the parser more
		return "", errors.New("a hostname is at most 253 characters long")
	}
	if !utf8.ValidString(s) { // the parsers would put a character in place
		return "", errNotUTF8
	}
	return svchost.ForComparison(svchost.ForDisplay(s))
}

var errNotUTF8 = errors.New("it is not UTF-8")

// isHostname tells a HOSTNAME folder from a NAMESPACE folder. No namespace has
// a dot or a colon in it.
func isHostname(folder string) bool {
	return folder == "localhost" || strings.ContainsAny(folder, ".:")
}

// ParseProviderAddress normalises the parts of a provider's address as the
// clients' own library does. An empty hostname stays empty.
func ParseProviderAddress(hostname, namespace, typ string) (ProviderAddress, error) {
	var a ProviderAddress
	var err error
	if hostname != "" {
		if a.Hostname, err = ParseHostname(hostname); err != nil {
			return ProviderAddress{}, fmt.Errorf("%q is not a hostname: %w", hostname, err)
		}
	}
	if !utf8.ValidString(namespace + "/" + typ) {
		return ProviderAddress{}, fmt.Errorf("%q is not a provider's namespace and type: %w", namespace+"/"+typ, errNotUTF8)
	}
	if a.Namespace, err = normalised(namespace, tfaddr.ParseProviderNamespace); err != nil {
		return ProviderAddress{}, fmt.Errorf("%q is not a provider namespace: %w", namespace, err)
	}
	if a.Type, err = normalised(typ, tfaddr.ParseProviderPart); err != nil {
		return ProviderAddress{}, fmt.Errorf("%q is not a provider type: %w", typ, err)
	}
	if strings.HasPrefix(a.Type, "terraform-") {
		prefix := "terraform-"
		if strings.HasPrefix(a.Type, providerPrefix) {
			prefix = providerPrefix
		}
		return ProviderAddress{}, fmt.Errorf("%q is not a provider type: leave out the prefix %q", typ, prefix)
	}
	return a, nil
}

// normalised parses a part of an address, and what comes of it once more: the
// clients' library looks for what a name must not have before it makes plain
// characters of full-width ones. It lets "／" through, and makes a slash of it.
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

// ParseModuleAddress checks the parts of a module's address with the clients'
// own library and folds their case. An empty hostname stays empty.
func ParseModuleAddress(hostname, namespace, name, system string) (ModuleAddress, error) {
	var a ModuleAddress
	var err error
	if hostname != "" {
		if a.Hostname, err = ParseHostname(hostname); err != nil {
			return ModuleAddress{}, fmt.Errorf("%q is not a hostname: %w", hostname, err)
		}
	}
	// The library parses whole addresses only: no part may bring a separator in.
	for _, part := range []string{namespace, name, system} {
		if strings.ContainsAny(part, "/?#") {
			return ModuleAddress{}, fmt.Errorf("%q is not a part of a module address", part)
		}
	}
	source, err := tfaddr.ParseModuleSource(namespace + "/" + name + "/" + system)
	if err != nil {
		return ModuleAddress{}, err
	}
	p := source.Package
	a.Namespace, a.Name, a.System = strings.ToLower(p.Namespace), strings.ToLower(p.Name), strings.ToLower(p.TargetSystem)
	return a, nil
}
