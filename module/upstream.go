package module

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/module/option"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/quota"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
)

// Upstream fills the mirror with providers of other registries, and modules if they are
// turned on, when clients request them. Providers are verified, and put into the tree as
// if they had been copied there: SHA256SUMS, its signature and the keys beside the
// packages. If the option is removed later, they are still served.
//
// A package that several clients request is downloaded once, even if they use several
// instances that share the tree and Caddy's storage. While a registry is down, the
// mirror serves its stored lists and files.
//
// The tree must be on the local disk, or `fs` a file system of `caddy.fs.blob`. With a
// bucket, packages on their way into it are kept in the folder for temporary files of the
// system.
//
// Proxies are taken from the environment (`HTTPS_PROXY`). Links and redirects to
// private addresses are refused unless `private` has the host.
type Upstream struct {
	// The hostnames whose providers, and modules, are mirrored, such as
	// `registry.terraform.io`. Required.
	Hostnames []string `json:"hostnames,omitempty"`

	// The URL of another network mirror to use instead of the registries. A mirror
	// does not provide the publishers' keys: put those into `keys`, or set
	// `signatures` to `prefer`. Default: none; the registries are used.
	Mirror string `json:"mirror,omitempty"`

	// Another URL of the same registry, such as the URL of an internal cache. Only for
	// a single hostname. Default: `https://` and the hostname.
	URL string `json:"url,omitempty"`

	// Whether modules are mirrored, too. Modules have no signature: the mirror keeps the
	// files that it gets over TLS, with a record of the commit. If a version is fetched
	// again and its source has changed, the version is refused. Default: false.
	Modules bool `json:"modules,omitempty"`

	// The URL of the registry's module service, where that cannot be found out: with
	// `mirror`, or a `url` that has a path. Only for a single hostname, and with
	// `modules`. Default: it is discovered.
	ModulesURL string `json:"modules_url,omitempty"`

	// Credentials for the hosts where the files of modules are. Default: none.
	Hosts []*UpstreamHost `json:"hosts,omitempty"`

	// The providers and modules to mirror, as `NAMESPACE` or `NAMESPACE/NAME`, or
	// `NAMESPACE/NAME/SYSTEM` for modules alone, with `*` for any characters.
	// Default: all.
	Allow []string `json:"allow,omitempty"`

	// The providers and modules not to mirror, even if they are allowed. Default: none.
	Deny []string `json:"deny,omitempty"`

	// The platforms to mirror, such as `linux_amd64`. Others are not listed.
	// Default: all platforms. In either case a package is downloaded only when a
	// client requests it.
	Platforms []string `json:"platforms,omitempty"`

	// The maximum size of what is mirrored of all the hostnames together, in bytes. A
	// package that would exceed it is not fetched, and clients are told so. Present
	// packages are not removed. Default: limited by the free space of the disk; not
	// limited in a bucket.
	MaxHeld int64 `json:"max_held,omitempty"`

	// How long a list of versions is used before it is fetched again, in the
	// background. Default: `10m`.
	VersionsTTL caddy.Duration `json:"versions_ttl,omitempty"`

	// The minimum release age: how long ago a version must have been published to be
	// mirrored. Bad releases tend to be noticed in their first days. If the registry
	// does not provide the date, a version counts as published when the mirror first
	// saw it. Default: none.
	MinAge caddy.Duration `json:"min_age,omitempty"`

	// What to do with releases that are not signed by a known key: `require` leaves
	// them out, `prefer` accepts them with the checksums that are available. If you
	// put keys into `keys/HOSTNAME/NAMESPACE.asc`, only these are accepted;
	// otherwise the keys that the registry provides are stored there. Default:
	// `require`.
	Signatures string `json:"signatures,omitempty"`

	// The token for the registry or mirror, if it requires one. It is sent nowhere
	// else. Keep it out of the configuration with a placeholder:
	// `{env.UPSTREAM_TOKEN}`. Default: none.
	Token string `json:"token,omitempty"`

	// How long fetching a document may take, and how long a download may stall.
	// Default: `10s`, which is how long clients wait.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// Hosts that may be in a private network, as names or IP addresses without a
	// port: those where an internal registry has its files. The hostname itself and
	// the host of `url` or `mirror` need not be listed. Only the registry itself and
	// configured hosts may lead there, not other servers or repositories. Default: none.
	Private []string `json:"private,omitempty"`
}

