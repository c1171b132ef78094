package mirror

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// origins are the registries and mirrors that the mirror command fetches from.
type origins struct {
	mirror     string                      // the network mirror of the providers of all hostnames not in urls
	urls       map[svchost.Hostname]string // other addresses of registries
	moduleURLs map[svchost.Hostname]string // of their module services
	private    []string
	signatures pull.Signatures
	tokens     map[svchost.Hostname]string // by the host that gets the request
}

// versionsTTL bounds the age of lists of versions that another run, or a server, has left. It
// is short: users run the command to get new versions.
const versionsTTL = 30 * time.Second

// errEmpty refuses a flag whose value is a variable that is not set.
var errEmpty = errors.New("it is empty")

func originFlags(fl caddycmd.Flags) (*origins, error) {
	o := &origins{urls: make(map[svchost.Hostname]string), moduleURLs: make(map[svchost.Hostname]string)}
	for _, flag := range []struct {
		name string
		add  func(word string) error
	}{{"upstream", o.add}, {"modules-url", o.addModules}} {
		words, err := fl.GetStringArray(flag.name)
		if err == nil && len(words) == 0 && fl.Changed(flag.name) { // pflag drops a value that is empty
			err = errEmpty
		}
		for _, word := range words {
			if err == nil {
				err = flag.add(word)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag.name, err)
		}
	}
	var err error
	if o.private, err = fl.GetStringSlice("private"); err != nil {
		return nil, fmt.Errorf("--private: %w", err)
	}
	if o.signatures, err = pull.ParseSignatures(fl.String("signatures")); err != nil {
		return nil, fmt.Errorf("--signatures: %w", err)
	}
	o.tokens = remote.EnvironmentTokens(os.Environ())
	return o, nil
}

// add parses an --upstream. A URL may contain a =, but not before its ://.
func (o *origins) add(word string) error {
	name, _, named := strings.Cut(word, "=")
	if named && !strings.Contains(name, "://") {
		return addURL(o.urls, word)
	}
	if o.mirror != "" {
		return errors.New("two network mirrors are given for all providers: leave out one of them")
	}
	if o.mirror = word; word == "" {
		return errEmpty
	}
	return nil
}

// addModules parses a --modules-url.
func (o *origins) addModules(word string) error {
	if name, _, named := strings.Cut(word, "="); !named || strings.Contains(name, "://") {
		return fmt.Errorf("%q: write HOSTNAME=URL", word)
	}
	return addURL(o.moduleURLs, word)
}

// addURL parses HOSTNAME=URL.
func addURL(urls map[svchost.Hostname]string, word string) error {
	name, location, _ := strings.Cut(word, "=")
	hostname, err := address.ParseHostname(name)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a hostname: %w", name, err)
	case location == "":
		return fmt.Errorf("there is no URL behind %s=", name)
	case urls[hostname] != "":
		return fmt.Errorf("two addresses are given for %s: leave out one of them", name)
	}
	urls[hostname] = location
	return nil
}

// check checks the addresses of the registries of requirements.
func (o *origins) check(requirements []requirement, network upstream.Network) error {
	for _, q := range requirements {
		if _, err := upstream.NewClient(o.origin(fillerID{hostname: q.Address.Hostname}), network); err != nil {
			return fmt.Errorf("%s: %w", q.Address.Hostname.ForDisplay(), err)
		}
	}
	return nil
}

// origin returns the origin of the providers or the modules of a hostname. A network mirror
// has no modules: they come from the registry itself.
func (o *origins) origin(id fillerID) upstream.Origin {
	origin := upstream.Origin{Hostname: id.hostname, URL: o.urls[id.hostname], Private: o.private}
	requested := []string{origin.URL} // in the host's place
	switch {
	case id.modules:
		origin.ModulesURL = o.moduleURLs[id.hostname]
		requested = append(requested, origin.ModulesURL)
	case origin.URL == "":
		origin.Mirror = o.mirror
		requested = append(requested, origin.Mirror)
	}
	host := id.hostname
	for _, text := range requested {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			host, _ = address.ParseHostname(u.Host)
		}
	}
	origin.Token = o.tokens[host]
	if id.modules {
		origin.Hosts = o.hosts(host)
	}
	return origin
}

// hosts returns the hosts with a token, except the registry itself. They may have
// repositories.
func (o *origins) hosts(except svchost.Hostname) (hosts []upstream.Host) {
	for hostname, token := range o.tokens {
		if hostname != except {
			hosts = append(hosts, upstream.Host{Name: string(hostname), Token: token})
		}
	}
	slices.SortFunc(hosts, func(a, b upstream.Host) int { return strings.Compare(a.Name, b.Name) })
	return hosts
}

func (o *origins) policy(id fillerID) pull.Policy {
	return pull.Policy{VersionsTTL: versionsTTL, Signatures: o.signatures, Modules: id.modules}
}
