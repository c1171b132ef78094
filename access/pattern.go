package access

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// An addressPattern covers addresses. All its parts are in the form that
// addresses have, in lower case.
type addressPattern struct {
	text       string // as it is printed; parsed again it is the same
	everything bool
	hostname   address.Wildcard // empty: the registry's own addresses
	hosted     bool             // hostname covers one of the registry's names
	parts      [3]address.Wildcard
	depth      int // how many parts it has
}

// covers tells whether the pattern is of the address, or of something above it.
func (p *addressPattern) covers(a *Resource) bool {
	switch {
	case p.everything:
		return true
	case p.depth > a.depth():
		return false
	case p.hostname == "" && !a.Hosted:
		return false
	case p.hostname != "" && !(a.Hosted && p.hosted) && !p.hostname.MatchesFolded(string(a.Hostname)):
		return false
	}
	parts := a.parts()
	for i := range p.depth {
		if !p.parts[i].MatchesFolded(parts[i]) {
			return false
		}
	}
	return true
}

// literalHostname is the HOSTNAME of a pattern that names one and no others.
func (p *addressPattern) literalHostname() (svchost.Hostname, bool) {
	if p.hostname == "" || strings.Contains(string(p.hostname), "*") {
		return "", false
	}
	return svchost.Hostname(p.hostname), true
}

func parseAddressPattern(s string) (p addressPattern, err error) {
	if s == "*" {
		return addressPattern{text: s, everything: true}, nil
	}
	refuse := func(format string, args ...any) (addressPattern, error) {
		return addressPattern{}, fmt.Errorf("%q is not a pattern: "+format, append([]any{s}, args...)...)
	}
	if scheme, _, ok := strings.Cut(s, "://"); ok {
		return refuse("leave out %q", scheme+"://")
	}
	switch {
	case s == "":
		return refuse("write [HOSTNAME/]NAMESPACE/NAME, or * for everything")
	case strings.Contains("/"+s+"/", "//"):
		return refuse("take out the slash that has nothing before or behind it")
	case strings.Contains(s, "**"):
		// Elsewhere ** goes on to whatever depth, and stands for nothing as well.
		return refuse("write one * only, as whatever is below what it covers is covered too")
	}
	words := strings.Split(s, "/")
	var printed []string
	if address.IsHostname(words[0]) {
		var display string
		if p.hostname, display, err = parseHostnamePattern(words[0]); err != nil {
			return refuse("%w", err)
		}
		printed, words = append(printed, display), words[1:]
	}
	if len(words) > len(p.parts) {
		return refuse("write [HOSTNAME/]NAMESPACE/NAME/SYSTEM or less, where HOSTNAME has a dot or a colon in it or is localhost")
	}
	for i, word := range words {
		if p.parts[i], err = parsePartPattern(word, i); err != nil {
			return refuse("%w", err)
		}
		printed = append(printed, string(p.parts[i]))
	}
	p.depth, p.text = len(words), strings.Join(printed, "/")
	return p, nil
}

// parsePartPattern reads a NAMESPACE, NAME or SYSTEM, by its place.
func parsePartPattern(word string, place int) (address.Wildcard, error) {
	if inASCII(word) {
		if i := strings.IndexFunc(word, notInName); i >= 0 {
			return "", fmt.Errorf("%q has %q in it, and may have letters, digits, - and _ only, and * for any of them", word, word[i])
		}
		return address.Wildcard(strings.ToLower(word)), nil
	}
	// Only the clients' library knows how they write such a name, and only
	// providers have one.
	if strings.Contains(word, "*") {
		return "", fmt.Errorf("%q has both * and letters other than a to z: write the name in full", word)
	}
	namespace, typ := word, "x"
	if place > 0 {
		namespace, typ = "x", word
	}
	a, err := address.ParseProvider("", namespace, typ)
	if err != nil {
		return "", err
	}
	name := [...]string{a.Namespace, a.Name, ""}[place]
	switch {
	case name == "":
		return "", fmt.Errorf("%q is not a system: use letters from a to z and digits", word)
	case place == 0 && address.IsHostname(name): // full-width letters become plain ones
		return "", fmt.Errorf("%q is a hostname: write %s", word, name)
	}
	return address.Wildcard(name), nil
}

// parseHostnamePattern reads a HOSTNAME and returns also how it is printed.
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
			return "", "", fmt.Errorf("%q has no port behind its colon that hostnames have: %w", word, err)
		}
	}
	labels := strings.Split(name, ".")
	printed := make([]string, len(labels))
	for i, label := range labels {
		if strings.Contains(label, "*") {
			if j := strings.IndexFunc(label, notInLabel); j >= 0 {
				return "", "", fmt.Errorf("%q cannot have * beside anything but letters from a to z, digits and -: write %q in full", word, label)
			}
			labels[i] = strings.ToLower(label)
			printed[i] = labels[i]
			continue
		}
		h, err := address.ParseHostname(label)
		if err != nil {
			return "", "", fmt.Errorf("%q is not a hostname: %w", word, err)
		}
		labels[i], printed[i] = string(h), svchost.ForDisplay(string(h))
	}
	return address.Wildcard(strings.Join(labels, ".") + port), strings.Join(printed, ".") + port, nil
}

// parsePortPattern reads what comes behind the colon of a hostname with a *, and
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
	if h == "x" { // what is left without the port could cover other ports as well
		return "", errors.New("leave out :443, as clients do")
	}
	return strings.TrimPrefix(string(h), "x"), nil
}

func inASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

func notInLabel(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '*')
}

func notInName(r rune) bool { return notInLabel(r) && r != '_' }
