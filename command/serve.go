package command

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddypki"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// cmdServe serves a folder until the process is told to end.
func cmdServe(fl caddycmd.Flags) (int, error) {
	caddy.TrapSignals()

	directories, err := treeFlags(fl)
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	s, err := planSite(fl.String("domain"), fl.String("listen"), fl.Bool("internal-certs"))
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	err = caddy.Run(s.config(namedDirectories(fl, directories.Root), fl.Bool("access-log"), fl.Bool("debug")))
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	x, err := served()
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	snapshot, err := firstSnapshot(context.Background(), x)
	if err != nil {
		return caddy.ExitCodeFailedStartup, err
	}
	s.awaitCertificate()
	w := welcome{site: s, root: directories.Root, report: snapshot.Report}
	w.variables = func(address, version string) []exampleVariable { return exampleVariables(snapshot, address, version) }
	if len(s.internal) > 0 {
		w.authority = filepath.Join(caddy.AppDataDir(), "pki", "authorities", caddypki.DefaultCAID, "root.crt")
	}
	if err := w.write(os.Stdout); err != nil {
		caddy.Log().Warn("printing what is served: " + err.Error()) // it is served all the same
	}
	select {}
}

// config is the configuration of the whole server.
func (s site) config(directories index.Directories, accessLog, debug bool) *caddy.Config {
	route := caddyhttp.Route{HandlersRaw: []json.RawMessage{
		caddyconfig.JSONModuleObject(module.Handler{
			Root:      directories.Root,
			Providers: directories.Providers,
			Modules:   directories.Modules,
			Keys:      directories.Keys,
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
		// Automatic HTTPS would manage just the names of host matchers, redirect
		// from the HTTP port, and ask for a password to install the authority
		// in the system: none of it is needed to try out a registry.
		server.AutoHTTPS = &caddyhttp.AutoHTTPSConfig{Disabled: true}
		policy := new(caddytls.ConnectionPolicy)
		if net.ParseIP(s.host) == nil {
			policy.DefaultSNI = s.host
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
	config := &caddy.Config{
		Admin: &caddy.AdminConfig{
			Disabled: true,
			Config:   &caddy.ConfigSettings{Persist: &persist},
		},
		AppsRaw: apps,
	}
	if debug {
		config.Logging = &caddy.Logging{
			Logs: map[string]*caddy.CustomLog{
				"default": {BaseLog: caddy.BaseLog{Level: "DEBUG"}},
			},
		}
	}
	return config
}

// served returns the index of the only tree there is.
func served() (*index.Index, error) {
	app, err := module.ConfiguredApp(caddy.ActiveContext())
	if err != nil {
		return nil, err
	}
	for _, x := range app.ByRoot() {
		return x, nil
	}
	return nil, errors.New("nothing is served")
}

// firstSnapshot waits until everything has been read. There are snapshots
// before, of what is known so far.
func firstSnapshot(ctx context.Context, x *index.Index) (*index.Snapshot, error) {
	select {
	case <-x.Ready():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s := x.Snapshot(); s.Report.Pending == 0 {
		return s, nil
	}
	// There is one scan at a time: this one is after the one that reads.
	s, err := x.Rescan(ctx)
	if err != nil {
		return nil, err
	}
	rest, cancel := context.WithTimeout(ctx, restPatience)
	defer cancel()
	for s.Report.Pending > 0 {
		next := x.Next(rest, s)
		if next == nil {
			break
		}
		s = next
	}
	return s, ctx.Err()
}

// restPatience is for module folders, which are offered once they have been at
// rest. One that never rests keeps nothing else waiting.
const restPatience = 5 * time.Second

// certificatePatience is for a local authority, which takes some milliseconds.
const certificatePatience = 10 * time.Second

// awaitCertificate waits until clients can connect: certificates are issued in
// the background, and what is printed is an invitation to try.
func (s site) awaitCertificate() {
	if len(s.internal) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), certificatePatience)
	defer cancel()
	// Whether the certificate can be trusted is for clients to say.
	dialer := tls.Dialer{Config: &tls.Config{ServerName: s.host, InsecureSkipVerify: true}}
	dialHost := reachable(s.listenHost())
	for {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(dialHost, strconv.FormatUint(uint64(s.port), 10)))
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

func (s site) listenHost() string {
	addr, _ := caddy.ParseNetworkAddress(s.listen) // was fine for planSite
	return addr.Host
}
