package module

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// Origins are where the mirror command fetches from.
type origins struct {
	mirror     string                      // in place of all registries that have no other address
	at         map[svchost.Hostname]string // other addresses of registries
	private    []string
	signatures fill.Signatures
	tokens     map[svchost.Hostname]string // by the host that is asked
}

// listLife is how old a list of versions may be that another run, or a server,
// has left. Who runs the command wants what there is now.
const listLife = 30 * time.Second

func originFlags(fl caddycmd.Flags) (o origins, err error) {
	words, err := fl.GetStringArray("upstream")
	if err != nil {
		return o, fmt.Errorf("--upstream: %w", err)
	}
	o.at = make(map[svchost.Hostname]string)
	for _, word := range words {
		if err := o.add(word); err != nil {
			return o, fmt.Errorf("--upstream: %w", err)
		}
	}
	if o.private, err = fl.GetStringSlice("private"); err != nil {
		return o, fmt.Errorf("--private: %w", err)
	}
	if o.signatures, err = fill.ParseSignatures(fl.String("signatures")); err != nil {
		return o, fmt.Errorf("--signatures: %w", err)
	}
	o.tokens = environmentTokens(os.Environ())
	return o, nil
}

// add takes up an --upstream. A URL may have a = in it, but not before its ://.
func (o *origins) add(word string) error {
	name, location, named := strings.Cut(word, "=")
	if !named || strings.Contains(name, "://") {
		if o.mirror != "" {
			return errors.New("two network mirrors are given for all providers: leave out one of them")
		}
		if o.mirror = word; word == "" {
			return errors.New("it is empty: give a URL, or HOSTNAME=URL")
		}
		return nil
	}
	hostname, err := address.ParseHostname(name)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a hostname: %w", name, err)
	case location == "":
		return fmt.Errorf("there is no URL behind %s=", name)
	case o.at[hostname] != "":
		return fmt.Errorf("two addresses are given for %s: leave out one of them", name)
	}
	o.at[hostname] = location
	return nil
}

// sources are what the providers of hostnames come from.
func (o *origins) sources(hostnames []svchost.Hostname, options []upstream.Option) (map[svchost.Hostname]fill.Source, error) {
	policy := fill.Policy{VersionsTTL: listLife, Signatures: o.signatures}
	sources := make(map[svchost.Hostname]fill.Source)
	for _, hostname := range hostnames {
		client, err := upstream.NewClient(o.origin(hostname), options...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", hostname.ForDisplay(), err)
		}
		sources[hostname] = fill.Source{Client: client, Policy: policy}
	}
	return sources, nil
}

func (o *origins) origin(hostname svchost.Hostname) upstream.Origin {
	origin := upstream.Origin{Hostname: hostname, URL: o.at[hostname], Private: o.private}
	asked := hostname
	if origin.URL == "" {
		origin.Mirror = o.mirror
	}
	for _, text := range []string{origin.URL, origin.Mirror} {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			asked, _ = address.ParseHostname(u.Host)
		}
	}
	origin.Token = o.tokens[asked]
	return origin
}

// environmentTokens are the tokens that clients would take from the environment:
// from TF_TOKEN_ and a hostname, in which an underscore is a dot and two of them
// are a dash.
func environmentTokens(environ []string) map[svchost.Hostname]string {
	tokens := make(map[svchost.Hostname]string)
	for _, variable := range environ {
		name, token, _ := strings.Cut(variable, "=")
		name, ours := strings.CutPrefix(name, "TF_TOKEN_")
		if !ours || token == "" {
			continue
		}
		name = strings.ReplaceAll(strings.ReplaceAll(name, "__", "-"), "_", ".")
		if hostname, err := address.ParseHostname(name); err == nil {
			tokens[hostname] = token
		}
	}
	return tokens
}
