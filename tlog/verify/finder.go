package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Finder finds the logs that have a provider or module on record: of the registries from
// which a client with these settings installs it.
type Finder struct {
	Client   *Client
	Settings clientconfig.Settings

	// URLs are the logs to use in place of those that are found: URLs of logs, or hostnames
	// of registries.
	URLs []string

	Pins []Pin    // the logs that the repository has seen
	Keys []string // from the user, the only ones that count; empty: the keys of the Pins

	// Update rewrites what is kept of logs, takes over further keys that sign them if there are no
	// Keys, and accepts a log that was begun in place of one that the repository has seen.
	Update bool

	mu    sync.Mutex
	logs  map[string]*Log // by URL
	hosts map[string]*discovery
}

// A discovery has the log of a host, which is asked once.
type discovery struct {
	once sync.Once
	log  *url.URL // nil: it has none
	kept bool     // not the host has said so now, but a file
	err  error
}

// maySendTokens reports whether the tokens of hosts may be sent to the log. A file that others can
// write leads them to no other server.
func (d *discovery) maySendTokens(from *url.URL) bool {
	return !d.kept || d.log.Host == from.Host && d.log.Scheme == from.Scheme
}

// A place is where the versions of an address may be on record.
type place struct {
	log *Log

	// Address in look-ups. A hosted address has no hostname.
	address address.Address
}

// accepts reports whether an entry's address means the address that was looked up. What the
// log's own registry hosts is entered without a hostname.
func (p place) accepts(entered, wanted address.Address) bool {
	if entered.Hostname == "" {
		own := p.address.Hostname == "" || hostnameOf(p.log.base) == wanted.Hostname || strings.HasPrefix(p.log.origin, string(wanted.Hostname)+"/")
		return own && entered == wanted.WithHostname("")
	}
	return entered == wanted
}

// places returns where an address may be on record. without names the hosts and other places that have no log,
// and from which it may come as well.
func (f *Finder) places(ctx context.Context, a address.Address) (places []place, without []string, err error) {
	add := func(base *url.URL, hosted bool, hosts ...svchost.Hostname) error {
		d := f.discover(ctx, base)
		switch {
		case d.err != nil:
			return d.err
		case d.log == nil:
			without = append(without, base.Host)
		default:
			hosts = append([]svchost.Hostname{hostnameOf(base)}, hosts...)
			if !d.maySendTokens(base) {
				hosts = nil
			}
			places = append(places, f.place(d.log, a, hosted, hosts...))
			f.foundBy(d.log, base.Host)
		}
		return nil
	}
	var errs []error
	if len(f.URLs) > 0 {
		for _, text := range f.URLs {
			u, isLog, err := parseLogURL(text)
			switch {
			case err != nil:
				return nil, nil, err
			case isLog:
				hosted := hostnameOf(u) == a.Hostname
				places = append(places, f.place(u, a, hosted))
				if hosted && len(f.URLs) == 1 { // discovery must not lead to another log later
					f.foundBy(u, u.Host)
				}
			default:
				errs = append(errs, add(u, hostnameOf(u) == a.Hostname))
			}
		}
		return places, without, errors.Join(errs...)
	}
	service, direct := wire.ModulesService, true
	if !a.IsModule() {
		var mirrors []*url.URL
		service = wire.ProvidersService
		var elsewhere bool
		mirrors, direct, elsewhere = f.Settings.Sources(a)
		for _, m := range mirrors {
			errs = append(errs, add(&url.URL{Scheme: m.Scheme, Host: m.Host}, false))
		}
		if elsewhere {
			without = append(without, "its filesystem_mirror or oci_mirror")
		}
	}
	if services, configured := f.Settings.Services[a.Hostname]; direct && configured {
		if u, err := url.Parse(services["tlog.v1"]); err == nil && u.Scheme == "https" && u.Host != "" {
			places = append(places, f.place(u, a, false, a.Hostname))
		} else if u, err := url.Parse(services[string(service)]); err == nil && u.Host != "" {
			standIn := strings.Contains(u.Path, "/registries/"+string(a.Hostname)+"/")
			errs = append(errs, add(&url.URL{Scheme: u.Scheme, Host: u.Host}, !standIn, a.Hostname))
		} else {
			without = append(without, string(a.Hostname))
		}
	} else if direct {
		errs = append(errs, add(&url.URL{Scheme: "https", Host: string(a.Hostname)}, true))
	}
	return places, without, errors.Join(errs...)
}

