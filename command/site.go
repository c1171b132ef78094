package command

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A site is where the command serves, worked out from its flags.
type site struct {
	listen string // as Caddy's servers take it
	domain string // empty without --domain
	host   string // by which clients reach it
	port   uint
	https  bool

	// internal lists the names for certificates of Caddy's own authority.
	// Empty: they come from a public one, or there are none.
	internal []string
}

// planSite decides where to serve.
func planSite(domain, listen string, internalCerts bool) (site, error) {
	if domain != "" {
		if err := checkDomain(domain); err != nil {
			return site{}, fmt.Errorf("--domain: %w", err)
		}
	}
	s := site{domain: domain, listen: cmp.Or(listen, defaultListen(domain, internalCerts))}
	addr, err := caddy.ParseNetworkAddress(s.listen)
	switch {
	case err != nil:
		return site{}, fmt.Errorf("--listen: %w", err)
	case addr.Network != "tcp" || addr.PortRangeSize() != 1 || addr.StartPort == 0:
		return site{}, fmt.Errorf("--listen: %s is not a host and a port, or just :port", listen)
	}
	s.port = addr.StartPort
	s.host = cmp.Or(domain, reachable(addr.Host))
	// Caddy never speaks TLS on the HTTP port.
	s.https = (domain != "" || internalCerts) && s.port != caddyhttp.DefaultHTTPPort
	if internalCerts && !s.https {
		return site{}, errors.New("--internal-certs: the HTTP port is for plain HTTP, choose another one with --listen")
	}
	if s.https && (internalCerts || !certmagic.SubjectQualifiesForPublicCert(domain)) {
		s.internal = certificateNames(s.host, addr.Host)
	}
	return s, nil
}

func checkDomain(domain string) error {
	if strings.Contains(domain, "://") {
		return fmt.Errorf("%s is a URL: give only the name in it", domain)
	}
	if _, port, err := net.SplitHostPort(domain); err == nil {
		return fmt.Errorf("%s is a name with a port, which goes into --listen :%s", domain, port)
	}
	_, err := address.ParseHostname(domain)
	return err
}

func defaultListen(domain string, internalCerts bool) string {
	switch {
	case domain != "":
		return ":" + strconv.Itoa(caddyhttp.DefaultHTTPSPort)
	case internalCerts:
		return "localhost:" + strconv.Itoa(caddyhttp.DefaultHTTPSPort)
	}
	return ":" + strconv.Itoa(caddyhttp.DefaultHTTPPort)
}

// reachable is what to call a listener's host: one that stands for every
// address is not an address.
func reachable(host string) string {
	if everywhere(host) {
		return "localhost"
	}
	return host
}

func everywhere(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// certificateNames are all the names of the site. Modules need one with a dot
// in it, so where there is localhost there is 127.0.0.1.
func certificateNames(host, listenHost string) []string {
	names := []string{host}
	switch {
	case everywhere(listenHost) || loopback(listenHost):
		names = append(names, "localhost", "127.0.0.1", "::1")
	default:
		names = append(names, listenHost)
	}
	var unique []string
	for _, name := range names {
		if !slices.Contains(unique, name) {
			unique = append(unique, name)
		}
	}
	return unique
}

// authority is the host with the port as it stands in URLs and in addresses
// of providers and modules: without a port that is the default.
func (s site) authority(host string) string {
	if s.port == s.defaultPort() {
		if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, strconv.FormatUint(uint64(s.port), 10))
}

func (s site) defaultPort() uint {
	if s.https {
		return caddyhttp.DefaultHTTPSPort
	}
	return caddyhttp.DefaultHTTPPort
}

// url is the site's, without a path.
func (s site) url() string {
	if s.https {
		return "https://" + s.authority(s.host)
	}
	return "http://" + s.authority(s.host)
}
