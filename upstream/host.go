package upstream

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Host is a server of modules that the operator has configured.
type Host struct {
	// Name or IP address, with a port unless it is the default port of https.
	Name string

	// User and Token are sent as Basic credentials over TLS, to this host alone, and
	// only for trusted locations: see the comment of the package. With a Token and
	// without a User, the user is "git", which code hosts ignore.
	User, Token string

	// Allow lists the repositories and archives for which the credentials are used. If
	// it is empty, they are used only for repositories that the origin itself names.
	// Otherwise they are also used for listed submodules of listed repositories.
	Allow []Repositories
}

// String leaves out the token, for logs.
func (h Host) String() string { return h.Name }

// GoString leaves out the token, for logs.
func (h Host) GoString() string { return fmt.Sprintf("upstream.Host(%q)", h.Name) }

// url returns the URL of the host's root over HTTPS.
func (h Host) url() *url.URL {
	name := h.Name
	if ip, err := netip.ParseAddr(name); err == nil && ip.Is6() {
		name = "[" + name + "]"
	}
	return &url.URL{Scheme: "https", Host: name, Path: "/"}
}

// check returns an error for the operator.
func (h Host) check() error {
	name := h.Name
	if host, port, err := net.SplitHostPort(h.Name); err == nil {
		name = host
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%q is not a host: its port is not a number from 1 to 65535", h.Name)
		}
	}
	switch {
	case !isHost(name):
		return fmt.Errorf("%q is not a host: write a name or an IP address, with a port if it is not the usual one", h.Name)
	case strings.ContainsAny(h.Token+h.User, "\r\n\x00"):
		return fmt.Errorf("the user or token of the host %s has a line break in it: copy it again", h.Name)
	case strings.Contains(h.User, ":"):
		return fmt.Errorf("the user of the host %s must not have a colon in it", h.Name)
	case h.User != "" && h.Token == "":
		return fmt.Errorf("the host %s has a user and no token: add the token", h.Name)
	case len(h.Allow) > 0 && h.Token == "":
		return fmt.Errorf("the host %s allows repositories and has no credentials for them: add a token", h.Name)
	}
	return nil
}

// allows reports whether the credentials are used for a URL of the host.
func (h Host) allows(u *url.URL) bool {
	return len(h.Allow) == 0 || slices.ContainsFunc(h.Allow, func(r Repositories) bool { return r.cover(u) })
}

// host returns the configured host that a URL is on.
func (c *Client) host(u *url.URL) (Host, bool) {
	for _, h := range c.origin.Hosts {
		if sameHost(u, h.url()) {
			return h, true
		}
	}
	return Host{}, false
}

// authorization returns the value of the header Authorization for the host; empty for
// none.
func (h Host) authorization() string {
	if h.Token == "" {
		return ""
	}
	user := h.User
	if user == "" {
		user = "git"
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+h.Token))
}
