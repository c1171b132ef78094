package access

import (
	"fmt"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// An Address is what rules are about: a provider, whose type is its Name and
// which has no System, or a module. Without a Name it is a whole namespace.
type Address struct {
	// Hostname it is asked for under, in the normal form: ASCII, lower case,
	// without the port 443. The registry's own addresses need none: they are the
	// same under all its names.
	Hostname string

	// Own tells that the registry answers as the hostname. What is not its own is
	// mirrored.
	Own bool

	// The parts compare without their case, since clients keep that of a module's
	// (checklist 78).
	Namespace, Name, System string
}

// ParseAddress reads an address as users write it:
// [HOSTNAME/]NAMESPACE/TYPE of a provider, [HOSTNAME/]NAMESPACE/NAME/SYSTEM of a
// module. Without HOSTNAME it is the registry's own; with one it is not, and
// whoever knows the registry's names may correct that.
func ParseAddress(s string) (Address, error) {
	var hostname string
	path := s
	if first, rest, _ := strings.Cut(s, "/"); startsWithHostname(first) {
		if strings.HasPrefix(rest, "/") && strings.HasSuffix(first, ":") {
			return Address{}, fmt.Errorf("%q is a URL: leave out %q", s, first+"//")
		}
		hostname, path = first, rest
	}
	switch parts := strings.Split(path, "/"); len(parts) {
	case 2:
		p, err := index.ParseProviderAddress(hostname, parts[0], parts[1])
		if err != nil {
			return Address{}, err
		}
		return newAddress(s, p.Hostname, p.Namespace, p.Type, "")
	case 3:
		m, err := index.ParseModuleAddress(hostname, parts[0], parts[1], parts[2])
		if err != nil {
			return Address{}, fmt.Errorf("%q is not a module: %w", s, err)
		}
		return newAddress(s, m.Hostname, m.Namespace, m.Name, m.System)
	}
	return Address{}, fmt.Errorf("%q is not an address: write [HOSTNAME/]NAMESPACE/TYPE for a provider, [HOSTNAME/]NAMESPACE/NAME/SYSTEM for a module", s)
}

func newAddress(source string, h svchost.Hostname, namespace, name, system string) (Address, error) {
	if startsWithHostname(namespace) { // full-width letters become plain ones
		return Address{}, fmt.Errorf("%q is not an address: %s is a hostname, not a namespace", source, namespace)
	}
	return Address{Hostname: string(h), Own: h == "", Namespace: namespace, Name: name, System: system}, nil
}

// String is the address as users write it. Whether it is the registry's own is
// to be seen only when it has no hostname.
func (a Address) String() string {
	var b strings.Builder
	if a.Hostname != "" {
		b.WriteString(markedHostname(svchost.ForDisplay(a.Hostname)))
		b.WriteByte('/')
	}
	parts := a.parts()
	b.WriteString(strings.Join(parts[:a.depth()], "/"))
	return b.String()
}

func (a *Address) parts() [3]string { return [3]string{a.Namespace, a.Name, a.System} }

// depth is how many parts the address has.
func (a *Address) depth() int {
	switch {
	case a.System != "":
		return 3
	case a.Name != "":
		return 2
	case a.Namespace != "":
		return 1
	}
	return 0
}

// startsWithHostname tells whether the first part of an address, or of a
// pattern, is a HOSTNAME. No namespace has a dot or a colon in it.
func startsWithHostname(part string) bool {
	return strings.EqualFold(part, "localhost") || strings.ContainsAny(part, ".:")
}

// markedHostname makes a hostname one that can be told from a namespace: of
// internal:443, the normal form has neither dot nor colon.
func markedHostname(hostname string) string {
	if startsWithHostname(hostname) {
		return hostname
	}
	return hostname + ":443"
}