// UpstreamHost is a host of modules' files, usually of git repositories. It may be in a
// private network, if the registry itself or another configured host leads there.
type UpstreamHost struct {
	// The name of the host, such as `git.example.com`, with a port if it is not the
	// usual one. Required.
	Name string `json:"name,omitempty"`

	// The repositories and archives that the credentials are for, as patterns that begin
	// with the host: `github.com/acme/*`, with `*` for any characters, in the case that the
	// host has them in. What is below them is included. Default: those that the registry
	// itself names. With `allow`, submodules of what is allowed get the credentials, too,
	// if they are on the same host and allowed themselves. Name your own repositories if
	// others can publish at the registry.
	Allow []string `json:"allow,omitempty"`

	// The user that the token belongs to. Default: `git`, as code hosts
	// expect.
	User string `json:"user,omitempty"`

	// The token with which repositories and archives are read over HTTPS. It is sent to
	// this host alone, and only for what the registry itself names there, or `allow`
	// includes: a repository of strangers, an archive or a redirect that leads to the host
	// does not get it. Keep it out of the configuration with a placeholder:
	// `{env.GIT_TOKEN}`. Default: none.
	Token string `json:"token,omitempty"`
}

// errNull is for a null in a list of the JSON configuration.
var errNull = errors.New("an entry is null: leave it out")

func (u *Upstream) expand(repl *caddy.Replacer) error {
	if u == nil {
		return errNull
	}
	for _, h := range u.Hosts {
		if err := h.expand(repl); err != nil {
			return fmt.Errorf("hosts: %w", err)
		}
	}
	return option.Expand(repl,
		option.List("hostnames", u.Hostnames),
		option.Scalar("mirror", &u.Mirror),
		option.Scalar("url", &u.URL),
		option.Scalar("modules_url", &u.ModulesURL),
		option.List("allow", u.Allow),
		option.List("deny", u.Deny),
		option.List("platforms", u.Platforms),
		option.Scalar("signatures", &u.Signatures),
		option.Scalar("token", &u.Token),
		option.List("private", u.Private),
	)
}

func (h *UpstreamHost) expand(repl *caddy.Replacer) error {
	if h == nil {
		return errNull
	}
	return option.Expand(repl,
		option.Scalar("name", &h.Name),
		option.List("allow", h.Allow),
		option.Scalar("user", &h.User),
		option.Scalar("token", &h.Token),
	)
}

func (h *UpstreamHost) host() (upstream.Host, error) {
	host := upstream.Host{Name: h.Name, User: h.User, Token: h.Token}
	for _, pattern := range h.Allow {
		repositories, err := host.ParseRepositories(pattern)
		if err != nil {
			return host, fmt.Errorf("allow: %w", err)
		}
		host.Allow = append(host.Allow, repositories)
	}
	return host, nil
}

// CheckAllow returns an error if a pattern of repositories is wrong. It accepts a
// pattern with a placeholder, whose value is not known yet.
func (h *UpstreamHost) CheckAllow(pattern string) error {
	if HasPlaceholder(h.Name + pattern) {
		return nil
	}
	_, err := upstream.Host{Name: h.Name}.ParseRepositories(pattern)
	return err
}

// checkModules returns an error if the options about modules are wrong.
func (u *Upstream) checkModules() error {
	switch {
	case !u.Modules && u.ModulesURL != "":
		return errors.New("modules_url: modules are not mirrored: add modules, or leave out their URL")
	case !u.Modules && len(u.Hosts) > 0:
		return errors.New("hosts: they are for modules, which are not mirrored: add modules, or leave out the hosts")
	case u.ModulesURL != "" && len(u.Hostnames) > 1:
		return errors.New("modules_url: several hostnames cannot have one module service: give each an upstream of its own")
	}
	return nil
}

