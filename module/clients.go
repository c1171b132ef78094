package module

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A ClientSite describes a registry of a configuration for its clients.
type ClientSite struct {
	// Registry has no Hostnames if the configuration does not say how clients reach it.
	clientconfig.Registry

	// Root is the root of the registry, absolute on the local disk.
	Root string

	// Proxied reports whether the site has no TLS, which clients require. The Hostnames
	// are then the names of a proxy in front of the site, if the proxy has the same
	// names.
	Proxied bool

	// HTTPSPort is the port of Caddy's global option https_port if the Hostnames have
	// it, and otherwise 0. Clients need it unless port 443 is forwarded to it, which is
	// not in the configuration.
	HTTPSPort int
}

// ClientSites returns every registry of the configuration, in the order in which Caddy
// provisions them, without duplicates. It finds the content of the trees by the names
// of folders, and reads no file.
func (a *App) ClientSites(ctx context.Context) ([]ClientSite, error) {
	httpsPort := caddyhttp.DefaultHTTPSPort
	if app, err := a.ctx.AppIfConfigured("http"); err == nil {
		httpsPort = cmp.Or(app.(*caddyhttp.App).HTTPSPort, httpsPort)
	}
	var sites []ClientSite
	for _, h := range a.handlers {
		s, err := h.clientSite(ctx, httpsPort)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(sites, s.equal) {
			sites = append(sites, s)
		}
	}
	return sites, nil
}

// equal reports whether both sites are the same for clients. A site that is served by
// two servers has its registry twice.
func (s ClientSite) equal(other ClientSite) bool {
	return s.Root == other.Root && s.URL == other.URL && slices.Equal(s.Hostnames, other.Hostnames)
}

func (h *Handler) clientSite(ctx context.Context, httpsPort int) (ClientSite, error) {
	s := ClientSite{Root: h.source.tree.root(), Proxied: h.server != nil && len(h.server.TLSConnPolicies) == 0}
	s.Login = h.Login != nil
	names := h.registry.Hostnames
	if len(names) == 0 {
		port := h.tlsPort(httpsPort)
		if names = h.siteNames(port); port == httpsPort {
			s.HTTPSPort = port
		}
	}
	for _, name := range names {
		s.Hostnames = append(s.Hostnames, address.DisplayHostname(name))
	}
	switch {
	case h.PublicURL != "":
		s.URL = h.PublicURL + h.Prefix
	case len(names) > 0:
		s.URL = "https://" + string(names[0]) + h.Prefix
	}
	public := func(hostname svchost.Hostname) bool {
		rules := h.registry.Rules
		return rules == nil || rules.WithHostnames(h.registry.Hostnames).AllowsHostname(access.Subject{}, access.Read, hostname)
	}
	s.Private = !public("")

	origins := make(map[svchost.Hostname]clientconfig.Origin)
	if filler := h.registry.Upstream; filler != nil {
		for _, o := range filler.Origins() {
			origins[o.Hostname] = clientconfig.Origin{Providers: true, Modules: o.Modules}
		}
	}
	t, err := h.source.tree.source.Open()
	if err != nil {
		return s, err
	}
	folders, err := index.Folders(ctx, t)
	if err != nil {
		return s, fmt.Errorf("reading the folders of %s: %w", s.Root, err)
	}
	for _, f := range folders {
		a := f.Address
		hosted := a.Hostname == "" || slices.Contains(names, a.Hostname) || len(h.registry.Hostnames) == 0 && matchesHost(h.site, string(a.Hostname))
		switch {
		case len(f.Versions) == 0:
		case !hosted:
			o := origins[a.Hostname]
			origins[a.Hostname] = clientconfig.Origin{Providers: o.Providers || !a.IsModule(), Modules: o.Modules || a.IsModule()}
		case !a.IsModule():
			s.HostsProviders = h.SigningKey == nil || !h.SigningKey.Off
		}
	}
	for hostname, o := range origins {
		o.Hostname, o.Private = hostname, !public(hostname)
		s.Origins = append(s.Origins, o)
	}
	slices.SortFunc(s.Origins, func(a, b clientconfig.Origin) int { return cmp.Compare(a.Hostname, b.Hostname) })
	return s, nil
}

// siteNames returns the names by which clients reach the site, as far as the
// configuration has them: the hosts of the routes around the handler, with the port if
// it is not 0, or else the host of the public URL.
func (h *Handler) siteNames(port int) (names []svchost.Hostname) {
	repl, suffix := caddy.NewReplacer(), ""
	if port != 0 {
		suffix = ":" + strconv.Itoa(port)
	}
	for _, host := range h.site {
		if name, err := address.ParseHostname(repl.ReplaceKnown(host, "") + suffix); err == nil && !strings.ContainsAny(host, "*{") {
			names = append(names, name)
		}
	}
	if u, err := url.Parse(h.PublicURL); err == nil && len(names) == 0 {
		if name, err := address.ParseHostname(u.Host); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// tlsPort returns the port that clients have to specify: the port of a server with TLS,
// unless it is 443. If there are several, it is Caddy's own, or else the first. It is 0
// if clients need not specify one.
func (h *Handler) tlsPort(httpsPort int) (port int) {
	if h.server == nil || len(h.server.TLSConnPolicies) == 0 {
		return 0
	}
	for _, listen := range h.server.Listen {
		a, err := caddy.ParseNetworkAddress(listen)
		switch {
		case err != nil || a.StartPort == 0:
		case a.StartPort == caddyhttp.DefaultHTTPSPort:
			return 0
		case port == 0 || a.StartPort == uint(httpsPort):
			port = int(a.StartPort)
		}
	}
	return port
}
