package module

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// Upstream fills the mirror with the providers of other registries, as clients
// ask for them. What comes in has been verified, and lies in the tree like
// anything that was copied there: SHA256SUMS, its signature and the keys beside
// the packages. Without this option the tree goes on being served as it is.
//
// Several clients that want a package cause one download of it, also when they
// ask several instances that share the tree and Caddy's storage. While a
// registry is down, all that is known of it is served.
//
// Proxies are taken from the environment (`HTTPS_PROXY`). Links and redirects to
// private addresses are refused unless `private` names the host.
type Upstream struct {
	// The hostnames whose providers are mirrored, such as
	// `registry.terraform.io`. Required.
	Hostnames []string `json:"hostnames,omitempty"`

	// The URL of another network mirror to ask in place of the registries. It does
	// not tell which keys providers are signed with: put those into `keys`, or set
	// `signatures` to `prefer`. Default: none, the registries are asked.
	Mirror string `json:"mirror,omitempty"`

	// The URL of the same registry at another address, such as that of a cache
	// within the company. Only for a single hostname. Default: `https://` and the
	// hostname.
	URL string `json:"url,omitempty"`

	// The providers to mirror, as `NAMESPACE/TYPE`, with `*` for any characters.
	// Default: all.
	Allow []string `json:"allow,omitempty"`

	// The providers not to mirror, also if they are allowed. Default: none.
	Deny []string `json:"deny,omitempty"`

	// The platforms to mirror, such as `linux_amd64`. Others are not listed.
	// Default: all that there are; of those, packages come in that clients ask
	// for.
	Platforms []string `json:"platforms,omitempty"`

	// How much is held of the hostnames' providers, all together, in bytes. What
	// would be more is not fetched, and clients are told that it cannot be kept.
	// What is held already stays. Default: as much as there is room for.
	MaxHeld int64 `json:"max_held,omitempty"`

	// How long a list of versions is good. After that it is asked for again in
	// the background. Default: `10m`.
	VersionsTTL caddy.Duration `json:"versions_ttl,omitempty"`

	// How long a version has to be published before it is mirrored. Bad releases
	// tend to be noticed in their first days. Where the registry does not tell when
	// a version was published, it is when the mirror saw it first. Default: none.
	MinAge caddy.Duration `json:"min_age,omitempty"`

	// What to do with releases that nobody known has signed: `require` leaves them
	// out, `prefer` takes them with such checksums as there are. Keys in
	// `keys/HOSTNAME/NAMESPACE.asc` count alone if you put them there, and are
	// kept there as the registry gives them if you do not. Default: `require`.
	Signatures string `json:"signatures,omitempty"`

	// The token for that registry or mirror, if it wants one. It is sent nowhere
	// else. Keep it out of the configuration with a placeholder:
	// `{env.UPSTREAM_TOKEN}`. Default: none.
	Token string `json:"token,omitempty"`

	// How long a document may take, and how long a download may send nothing.
	// Default: `10s`, which is what clients wait.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// Hosts, names or IP addresses without a port, that may be in a private
	// network: where a registry inside the company has its files. The host of
	// `url` or `mirror`, or the hostname itself, need not be named. Default: none.
	Private []string `json:"private,omitempty"`
}

// replace expands the placeholders.
func (u *Upstream) replace(repl *caddy.Replacer) error {
	for _, option := range []struct {
		name   string
		values []*string
	}{
		{"hostnames", pointers(u.Hostnames)},
		{"mirror", []*string{&u.Mirror}},
		{"url", []*string{&u.URL}},
		{"allow", pointers(u.Allow)},
		{"deny", pointers(u.Deny)},
		{"platforms", pointers(u.Platforms)},
		{"signatures", []*string{&u.Signatures}},
		{"token", []*string{&u.Token}},
		{"private", pointers(u.Private)},
	} {
		if err := expand(repl, option.name, option.values); err != nil {
			return err
		}
	}
	return nil
}