// addSources adds the source of each hostname.
func (u *Upstream) addSources(to map[svchost.Hostname]pull.Source) error {
	policy, err := u.policy()
	if err != nil {
		return err
	}
	switch {
	case len(u.Hostnames) == 0:
		return errors.New("hostnames: name at least one, such as registry.terraform.io")
	case u.MaxHeld < 0:
		return errors.New("max_held: it must not be negative")
	case u.URL != "" && len(u.Hostnames) > 1:
		return errors.New("url: several hostnames cannot be at one address: give each an upstream of its own")
	}
	if err := u.checkModules(); err != nil {
		return err
	}
	hostnames, err := parseHostnames("hostnames", u.Hostnames)
	if err != nil {
		return err
	}
	var hosts []upstream.Host
	for _, h := range u.Hosts {
		host, err := h.host()
		if err != nil {
			return fmt.Errorf("hosts: %w", err)
		}
		hosts = append(hosts, host)
	}
	limit := quota.New(u.MaxHeld, hostnames)
	for _, hostname := range hostnames {
		if _, twice := to[hostname]; twice {
			return fmt.Errorf("hostnames: %s is in two upstreams", hostname.ForDisplay())
		}
		client, err := upstream.NewClient(upstream.Origin{
			Hostname: hostname, URL: u.URL, ModulesURL: u.ModulesURL, Mirror: u.Mirror, Token: u.Token,
			Timeout: time.Duration(u.Timeout), Private: u.Private, Hosts: hosts,
		}, upstream.Network{})
		if err != nil {
			return err
		}
		if u.Modules && !client.HasModules() {
			return errors.New("modules: a mirror has none, and beside a url with a path they are not found: add the URL of the module service, such as https://registry.terraform.io/v1/modules/")
		}
		to[hostname] = pull.Source{Client: client, Policy: policy, Quota: limit}
	}
	return nil
}

func (u *Upstream) policy() (p pull.Policy, err error) {
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
		if p.Signatures, err = pull.ParseSignatures(u.Signatures); err != nil {
			return p, fmt.Errorf("signatures: %w", err)
		}
	}
	p.VersionsTTL, p.MinAge, p.Modules = time.Duration(u.VersionsTTL), time.Duration(u.MinAge), u.Modules
	return p, nil
}

func parsePatterns(words []string) ([]address.Pattern, error) {
	var patterns []address.Pattern
	for _, word := range words {
		p, err := pull.ParsePattern(word)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// provisionUpstreams returns the filler of the tree; nil without upstreams and git. It sends
// no requests to them.
func (h *Handler) provisionUpstreams(app *App, repl *caddy.Replacer, t servedTree) (*pooledFiller, error) {
	switch {
	case len(h.Upstreams) == 0 && h.Git == nil:
		return nil, nil
	case !t.source.IsWritable() && h.Git == nil:
		return nil, errors.New("upstream: only a tree on the local disk or in a bucket can be filled: leave out fs")
	case !t.source.IsWritable():
		return nil, errors.New("git: only a tree on the local disk or in a bucket can be filled: leave out fs")
	}
	var hosted pull.Source
	if h.Git != nil {
		if err := h.Git.expand(repl); err != nil {
			return nil, fmt.Errorf("git: %w", err)
		}
		var err error
		if hosted, err = h.Git.source(); err != nil {
			return nil, fmt.Errorf("git: %w", err)
		}
		if !git.Available() {
			h.logger.Warn("there is no command git: no repository is followed until it is installed")
		}
	}
	for _, u := range h.Upstreams {
		if err := u.expand(repl); err != nil {
			return nil, fmt.Errorf("upstream: %w", err)
		}
		if t.require && u.Signatures == PreferSignatures {
			return nil, errors.New("upstream: signatures: the registry requires them, so it would withhold releases without: remove `prefer` from the upstream, or `require` from the registry")
		}
	}
	options, err := json.Marshal([]any{h.Upstreams, h.Git})
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	filler, err := app.acquireFiller(fillerKey{t.source, t.identity(), string(options)}, h.Git, func() (pull.Options, error) {
		sources := make(map[svchost.Hostname]pull.Source)
		for _, u := range h.Upstreams {
			if err := u.addSources(sources); err != nil {
				return pull.Options{}, err
			}
		}
		if h.Git != nil {
			sources[""] = hosted
		}
		return pull.Options{
			Sources: sources, Open: t.source.Open, FreeSpace: t.source.FreeSpace,
		}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	return filler, nil
}
