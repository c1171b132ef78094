package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddypki"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// runServe serves a folder until the process is told to end.
func runServe(fl caddycmd.Flags) (int, error) {
	caddy.TrapSignals()

	directories, err := cli.TreeFlags(fl)
	if err != nil {
		return cli.ExitUsage, err
	}
	s, err := planSite(fl.String("domain"), fl.String("listen"), fl.Bool("internal-certs"))
	if err != nil {
		return cli.ExitUsage, err
	}
	if err := s.checkPort(); err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	err = caddy.Run(s.config(cli.NamedDirectories(fl, directories.Root), fl.Bool("access-log"), logging(fl.Bool("debug"), cli.IsTerminal(os.Stderr))))
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	x, err := servedIndex()
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	snapshot, err := completeSnapshot(context.Background(), x)
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	s.awaitCertificate()
	w := welcome{site: s, root: directories.Root, report: snapshot.Report()}
	w.variables = func(address, version string) []exampleVariable {
		return exampleVariables(context.Background(), snapshot, address, version)
	}
	if len(s.internal) > 0 {
		w.certificateFile = filepath.Join(caddy.AppDataDir(), "pki", "authorities", caddypki.DefaultCAID, "root.crt")
	}
	if err := w.write(os.Stdout); err != nil {
		caddy.Log().Warn("printing the client configuration: " + err.Error())
	}
	select {}
}

// config is the configuration of the whole server.
func (s site) config(directories source.Directories, accessLog bool, logs *caddy.Logging) *caddy.Config {
	route := caddyhttp.Route{HandlersRaw: []json.RawMessage{
		caddyconfig.JSONModuleObject(module.Handler{
			Root:      directories.Root,
			Providers: directories.Providers,
			Modules:   directories.Modules,
			Keys:      directories.Keys,
			UI:        new(module.UI),
		}, "handler", "terraform_registry", nil),
	}}
	server := &caddyhttp.Server{
		Listen: []string{s.listen},
		// Packages are large, and Go's HTTP/2 server spends several times the
		// CPU of its HTTP/1.1 server on large bodies. Clients make few requests
		// and download over connections of their own: they lose nothing.
		Protocols:         []string{"h1"},
		ReadHeaderTimeout: caddy.Duration(10 * time.Second),
		IdleTimeout:       caddy.Duration(30 * time.Second),
		MaxHeaderBytes:    1024 * 10,
	}
	if accessLog {
		server.Logs = &caddyhttp.ServerLogConfig{}
	}
	apps := make(caddy.ModuleMap)
	switch {
	case len(s.internal) > 0:
		// Automatic HTTPS would only manage the names of host matchers, redirect
		// from the HTTP port, and ask for a password to install the authority
		// in the system: to try out a registry, none of it is needed.
		server.AutoHTTPS = &caddyhttp.AutoHTTPSConfig{Disabled: true}
		policy := new(caddytls.ConnectionPolicy)
		if net.ParseIP(s.host) == nil {
			policy.DefaultSNI = certificateName(s.host)
		}
		server.TLSConnPolicies = caddytls.ConnectionPolicies{policy}
		apps["tls"] = caddyconfig.JSON(caddytls.TLS{
			CertificatesRaw: caddy.ModuleMap{"automate": caddyconfig.JSON(s.internal, nil)},
			Automation: &caddytls.AutomationConfig{
				Policies: []*caddytls.AutomationPolicy{{
					SubjectsRaw: s.internal,
					IssuersRaw:  []json.RawMessage{json.RawMessage(`{"module":"internal"}`)},
				}},
			},
		}, nil)
		no := false
		apps["pki"] = caddyconfig.JSON(caddypki.PKI{
			CAs: map[string]*caddypki.CA{caddypki.DefaultCAID: {InstallTrust: &no}},
		}, nil)
	case s.https:
		route.MatcherSetsRaw = []caddy.ModuleMap{
			{"host": caddyconfig.JSON(caddyhttp.MatchHost{s.domain}, nil)},
		}
	default:
		server.AutoHTTPS = &caddyhttp.AutoHTTPSConfig{Disabled: true}
	}
	server.Routes = caddyhttp.RouteList{route}
	apps["http"] = caddyconfig.JSON(caddyhttp.App{
		Servers: map[string]*caddyhttp.Server{"registry": server},
	}, nil)

	persist := false
	return &caddy.Config{
		Admin: &caddy.AdminConfig{
			Disabled: true,
			Config:   &caddy.ConfigSettings{Persist: &persist},
		},
		AppsRaw: apps,
		Logging: logs,
	}
}

// logging configures the log. At a terminal, it has Caddy's warnings and errors and the
// registry's messages. It leaves out Caddy's warning that the admin endpoint is off, as the
// command turns it off.
func logging(debug, terminal bool) *caddy.Logging {
	level := func(name string) caddy.BaseLog { return caddy.BaseLog{Level: name} }
	registry := []string{"terraform_registry", "http.handlers.terraform_registry", "http.log.access"}
	switch {
	case debug:
		return &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: level("DEBUG")}}}
	case terminal:
		return &caddy.Logging{Logs: map[string]*caddy.CustomLog{
			"default":  {BaseLog: level("WARN"), Exclude: append([]string{"admin"}, registry...)},
			"registry": {BaseLog: level("INFO"), Include: registry},
		}}
	}
	return nil
}

