package webhook_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers/webhook"
)

const (
	github    = `{"ref":"v1.2.0","ref_type":"tag","repository":{"full_name":"acme/vpc","html_url":"https://github.com/acme/vpc","clone_url":"https://github.com/acme/vpc.git"}}`
	gitlab    = `{"object_kind":"tag_push","ref":"refs/tags/v1.2.0","project":{"web_url":"https://gitlab.com/acme/vpc","git_http_url":"https://gitlab.com/acme/vpc.git"},"repository":{"git_http_url":"https://gitlab.com/acme/vpc.git"}}`
	gitea     = `{"ref":"v1.2.0","ref_type":"tag","repository":{"html_url":"https://git.example.com:3000/acme/vpc","clone_url":"https://git.example.com:3000/acme/vpc.git"}}`
	bitbucket = `{"push":{"changes":[]},"repository":{"full_name":"acme/vpc","links":{"html":{"href":"https://bitbucket.org/acme/vpc"}}}}`
)

// A host sends its JSON in a form if it is told to.
var (
	githubForm = url.Values{"payload": {github}}.Encode()
	gitlabForm = url.Values{"payload": {gitlab}}.Encode()
)

func mac(h func() hash.Hash, secret, body string) string {
	m := hmac.New(h, []byte(secret))
	m.Write([]byte(body))
	return hex.EncodeToString(m.Sum(nil))
}

// Webhooks count as the code hosts document them.
func TestSenders(t *testing.T) {
	secrets := []webhook.Secret{{"github.com", "a"}, {"gitlab.com", "b"}, {"git.example.com:3000", "c"}, {"bitbucket.org", "d"}, {"none.example.com", ""}, {"one.example.com", "same"}, {"two.example.com", "same"}}
	for _, test := range []struct {
		rule   string
		header []string
		body   string
		host   string // empty: it is forged
		urls   []string
	}{
		{"GitHub signs the body", []string{"X-Hub-Signature-256", "sha256=" + mac(sha256.New, "a", github), "X-Hub-Signature", "sha1=" + mac(sha1.New, "a", github)}, github,
			"github.com", []string{"https://github.com/acme/vpc.git", "https://github.com/acme/vpc"}},
		{"GitLab sends the secret", []string{"X-Gitlab-Token", "b", "X-Gitlab-Event", "Tag Push Hook"}, gitlab,
			"gitlab.com", []string{"https://gitlab.com/acme/vpc.git", "https://gitlab.com/acme/vpc.git"}},
		{"Gitea signs the body", []string{"X-Gitea-Signature", mac(sha256.New, "c", gitea), "X-Hub-Signature-256", "sha256=" + mac(sha256.New, "c", gitea)}, gitea,
			"git.example.com:3000", []string{"https://git.example.com:3000/acme/vpc.git", "https://git.example.com:3000/acme/vpc"}},
		{"Forgejo signs the body", []string{"X-Forgejo-Signature", mac(sha256.New, "c", gitea)}, gitea,
			"git.example.com:3000", []string{"https://git.example.com:3000/acme/vpc.git", "https://git.example.com:3000/acme/vpc"}},
		{"Bitbucket signs the body", []string{"X-Hub-Signature", "sha256=" + mac(sha256.New, "d", bitbucket), "X-Event-Key", "repo:push"}, bitbucket,
			"bitbucket.org", []string{"https://bitbucket.org/acme/vpc"}},
		{"two hosts with one secret", []string{"X-Gitlab-Token", "same"}, strings.ReplaceAll(gitlab, "gitlab.com", "two.example.com"),
			"one.example.com two.example.com", []string{"https://two.example.com/acme/vpc.git", "https://two.example.com/acme/vpc.git"}},
		{"a repository of another host does not count", []string{"X-Gitlab-Token", "b"}, github, "gitlab.com", nil},
		{"another body", []string{"X-Hub-Signature-256", "sha256=" + mac(sha256.New, "a", github)}, gitea, "", nil},
		{"another secret", []string{"X-Hub-Signature-256", "sha256=" + mac(sha256.New, "x", github)}, github, "", nil},
		{"an HMAC-SHA1 alone", []string{"X-Hub-Signature", "sha1=" + mac(sha1.New, "a", github)}, github, "", nil},
		{"the HMAC of a host without a secret", []string{"X-Hub-Signature-256", "sha256=" + mac(sha256.New, "", github)}, github, "", nil},
		{"another token", []string{"X-Gitlab-Token", "bb"}, gitlab, "", nil},
		{"no signature", []string{"X-Hub-Signature-256", "sha256="}, github, "", nil},
		{"no header", nil, github, "", nil},
		{"GitHub signs the body when it sends a form", []string{"X-Hub-Signature-256", "sha256=" + mac(sha256.New, "a", githubForm)}, githubForm,
			"github.com", []string{"https://github.com/acme/vpc.git", "https://github.com/acme/vpc"}},
		{"a form in JSON does not count", []string{"X-Gitlab-Token", "b"}, `{"a":"&` + gitlabForm + `&"}`, "gitlab.com", nil},
		{"a form without JSON names nothing", []string{"X-Gitlab-Token", "b"}, "payload=%7B%7D", "gitlab.com", nil},
		{"what is neither names nothing", []string{"X-Gitlab-Token", "b"}, "%", "gitlab.com", nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			h := make(http.Header)
			for pair := range slices.Chunk(test.header, 2) {
				h.Set(pair[0], pair[1])
			}
			hosts, err := webhook.Senders(h, []byte(test.body), secrets)
			if host := strings.Join(hosts, " "); host != test.host || (test.host == "") != errors.Is(err, webhook.ErrForged) {
				t.Fatalf("it is of %q, %v", hosts, err)
			}
			if webhook.Is(h) != (len(test.header) > 0) {
				t.Error("it is not known for a webhook, or wrongly")
			}
			if hosts == nil {
				return
			}
			if urls := webhook.Repositories([]byte(test.body), hosts...); !slices.Equal(urls, test.urls) {
				t.Errorf("it names %q", urls)
			}
		})
	}
}
