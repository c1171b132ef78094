package upstream

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"unicode"
)

// A guard keeps an origin from reaching into the server's private network by a link,
// a redirect, or a name that resolves to a private address.
type guard struct {
	named map[string]bool // hosts that the operator configured

	// Configured hosts may be anywhere, unless another host than the origin leads
	// there.
	exemptions bool
}

// An unsafeAddress is the error of a request that is not sent.
type unsafeAddress struct{ detail string }

func (u *unsafeAddress) Error() string { return u.detail }

func newGuard(named []string) guard {
	g := guard{named: make(map[string]bool), exemptions: true}
	for _, host := range named {
		g.named[bareHost(host)] = true
	}
	return g
}

// withoutExemptions returns the guard for locations that others than the origin have
// named.
func (g guard) withoutExemptions() guard { return guard{named: g.named} }

// isNamed reports whether the operator has configured a host.
func (g guard) isNamed(host string) bool { return g.named[bareHost(host)] }

// exempts reports whether a host may have any address.
func (g guard) exempts(host string) bool { return g.exemptions && g.isNamed(host) }

// checkName refuses hosts that are known to be private without resolving them. With a
// proxy, which resolves and dials itself, nothing else can be checked.
func (g guard) checkName(host string) error {
	if g.exempts(host) {
		return nil
	}
	return g.explained(host, checkName(bareHost(host)))
}

func checkName(host string) error {
	if ip, err := netip.ParseAddr(host); err == nil {
		return checkIP(ip)
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		// IDNA turns full-width digits and dots into an address before dialling.
		return &unsafeAddress{"its name has characters beyond ASCII: link to it by its xn-- name, or configure the host by name to allow it"}
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case last == "localhost":
		return &unsafeAddress{"it is the server itself: configure the host by name to allow it"}
	case host == "" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"):
		// Some resolvers read 127.1, 2130706433 and 0x7f.1 as 127.0.0.1. No top-level
		// domain is a number.
		return &unsafeAddress{"it is neither a name nor an IP address"}
	}
	return nil
}

// explained adds the reason why a configured host is refused nevertheless.
func (g guard) explained(host string, refused error) error {
	if refused == nil || !g.isNamed(host) {
		return refused
	}
	return &unsafeAddress{"it is in a private network, and neither the registry itself nor a configured host leads there"}
}

// dialer returns the dialer for a host. It checks the address that it is about to dial,
// so that a name which resolves differently the next time (DNS rebinding) cannot bypass
// the guard.
func (g guard) dialer(host string) *net.Dialer {
	if g.exempts(host) {
		return &net.Dialer{}
	}
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		ip, err := netip.ParseAddrPort(address)
		if err != nil {
			return &unsafeAddress{"it is not an IP address"}
		}
		return g.explained(host, checkIP(ip.Addr()))
	}}
}

// specialNetworks are networks that the methods of netip.Addr do not know.
var specialNetworks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),     // this network
	netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),  // protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),   // reserved, and broadcast
	netip.MustParsePrefix("::/96"),         // deprecated IPv4-compatible addresses
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/23"), // protocol assignments, such as Teredo
	netip.MustParsePrefix("fec0::/10"), // deprecated site-local addresses
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// checkIP refuses addresses that hosts on the internet cannot have.
func checkIP(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	bytes := ip.As16()
	switch {
	case nat64.Contains(ip): // a network without IPv4 reaches IPv4 hosts in this way
		ip = netip.AddrFrom4([4]byte(bytes[12:16]))
	case sixToFour.Contains(ip):
		ip = netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || slices.ContainsFunc(specialNetworks, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		// The address is left out: clients must not learn what private names resolve to.
		return &unsafeAddress{"it is in a private network: configure the host by name to allow it"}
	}
	return nil
}
