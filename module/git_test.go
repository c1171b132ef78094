package module

import (
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers/webhook"
)

func TestProvisionGitRefuses(t *testing.T) {
	for _, test := range []struct {
		rule string
		git  Git
		want string
	}{
		{"a host without a name", Git{Hosts: []*GitHost{{Webhook: "x"}}}, "is not a host"},
		{"a token that is for all repositories", Git{Hosts: []*GitHost{{Name: "git.example.com", Token: "x"}}}, "has a token and no allow"},
		{"repositories without a token", Git{Hosts: []*GitHost{{Name: "git.example.com", Allow: []string{"git.example.com/acme"}}}}, "add a token"},
		{"repositories of another host", Git{Hosts: []*GitHost{{Name: "git.example.com", Token: "x", Allow: []string{"github.com/acme"}}}}, "hosts: allow: "},
		{"a host twice", Git{Hosts: []*GitHost{{Name: "git.example.com"}, {Name: "git.example.com:443"}}}, "is configured twice"},
		{"a secret of a request", Git{Hosts: []*GitHost{{Name: "git.example.com", Webhook: "{http.request.header.X}"}}}, "hosts: webhook: "},
		{"a private host that is a URL", Git{Private: []string{"https://git.example.com"}}, "is not a host"},
		{"a negative poll", Git{Poll: -1}, "poll: it must not be negative"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, err := newConfiguration(t).handle(Handler{Root: sampleTree(t), Git: &test.git})
			if err == nil || !strings.Contains(err.Error(), "git: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one of git with %q", err, test.want)
			}
		})
	}
}

// Repositories are followed by the filler that the tree has anyway, and by none without git.
func TestGitIsFollowed(t *testing.T) {
	root := sampleTree(t)
	c := newConfiguration(t)
	without := c.mustHandle(Handler{Root: root, Prefix: "/a", Upstreams: mirrored(0)})
	with := c.mustHandle(Handler{Root: root, Upstreams: mirrored(0), Git: &Git{Hosts: []*GitHost{{Name: "github.com", Webhook: "x"}, {Name: "git.example.com"}}, Poll: caddy.Duration(time.Hour)}})
	c.mustStart()
	vpc := address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	if without.registry.Follower != nil || without.registry.Upstream.Mirrors(vpc) {
		t.Error("without git, repositories are followed")
	}
	if with.registry.Follower == nil || !with.registry.Upstream.Mirrors(vpc) || len(with.registry.Upstream.Origins()) != 1 {
		t.Error("with git, repositories are not followed")
	}
	if got := with.registry.WebhookSecrets; len(got) != 1 || got[0] != (webhook.Secret{Host: "github.com", Value: "x"}) {
		t.Errorf("the secrets are %v", got)
	}
}
