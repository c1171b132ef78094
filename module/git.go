package module

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers/webhook"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/module/option"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/follow"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// Git has modules follow the git repositories that their `registry.hcl` names: the tags of
// a repository are the versions of the module. A version is fetched once, checked like one
// that is published, kept in the tree, and never changes.
//
// Whoever may write a `registry.hcl` names repositories, so the token of a host is used only
// for those that `allow` of the host has, and only hosts in `private` may be in a private
// network. The server needs the command `git`.
type Git struct {
	// Hosts with a token or a webhook. Other hosts are asked without credentials.
	// Default: none.
	Hosts []*GitHost `json:"hosts,omitempty"`

	// Hosts that may be in a private network, as names or IP addresses without a port.
	// Default: none.
	Private []string `json:"private,omitempty"`

	// How often the tags of each repository are listed. New tags are also found when its
	// host tells of them, by a webhook. Default: `5m`.
	Poll caddy.Duration `json:"poll,omitempty"`
}

// GitHost is a host of git repositories.
type GitHost struct {
	// The name of the host, such as `github.com`, with a port if it is not the usual one.
	// Required.
	Name string `json:"name,omitempty"`

	// The repositories that the token is for, as patterns that begin with the host:
	// `github.com/acme/*`, with `*` for any characters, in the case that the host has
	// them in. Submodules get it if they are allowed, too. Required with `token`.
	Allow []string `json:"allow,omitempty"`

	// The user that the token belongs to. Default: `git`, as code hosts expect.
	User string `json:"user,omitempty"`

	// The token with which repositories are read over HTTPS. Keep it out of the
	// configuration with a placeholder: `{env.GIT_TOKEN}`. Default: none.
	Token string `json:"token,omitempty"`

	// The secret of the host's webhooks, which are sent to `/v1/refresh`, or to
	// `/v1/modules/NAMESPACE/NAME/SYSTEM/refresh` for one module. Default: none.
	Webhook string `json:"webhook,omitempty"`
}

// defaultGitPoll is how often tags are listed.
const defaultGitPoll = 5 * time.Minute

func (g *Git) expand(repl *caddy.Replacer) error {
	for _, h := range g.Hosts {
		if h == nil {
			return fmt.Errorf("hosts: %w", errNull)
		}
		if err := option.Expand(repl, option.Scalar("name", &h.Name), option.List("allow", h.Allow), option.Scalar("user", &h.User), option.Scalar("token", &h.Token), option.Scalar("webhook", &h.Webhook)); err != nil {
			return fmt.Errorf("hosts: %w", err)
		}
	}
	return option.Expand(repl, option.List("private", g.Private))
}

// upstreamHost returns the host without its webhook.
func (h *GitHost) upstreamHost() *UpstreamHost {
	return &UpstreamHost{Name: h.Name, Allow: h.Allow, User: h.User, Token: h.Token}
}

// CheckAllow is CheckAllow of the same host as one of upstream.
func (h *GitHost) CheckAllow(pattern string) error { return h.upstreamHost().CheckAllow(pattern) }

// poll returns how often tags are listed.
func (g *Git) poll() time.Duration { return cmp.Or(time.Duration(g.Poll), defaultGitPoll) }

// source returns the source of hosted modules.
func (g *Git) source() (pull.Source, error) {
	if g.Poll < 0 {
		return pull.Source{}, errors.New("poll: it must not be negative")
	}
	var hosts []upstream.Host
	for _, h := range g.Hosts {
		host, err := h.upstreamHost().host()
		if err != nil {
			return pull.Source{}, fmt.Errorf("hosts: %w", err)
		}
		hosts = append(hosts, host)
	}
	client, err := upstream.NewCodeHosts(upstream.CodeHosts{Hosts: hosts, Private: g.Private}, upstream.Network{})
	if err != nil {
		return pull.Source{}, err
	}
	return pull.Source{Client: client, Policy: pull.Policy{Modules: true, VersionsTTL: g.poll()}}, nil
}

// secrets returns the secrets of the hosts' webhooks.
func (g *Git) secrets() (secrets []webhook.Secret) {
	for _, h := range g.Hosts {
		if h.Webhook != "" {
			secrets = append(secrets, webhook.Secret{Host: h.Name, Value: h.Webhook})
		}
	}
	return secrets
}

// newFollower returns what follows the repositories of the tree, until the filler is not used any more.
func (p *pooledFiller) newFollower(interval time.Duration) *follow.Follower {
	return follow.New(p.context, follow.Options{
		Filler: p.Filler, Interval: interval, Left: p.tellNext,
		Snapshot: func() *index.Snapshot {
			for _, x := range p.indexes() {
				if s := x.Snapshot(); s != nil {
					return s
				}
			}
			return nil
		},
		Changed: func(a address.Address) {
			for _, x := range p.indexes() {
				x.Changed(tree.ReportedFolder(a))
			}
		},
	})
}

// tellNext tells the follower of the live configuration what this one was told, and has not done.
func (p *pooledFiller) tellNext(a address.Address) {
	app := liveApp()
	if app == nil {
		return
	}
	app.mutex.Lock()
	defer app.mutex.Unlock()
	for _, next := range app.fillers {
		if next.identity == p.identity && next.follower != nil {
			next.follower.Tell(a)
		}
	}
}
