package upstream

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// An Origin is the source of the providers and modules of one hostname.
type Origin struct {
	// Hostname of the addresses of its providers and modules.
	Hostname svchost.Hostname

	// URL is another location of the same registry. If it has no path, the provider
	// service is discovered there, as on the hostname. With a path it is the service
	// itself, as in the host blocks of the clients' configuration.
	URL string

	// ModulesURL is the module service itself. If it is empty, the service is
	// discovered in the same place as the provider service.
	ModulesURL string

	// Mirror is the base URL of a network mirror to use instead of the registry.
	// It excludes URL.
	Mirror string

	// Token is sent to the origin's own hosts, over TLS only.
	Token string

	// Timeout limits the time for a document, and the time for which a package may send
	// nothing. Zero means 10 seconds.
	Timeout time.Duration

	// Private has hosts that may be in a private network: names or IP addresses without
	// a port. The host of URL, ModulesURL, Mirror or Hostname always may.
	Private []string

	// Hosts are servers of modules that need credentials. They may be in a private
	// network, too.
	Hosts []Host
}

// String leaves out the token, for logs.
func (o Origin) String() string { return o.Hostname.ForDisplay() }

// GoString leaves out the token, for logs.
func (o Origin) GoString() string { return fmt.Sprintf("upstream.Origin(%q)", o.Hostname) }

// withDefaults returns the origin with its defaults, or an error for the operator.
func (o Origin) withDefaults() (Origin, error) {
	switch {
	case o.Hostname == "":
		return o, errors.New("an origin needs the hostname its providers are addressed by")
	case o.URL != "" && o.Mirror != "":
		return o, errors.New("an origin has a URL or a mirror: leave out one of them")
	case strings.ContainsAny(o.Token, "\r\n\x00"):
		return o, errors.New("the token has a line break in it: copy it again")
	}
	return o.withConnectionDefaults()
}

// withConnectionDefaults is withDefaults for the fields that say how hosts are connected to.
func (o Origin) withConnectionDefaults() (Origin, error) {
	if o.Timeout < 0 {
		return o, errors.New("the timeout of an origin must not be negative")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	for _, host := range o.Private {
		if !isHost(host) {
			return o, fmt.Errorf("%q is not a host: write a name or an IP address, without scheme and port", host)
		}
	}
	for i, h := range o.Hosts {
		if err := h.check(); err != nil {
			return o, err
		}
		if slices.ContainsFunc(o.Hosts[:i], func(other Host) bool { return sameHost(h.url(), other.url()) }) {
			return o, fmt.Errorf("the host %s is configured twice: leave out one of them", h.Name)
		}
	}
	return o, nil
}

// isHost reports whether s is a name or an IP address, without a port.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	_, err := address.ParseHostname(s)
	return err == nil && !strings.ContainsAny(s, ":/")
}

// baseURL returns the URL for the first request.
func (o Origin) baseURL() (*url.URL, error) {
	switch {
	case o.Mirror != "":
		return parseBase("mirror", o.Mirror)
	case o.URL != "":
		return parseBase("URL", o.URL)
	}
	return parseBase("hostname", "https://"+string(o.Hostname))
}

// modulesBaseURL returns the URL of the module service; nil if it is not configured.
func (o Origin) modulesBaseURL() (*url.URL, error) {
	if o.ModulesURL == "" {
		return nil, nil
	}
	return parseBase("module service's URL", o.ModulesURL)
}

// parseBase reads a URL in the configuration of an origin. The result ends in a slash,
// since without it resolving a reference drops the last segment.
func parseBase(name, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return nil, fmt.Errorf("the %s of an origin is not a URL: write it like https://registry.example.com/", name)
	case u.Scheme != "https":
		return nil, fmt.Errorf("the %s of an origin must begin with https://", name)
	case u.User != nil:
		return nil, fmt.Errorf("the %s of an origin must not have a user name or password in it: use a token", name)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the %s of an origin must end with its path", name)
	}
	if !strings.HasSuffix(u.Path, "/") {
		u = u.JoinPath("/")
	}
	return u, nil
}

// namedHosts returns the hosts that the operator has named, which may be in a private
// network.
func (o Origin) namedHosts(base, modules *url.URL) []string {
	named := append(slices.Clone(o.Private), base.Hostname())
	if modules != nil {
		named = append(named, modules.Hostname())
	}
	for _, h := range o.Hosts {
		named = append(named, h.url().Hostname())
	}
	return named
}

// needsDiscovery reports whether the provider service has to be discovered.
func (o Origin) needsDiscovery(base *url.URL) bool { return o.Mirror == "" && base.Path == "/" }
