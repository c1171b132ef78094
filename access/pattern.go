package access

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Resource is a provider or a module that rules decide about. Its address is
// complete, and compared regardless of case.
type Resource struct {
	// Address it is requested by. The hostname of a hosted resource makes a
	// difference only to rules without WithHostnames: a hosted resource is the same
	// under all names of the registry.
	address.Address

	// Hosted reports that the hostname is one of the registry's own, or that there is
	// none. All other resources are mirrored.
	Hosted bool
}

// ParseResource reads an address as users write it. Without HOSTNAME it is hosted;
// with one it is mirrored, unless the caller knows that the hostname is one of the
// registry's and sets Hosted.
func ParseResource(s string) (Resource, error) {
	a, err := address.Parse(s)
	if err != nil {
		return Resource{}, err
	}
	return Resource{Address: a, Hosted: a.Hostname == ""}, nil
}

// A pattern covers resources. All its parts are normalised as in addresses, in
// lower case.
type pattern struct {
	text       string // normal form, which parses to the same pattern
	everything bool
	hostname   address.Wildcard // empty: hosted resources
	hosted     bool             // hostname matches one of the registry's names
	names      address.Pattern
}

// covers reports whether the pattern covers the resource.
func (p *pattern) covers(a *Resource) bool {
	switch {
	case p.everything:
		return true
	case p.hostname == "" && !a.Hosted:
		return false
	case p.hostname != "" && !(a.Hosted && p.hosted) && !p.hostname.MatchesFolded(string(a.Hostname)):
		return false
	}
	return p.names.Covers(a.Address)
}

// coversHostname reports whether the pattern covers something of a mirrored hostname or,
// if that is empty, something hosted.
func (p *pattern) coversHostname(hostname svchost.Hostname) bool {
	switch {
	case p.everything:
		return true
	case hostname == "":
		return p.hostname == "" || p.hosted
	}
	return p.hostname != "" && p.hostname.MatchesFolded(string(hostname))
}

// literalHostname returns the HOSTNAME unless it is a wildcard.
func (p *pattern) literalHostname() (svchost.Hostname, bool) {
	if p.hostname == "" || strings.Contains(string(p.hostname), "*") {
		return "", false
	}
	return svchost.Hostname(p.hostname), true
}

func parsePattern(s string) (p pattern, err error) {
	if s == "*" {
		return pattern{text: s, everything: true}, nil
	}
	refuse := func(format string, args ...any) (pattern, error) {
		return pattern{}, fmt.Errorf("%q is not a pattern: "+format, append([]any{s}, args...)...)
	}
	if scheme, _, ok := strings.Cut(s, "://"); ok {
		return refuse("leave out %q", scheme+"://")
	}
	switch {
	case s == "":
		return refuse("write [HOSTNAME/]NAMESPACE/NAME, or * for everything")
	case strings.Contains("/"+s+"/", "//"):
		return refuse("remove the slash with nothing before or after it")
	case strings.Contains(s, "**"):
		// In other languages ** matches at any depth, and also nothing.
		return refuse("write a single *, since a pattern covers everything below what it names")
	}
	words := strings.Split(s, "/")
	display := ""
	if address.IsHostname(words[0]) {
		if p.hostname, display, err = parseHostnamePattern(words[0]); err != nil {
			return refuse("%w", err)
		}
		words = words[1:]
	}
	if len(words) > 3 {
		return refuse("write at most [HOSTNAME/]NAMESPACE/NAME/SYSTEM, where HOSTNAME contains a dot or a colon or is localhost")
	}
	parts := make([]address.Wildcard, len(words))
	for i, word := range words {
		if parts[i], err = parsePartPattern(word, i); err != nil {
			return refuse("%w", err)
		}
	}
	p.names = address.NewPattern(parts...)
	p.text = strings.Trim(display+"/"+p.names.String(), "/")
	return p, nil
}

// parsePartPattern reads a NAMESPACE, NAME or SYSTEM, which is part 0, 1 or 2.
func parsePartPattern(word string, part int) (address.Wildcard, error) {
	if isASCII(word) {
		if i := strings.IndexFunc(word, notInName); i >= 0 {
			return "", fmt.Errorf("%q contains %q: use letters, digits, - and _, and * for any of them", word, word[i])
		}
		return address.Wildcard(strings.ToLower(word)), nil
	}
	// Only providers have such names, which the clients' library normalises.
	if strings.Contains(word, "*") {
		return "", fmt.Errorf("%q has both * and letters other than a to z: write the name in full", word)
	}
	namespace, typ := word, "x"
	if part > 0 {
		namespace, typ = "x", word
	}
	a, err := address.ParseProvider("", namespace, typ)
	if err != nil {
		return "", err
	}
	name := [...]string{a.Namespace, a.Name, ""}[part]
	switch {
	case name == "":
		return "", fmt.Errorf("%q is not a system: use letters from a to z and digits", word)
	case part == 0 && address.IsHostname(name): // full-width letters become plain ones
		return "", fmt.Errorf("%q is a hostname: write %s", word, name)
	}
	return address.Wildcard(name), nil
}

// parseHostnamePattern reads a HOSTNAME, and also returns it as users write it.
func parseHostnamePattern(word string) (pattern address.Wildcard, display string, err error) {
	if !strings.Contains(word, "*") {
		h, err := address.ParseHostname(word)
		if err != nil {
			return "", "", fmt.Errorf("%q is not a hostname: %w", word, err)
		}
		return address.Wildcard(h), address.DisplayHostname(h), nil
	}
	name, port, hasPort := strings.Cut(word, ":")
	if hasPort {
		if port, err = parsePortPattern(port); err != nil {
			return "", "", fmt.Errorf("%q has an invalid port: %w", word, err)
		}
	}
	labels := strings.Split(name, ".")
	displayed := make([]string, len(labels))
	for i, label := range labels {
		if strings.Contains(label, "*") {
			if strings.ContainsFunc(label, notInLabel) {
				return "", "", fmt.Errorf("%q combines * with characters other than letters from a to z, digits and -: write %q in full", word, label)
			}
			labels[i] = strings.ToLower(label)
			displayed[i] = labels[i]
			continue
		}
		h, err := address.ParseHostname(label)
		if err != nil {
			return "", "", fmt.Errorf("%q is not a hostname: %w", word, err)
		}
		labels[i], displayed[i] = string(h), svchost.ForDisplay(string(h))
	}
	return address.Wildcard(strings.Join(labels, ".") + port), strings.Join(displayed, ".") + port, nil
}

// parsePortPattern reads what follows the colon of a hostname with a *, and
// returns it with the colon.
func parsePortPattern(port string) (string, error) {
	if strings.Contains(port, "*") {
		if strings.Trim(port, "0123456789*") != "" {
			return "", fmt.Errorf("write digits and * only, not %q", port)
		}
		return ":" + port, nil
	}
	h, err := address.ParseHostname("x:" + port)
	if err != nil {
		return "", fmt.Errorf("write a number up to 65535, not %q", port)
	}
	if h == "x" { // without its port, the pattern could cover other ports as well
		return "", errors.New("leave out :443, as clients do")
	}
	return strings.TrimPrefix(string(h), "x"), nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

func notInLabel(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '*')
}

func notInName(r rune) bool { return notInLabel(r) && r != '_' }