// servedIndex returns the index of the only tree.
func servedIndex() (*index.Index, error) {
	app, err := module.ConfiguredApp(caddy.ActiveContext())
	if err != nil {
		return nil, err
	}
	for _, x := range app.ByRoot() {
		return x, nil
	}
	return nil, errors.New("nothing is served")
}

// completeSnapshot waits until everything has been read. Earlier snapshots are incomplete.
func completeSnapshot(ctx context.Context, x *index.Index) (*index.Snapshot, error) {
	select {
	case <-x.Ready():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s := x.Snapshot(); s.Totals.Pending == 0 {
		return s, nil
	}
	// There is one scan at a time: this one begins when the one that reads has ended.
	s, err := x.Rescan(ctx)
	if err != nil {
		return nil, err
	}
	rest, cancel := context.WithTimeout(ctx, restPatience)
	defer cancel()
	for s.Totals.Pending > 0 {
		next := x.Next(rest, s)
		if next == nil {
			break
		}
		s = next
	}
	return s, ctx.Err()
}

// restPatience is the longest wait for module folders, which are offered once they
// have stopped changing.
const restPatience = 5 * time.Second

// certificatePatience is the longest wait for a certificate of the local authority,
// which takes some milliseconds.
const certificatePatience = 10 * time.Second

// awaitCertificate waits until clients can connect. Certificates are issued in the
// background, and users try what is printed at once.
func (s site) awaitCertificate() {
	if len(s.internal) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), certificatePatience)
	defer cancel()
	// Clients verify the certificate; here it only has to exist.
	dialer := tls.Dialer{Config: &tls.Config{ServerName: certificateName(s.host), InsecureSkipVerify: true}}
	address := net.JoinHostPort(reachable(s.address.Host), s.port())
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-ctx.Done():
			caddy.Log().Warn(fmt.Sprintf("no certificate for %s yet: %v", s.host, err))
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s site) port() string { return strconv.FormatUint(uint64(s.address.StartPort), 10) }

// A site is where the command serves, worked out from its flags.
type site struct {
	listen  string // network address
	address caddy.NetworkAddress
	domain  string // empty without --domain
	host    string // that clients connect to
	https   bool

	// internal are the names for certificates of Caddy's own authority. Empty: the site has
	// a certificate of a public authority, or no certificate.
	internal []string
}

// planSite makes a site of the flags.
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
	s.address = addr
	s.host = cmp.Or(domain, reachable(addr.Host))
	// Caddy never speaks TLS on the HTTP port.
	s.https = (domain != "" || internalCerts) && addr.StartPort != caddyhttp.DefaultHTTPPort
	if internalCerts && !s.https {
		return site{}, errors.New("--internal-certs: the HTTP port is for plain HTTP, choose another one with --listen")
	}
	if s.https && (internalCerts || !certmagic.SubjectQualifiesForPublicCert(domain)) {
		s.internal = certificateNames(s.host, addr.Host)
	}
	return s, nil
}

// checkPort returns an error if another process listens on the port, or the user may not. On
// most systems Caddy would share a port (SO_REUSEPORT), and each process would get some of the
// connections. Other reasons why it cannot listen are left to Caddy.
func (s site) checkPort() error {
	address := s.address.JoinHostPort(0)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return s.explainPort(address, err)
	}
	return listener.Close()
}

// explainPort says what to do about a port. Nil: what Caddy says about it is enough.
func (s site) explainPort(address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("something serves on %s already: end it, or choose another address with --listen", address)
	case errors.Is(err, syscall.EACCES) && s.https && len(s.internal) == 0: // Caddy listens on the HTTP port, too
		return fmt.Errorf("your user may not serve on %s, and a public certificate needs the ports 443 and 80: run the command as a user who may, or use --internal-certs and --listen :8443", address)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("your user may not serve on %s: choose a port from 1024 on with --listen, such as --listen :8080", address)
	}
	return nil
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

// reachable returns a host to connect to for the host of a listener, which may
// stand for every address.
func reachable(host string) string {
	if isAnyAddress(host) {
		return "localhost"
	}
	return host
}

func isAnyAddress(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// certificateNames are all names of the site. Module sources require a name with a
// dot, so localhost comes with 127.0.0.1.
func certificateNames(host, listenHost string) []string {
	names := []string{certificateName(host)}
	switch {
	case isAnyAddress(listenHost) || isLoopback(listenHost):
		names = append(names, "localhost", "127.0.0.1", "::1")
	default:
		names = append(names, certificateName(listenHost))
	}
	var unique []string
	for _, name := range names {
		if !slices.Contains(unique, name) {
			unique = append(unique, name)
		}
	}
	return unique
}

// certificateName is a name as certificates have it: in ASCII.
func certificateName(host string) string {
	if name, err := address.ParseHostname(host); err == nil {
		return string(name)
	}
	return host
}

// authority is the host with the port, as in URLs and in addresses of providers
// and modules: the default port is left out.
func (s site) authority(host string) string {
	if s.address.StartPort == s.defaultPort() {
		if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, s.port())
}

func (s site) defaultPort() uint {
	if s.https {
		return caddyhttp.DefaultHTTPSPort
	}
	return caddyhttp.DefaultHTTPPort
}

// url is the URL of the site, without a path.
func (s site) url() string {
	if s.https {
		return "https://" + s.authority(s.host)
	}
	return "http://" + s.authority(s.host)
}