// sources adds what each of the hostnames comes from.
func (u *Upstream) sources(to map[svchost.Hostname]fill.Source) error {
	policy, err := u.policy()
	if err != nil {
		return err
	}
	switch {
	case len(u.Hostnames) == 0:
		return errors.New("hostnames: name one at least, such as registry.terraform.io")
	case u.URL != "" && len(u.Hostnames) > 1:
		return errors.New("url: several hostnames cannot be at one address: give each an upstream of its own")
	}
	quota, err := u.quota()
	if err != nil {
		return err
	}
	for _, name := range u.Hostnames {
		hostname, err := address.ParseHostname(name)
		if err != nil {
			return fmt.Errorf("hostnames: %q is not one: %w", name, err)
		}
		if _, twice := to[hostname]; twice {
			return fmt.Errorf("hostnames: %s is in two upstreams", name)
		}
		client, err := upstream.NewClient(upstream.Origin{
			Hostname: hostname, URL: u.URL, Mirror: u.Mirror, Token: u.Token,
			Timeout: time.Duration(u.Timeout), Private: u.Private,
		}, upstream.Network{})
		if err != nil {
			return err
		}
		to[hostname] = fill.Source{Client: client, Policy: policy, Quota: quota}
	}
	return nil
}

// quota is what the hostnames share; nil without one.
func (u *Upstream) quota() (*fill.Quota, error) {
	switch {
	case u.MaxHeld < 0:
		return nil, errors.New("max_held: it must not be negative")
	case u.MaxHeld == 0:
		return nil, nil
	}
	hostnames, err := parseHostnames(u.Hostnames)
	return fill.NewQuota(u.MaxHeld, hostnames), err
}

func (u *Upstream) policy() (p fill.Policy, err error) {
	if p.Allow, err = parsePatterns(u.Allow); err != nil {
		return p, fmt.Errorf("allow: %w", err)
	}
	if p.Deny, err = parsePatterns(u.Deny); err != nil {
		return p, fmt.Errorf("deny: %w", err)
	}
	if p.Platforms, err = address.ParsePlatforms(u.Platforms); err != nil {
		return p, fmt.Errorf("platforms: %w", err)
	}
	if u.Signatures != "" {
		if p.Signatures, err = fill.ParseSignatures(u.Signatures); err != nil {
			return p, fmt.Errorf("signatures: %w", err)
		}
	}
	p.VersionsTTL, p.MinAge = time.Duration(u.VersionsTTL), time.Duration(u.MinAge)
	return p, nil
}

func parsePatterns(words []string) ([]fill.Pattern, error) {
	var patterns []fill.Pattern
	for _, word := range words {
		p, err := fill.ParsePattern(word)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// clientAddress is that of the client, which trusted proxies may tell.
func clientAddress(r *http.Request) string {
	address, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return address
}

// path is where a file of the providers is on the disk, for locks; empty where
// those would keep the file from being renamed.
func (t tree) path(name string) string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return filepath.Join(localDisk{}.under(t.directories.Root, t.directories.Providers), filepath.FromSlash(name))
}

// provisionUpstreams returns what fills the tree, nil if nothing does. No origin
// is asked for anything yet.
func (h *Handler) provisionUpstreams(app *App, repl *caddy.Replacer, t tree) (*pooledFiller, error) {
	if len(h.Upstreams) == 0 {
		return nil, nil
	}
	if t.fsys != nil {
		return nil, errors.New("upstream: only a tree on the local disk can be filled: leave out fs")
	}
	for _, u := range h.Upstreams {
		if err := u.replace(repl); err != nil {
			return nil, fmt.Errorf("upstream: %w", err)
		}
		if t.require && u.Signatures == PreferSignatures {
			return nil, errors.New("upstream: signatures: the registry requires them, so it would withhold what comes in without: leave `prefer` out of one of them")
		}
	}
	options, err := json.Marshal(h.Upstreams)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	filler, err := app.fill(fillerKey{t.directories, string(options)}, func() (fill.Options, error) {
		sources := make(map[svchost.Hostname]fill.Source)
		for _, u := range h.Upstreams {
			if err := u.sources(sources); err != nil {
				return fill.Options{}, err
			}
		}
		providers := localDisk{}.under(t.directories.Root, t.directories.Providers)
		return fill.Options{
			Sources: sources, Open: t.open, Path: t.path,
			FreeSpace: func() (int64, error) { return FreeSpace(providers) },
		}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	return filler, nil
}
