package upstream

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"unicode"
)

// A guard keeps an origin from reaching into the network the server stands in,
// by a link, a redirect, or a name that resolves to a private address.
type guard struct {
	named map[string]bool // hosts the operator has named: they may be anywhere
}

// unsafeAddress is why a request is not made.
type unsafeAddress struct{ detail string }

func (u *unsafeAddress) Error() string { return u.detail }

func newGuard(home *url.URL, private []string) guard {
	g := guard{named: map[string]bool{bareHost(home.Hostname()): true}}
	for _, host := range private {
		g.named[bareHost(host)] = true
	}
	return g
}

// bareHost is a host in the form to compare it in.
func bareHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// checkName refuses hosts that need no resolving to be known as private. Behind
// a proxy, where others resolve and dial, it is all that can be checked.
func (g guard) checkName(host string) error {
	host = bareHost(host)
	if g.named[host] {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return checkIP(ip)
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		// What is dialled, or asked of a proxy, is what IDNA makes of it: of
		// full-width digits and dots an address.
		return &unsafeAddress{"its name has letters beyond ASCII: link to it by its xn-- name, or configure the host by name to allow it"}
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case last == "localhost":
		return &unsafeAddress{"it is the server itself: configure the host by name to allow it"}
	case host == "" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"):
		// 127.1, 2130706433 and 0x7f.1 are 127.0.0.1 to some resolvers. No name ends
		// in a number.
		return &unsafeAddress{"it is neither a name nor an IP address"}
	}
	return nil
}

// control is asked by a net.Dialer about the very address it is about to dial,
// so that a name that resolves differently the next time gains nothing.
func control(_, address string, _ syscall.RawConn) error {
	ip, err := netip.ParseAddrPort(address)
	if err != nil {
		return &unsafeAddress{"it is not an IP address"}
	}
	return checkIP(ip.Addr())
}

// dialer gives the dialer for a host.
func (g guard) dialer(host string) *net.Dialer {
	if g.named[bareHost(host)] {
		return &net.Dialer{}
	}
	return &net.Dialer{Control: control}
}

// special are the networks that the methods of netip.Addr do not know.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),     // this network
	netip.MustParsePrefix("100.64.0.0/10"), // a carrier's own
	netip.MustParsePrefix("192.0.0.0/24"),  // protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"), // measurements
	netip.MustParsePrefix("240.0.0.0/4"),   // reserved, and broadcast
	netip.MustParsePrefix("::/96"),         // an IPv4 address as it was once written
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/23"), // protocol assignments, Teredo among them
	netip.MustParsePrefix("fec0::/10"), // what unique local addresses once were
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// checkIP refuses addresses that are not those of a host on the internet.
func checkIP(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	bytes := ip.As16()
	switch {
	case nat64.Contains(ip): // all that a network without IPv4 reaches of it
		ip = netip.AddrFrom4([4]byte(bytes[12:16]))
	case sixToFour.Contains(ip):
		ip = netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		// Not which: what private names resolve to is nothing to tell.
		return &unsafeAddress{"it is in a private network: configure the host by name to allow it"}
	}
	return nil
}