// parseLogURL reads the URL of a log, or the hostname of a registry.
func parseLogURL(text string) (u *url.URL, isLog bool, err error) {
	full := text
	if !strings.Contains(text, "://") {
		full = "https://" + text
	}
	u, err = url.Parse(full)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, false, fmt.Errorf("%q is not the URL of a log, like https://registry.example.com/v1/tlog/, nor a hostname", text)
	}
	isLog = strings.Trim(u.Path, "/") != ""
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}, isLog, nil
}

func (f *Finder) place(base *url.URL, a address.Address, hosted bool, hosts ...svchost.Hostname) place {
	if hosted {
		return place{f.log(base, hosts...), a.WithHostname("")}
	}
	return place{f.log(base, hosts...), a}
}

// log returns the log at a URL. The token of its own host is sent, or else of the hosts that
// lead to it in this run: so do clients.
func (f *Finder) log(base *url.URL, hosts ...svchost.Hostname) *Log {
	base = base.JoinPath("/")
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.logs[base.String()]
	if l == nil {
		l = &Log{client: f.Client, base: base, pins: f.Pins, trust: f.Keys, update: f.Update}
		if f.logs == nil {
			f.logs = make(map[string]*Log)
		}
		f.logs[base.String()] = l
	}
	for _, h := range append([]svchost.Hostname{hostnameOf(base)}, hosts...) {
		if h != "" && !slices.Contains(l.hosts, h) {
			l.hosts = append(l.hosts, h)
		}
	}
	return l
}

// foundBy notes that the discovery of a host led to a log, or that the user has named the host's log.
func (f *Finder) foundBy(base *url.URL, host string) {
	l := f.log(base)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(l.foundBy, host) {
		l.foundBy = append(l.foundBy, host)
	}
}

// Logs returns the logs that were found, by their URLs.
func (f *Finder) Logs() (logs []*Log) {
	for _, l := range f.logs {
		logs = append(logs, l)
	}
	slices.SortFunc(logs, func(a, b *Log) int { return strings.Compare(a.URL(), b.URL()) })
	return logs
}

const maxDiscovery = 1 << 20 // bytes

func (f *Finder) discover(ctx context.Context, base *url.URL) *discovery {
	f.mu.Lock()
	d := f.hosts[base.String()]
	if d == nil {
		if f.hosts == nil {
			f.hosts = make(map[string]*discovery)
		}
		d = new(discovery)
		f.hosts[base.String()] = d
	}
	f.mu.Unlock()
	d.once.Do(func() { d.log, d.kept, d.err = f.ask(ctx, base) })
	return d
}

// ask asks a host for its log. If it tells none, and the repository has seen a log there, that
// one counts: that it has gone must be noticed. kept is true if the host has not said it now.
func (f *Finder) ask(ctx context.Context, base *url.URL) (log *url.URL, kept bool, err error) {
	q := question{url: base.JoinPath(wire.DiscoveryPath), limit: maxDiscovery}
	a, err := f.Client.ask(ctx, q)
	if err != nil {
		return nil, false, err
	}
	var services struct {
		Tlog string `json:"tlog.v1"`
	}
	if a.status == http.StatusOK && json.Unmarshal(a.body, &services) != nil {
		return nil, false, unanswered(base, "its discovery document is not a JSON object with the URL of a log")
	}
	if text := services.Tlog; text != "" {
		u, err := a.at.Parse(text)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != base.Scheme {
			return nil, false, unanswered(base, "its discovery document has no usable URL of a log")
		}
		return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}, a.kept, nil
	}
	if p := pinFor(f.Pins, base.Host); p != nil {
		log, err = url.Parse(p.URL)
		return log, true, err
	}
	return nil, false, nil
}
