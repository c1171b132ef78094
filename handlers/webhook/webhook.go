// Package webhook tells which code host has sent a request, by a secret that the host shares with the
// registry, and which repository it is about: the webhooks of GitHub, GitLab, Gitea, Forgejo and
// Bitbucket, as they send them. A webhook only says where to look, so that to send one again has no
// effect but another look.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// MaxBody is the size in bytes of the largest webhook that is read. Those about a tag have some
// kilobytes.
const MaxBody = 2 << 20

// A Secret is shared with a code host.
type Secret struct {
	// Host of its repositories, with a port unless it is the default port of https.
	Host string

	Value string
}

// ErrForged: none of the secrets fits the signature or token of a request.
var ErrForged = errors.New("the webhook does not have a secret of a host that is configured here")

// signatures are the headers with an HMAC-SHA256 of the body, in hexadecimal.
var signatures = []struct{ header, prefix string }{
	{"X-Hub-Signature-256", "sha256="}, // GitHub, and Gitea beside its own
	{"X-Hub-Signature", "sha256="},     // Bitbucket; GitHub's has an HMAC-SHA1, which does not count
	{"X-Gitea-Signature", ""},
	{"X-Forgejo-Signature", ""},
}

// tokenHeader is the header in which GitLab sends the secret itself.
const tokenHeader = "X-Gitlab-Token"

// Is reports whether a request claims to be a webhook. Others have credentials.
func Is(h http.Header) bool {
	for _, s := range signatures {
		if h.Get(s.header) != "" {
			return true
		}
	}
	return h.Get(tokenHeader) != ""
}

// Senders returns the hosts that may have sent a webhook with a body: several, if they have the same
// secret. The error is ErrForged if no host has.
func Senders(h http.Header, body []byte, secrets []Secret) (hosts []string, err error) {
	for _, s := range secrets {
		if s.Value != "" && s.fits(h, body) {
			hosts = append(hosts, s.Host)
		}
	}
	if hosts == nil {
		return nil, ErrForged
	}
	return hosts, nil
}

func (s Secret) fits(h http.Header, body []byte) bool {
	if token := h.Get(tokenHeader); token != "" {
		sent, own := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.Value)) // which have one length
		return subtle.ConstantTimeCompare(sent[:], own[:]) == 1
	}
	var of []byte // the HMAC of the body: there may be many hosts, and the body may be forged
	for _, signature := range signatures {
		digits, ok := strings.CutPrefix(h.Get(signature.header), signature.prefix)
		if !ok || digits == "" {
			continue
		}
		sum, err := hex.DecodeString(digits)
		if err != nil {
			continue
		}
		if of == nil {
			mac := hmac.New(sha256.New, []byte(s.Value))
			mac.Write(body)
			of = mac.Sum(nil)
		}
		if hmac.Equal(of, sum) {
			return true
		}
	}
	return false
}

// A payload has the fields of webhooks that name their repository.
type payload struct {
	Repository repository `json:"repository"`
	Project    repository `json:"project"` // GitLab's
}

type repository struct {
	CloneURL   string `json:"clone_url"`    // GitHub, Gitea
	HTMLURL    string `json:"html_url"`     // GitHub, Gitea
	GitHTTPURL string `json:"git_http_url"` // GitLab
	Links      struct {
		HTML struct {
			Href string `json:"href"`
		} `json:"html"`
	} `json:"links"` // Bitbucket
}

// Repositories returns the URLs of the repository that a body names: all on one of the hosts, or on any
// without hosts. A webhook that is sent for a test names it too. GitHub and Gitea send a form with the
// JSON in it, unless they are told otherwise.
func Repositories(body []byte, hosts ...string) (urls []string) {
	if !json.Valid(body) { // the JSON of another host may look like a form
		form, _ := url.ParseQuery(string(body))
		body = []byte(form.Get("payload"))
	}
	var p payload
	if json.Unmarshal(body, &p) != nil {
		return nil
	}
	for _, r := range []repository{p.Repository, p.Project} {
		for _, text := range []string{r.CloneURL, r.HTMLURL, r.GitHTTPURL, r.Links.HTML.Href} {
			u, err := url.Parse(text)
			if err != nil || u.Host == "" {
				continue
			}
			if len(hosts) == 0 || IsOf(u.Host, hosts) {
				urls = append(urls, text)
			}
		}
	}
	return urls
}

// IsOf reports whether a host over HTTPS is one of several.
func IsOf(host string, hosts []string) bool {
	plain := func(host string) string { return strings.ToLower(strings.TrimSuffix(host, ":443")) }
	return slices.ContainsFunc(hosts, func(one string) bool { return plain(one) == plain(host) })
}
