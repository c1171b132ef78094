package module

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers/webhook"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/follow"
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

// renewed is a filler that only says which lists are renewed.
type renewed struct {
	follow.Filler
	lists chan<- address.Address
}

func (r renewed) Renew(_ context.Context, a address.Address, _ time.Time, _ bool) error {
	r.lists <- a
	return nil
}

// A reload may replace the follower as soon as a webhook has been answered. The next one does the work.
func TestWebhooksOutliveReloads(t *testing.T) {
	storage, root := t.TempDir(), t.TempDir()
	files := indextest.OnDisk(t, root)
	h := Handler{Root: root, SigningKey: &SigningKey{Off: true}, Git: &Git{Poll: caddy.Duration(time.Hour)}}
	before := liveIn(t, storage, nil, h)[0]
	h.Git = &Git{Poll: caddy.Duration(2 * time.Hour)}
	next := liveIn(t, storage, nil, h)[0].registry.Upstream.(*pooledFiller)

	files.Write("modules/acme/vpc/aws/registry.hcl", "git {\n  url = \"https://git.example.com/acme/vpc\"\n}\n")
	tree, err := index.Scan(t.Context(), index.Options{Open: files.Open})
	if err != nil {
		t.Fatal(err)
	}
	lists := make(chan address.Address, 1)
	app := liveApp()
	app.mutex.Lock()
	next.follower = follow.New(t.Context(), follow.Options{Filler: renewed{lists: lists}, Interval: time.Hour, Snapshot: func() *index.Snapshot { return tree }})
	app.mutex.Unlock()
	vpc := address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	before.registry.Follower.Tell(vpc)
	select {
	case a := <-lists:
		if a != vpc {
			t.Errorf("%s is looked at", a)
		}
	case <-time.After(time.Minute):
		t.Error("the repository is not looked at")
	}
}
