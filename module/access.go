package module

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// Access says who may read and publish what.
//
// The first rule that matches decides. What no rule matches is denied.
type Access struct {
	// What names the one who asks. Placeholders of the request work; empty means
	// that it is nobody. Whatever authenticates requests can be used: the
	// `authentication` handler and the providers in `auth` set the default, client
	// certificates are in `{http.request.tls.client.subject}`, and `forward_auth`
	// copies headers such as `{http.request.header.Remote-User}`. Take care that
	// clients cannot send such a header themselves. Default:
	// `{http.auth.user.id}`.
	Subject string `json:"subject,omitempty"`

	// What names the groups of the one who asks: a list, or a text with commas
	// between them. Default: `{http.auth.user.groups}`.
	Groups string `json:"groups,omitempty"`

	// The rules, in order. There has to be one at least.
	Rules []AccessRule `json:"rules,omitempty"`
}

// AccessRule allows or denies something to somebody.
type AccessRule struct {
	// `allow` or `deny`.
	Effect string `json:"effect,omitempty"`

	// Whom it is about:
	//
	// - `anonymous`: in a rule that allows everybody, with credentials or without;
	//   in one that denies those without;
	// - `authenticated`: everybody who is somebody;
	// - `group:NAME`: the members of a group;
	// - anything else: the one of that name. A `*` stands for any characters, here
	//   and in the name of a group: `repo:acme/*`.
	Who string `json:"who,omitempty"`

	// `read` or `publish`.
	Right string `json:"right,omitempty"`

	// The addresses of providers and modules it is about, as patterns of the form
	// `[HOSTNAME/]NAMESPACE/…`. A `*` stands for any characters between slashes,
	// and what is left out at the end for all there is: `acme` is the namespace
	// with all its providers and modules, `acme/vpc/*` one module for all systems,
	// `registry.terraform.io/hashicorp` what is mirrored of another registry.
	// Without HOSTNAME it is about the registry's own, by whatever name that is asked
	// for; so it is with one of the registry's names, which its option `hostname` has
	// to have. A `*` alone is everything.
	Addresses []string `json:"addresses,omitempty"`
}

// DefaultLinks is how long links to files are good.
const DefaultLinks = caddy.Duration(15 * time.Minute)

const (
	defaultSubject = "{http.auth.user.id}"
	defaultGroups  = "{http.auth.user.groups}"
)

// rules returns the rules of the configuration; nil if everything is public. With
// authentication and without rules, authenticated users may read everything.
func (h *Handler) rules() (*access.Rules, error) {
	if h.Access == nil && len(h.guests) == 0 {
		return nil, nil
	}
	if h.Access == nil {
		return newRules([]AccessRule{{Effect: "allow", Who: "authenticated", Right: "read", Addresses: []string{"*"}}})
	}
	if len(h.Access.Rules) == 0 {
		return nil, errors.New("access: it has no rule, so nobody could read anything: add one such as `allow authenticated read *`")
	}
	return newRules(h.Access.Rules)
}

// NewAccessRule makes a rule of its words: what it does, whom for, the right and
// the addresses.
func NewAccessRule(words []string) (AccessRule, error) {
	if _, err := access.ParseRule(words...); err != nil {
		return AccessRule{}, err
	}
	return AccessRule{Effect: words[0], Who: words[1], Right: words[2], Addresses: words[3:]}, nil
}

func newRules(list []AccessRule) (*access.Rules, error) {
	repl, rules := caddy.NewReplacer(), make([]access.Rule, len(list))
	for i, r := range list {
		words := append([]string{r.Effect, r.Who, r.Right}, r.Addresses...)
		err := expand(repl, "words", pointers(words))
		if err == nil {
			rules[i], err = access.ParseRule(words...)
		}
		if err != nil {
			return nil, fmt.Errorf("access: rule %d: %w", i+1, err)
		}
	}
	return access.NewRules(rules...), nil
}

// provisionAccess sets up what decides who may read what.
func (h *Handler) provisionAccess(ctx caddy.Context) (*access.Rules, error) {
	guests, err := ctx.LoadModule(h, "AuthRaw")
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	for _, guest := range guests.([]any) {
		h.guests = append(h.guests, guest.(caddyauth.Authenticator))
	}
	rules, err := h.rules()
	if err != nil {
		return nil, err
	}
	if rules == nil && h.Links != 0 {
		return nil, errors.New("links: nothing is signed where everybody may read everything: add `access` or `auth`, or leave links out")
	}
	if h.Links == 0 {
		h.Links = DefaultLinks
	}
	if h.Links < caddy.Duration(time.Second) || h.Links > caddy.Duration(access.MaxLinkLife) {
		return nil, fmt.Errorf("links: %s is not between 1s and %s", time.Duration(h.Links), access.MaxLinkLife)
	}
	h.subject, h.groups, h.outage = defaultSubject, defaultGroups, new(atomic.Bool)
	if h.Access != nil && h.Access.Subject != "" {
		if !strings.Contains(h.Access.Subject, "{") {
			return nil, fmt.Errorf("access: subject: %q has no placeholder, so everybody would be the same one: write it like {http.auth.user.id}", h.Access.Subject)
		}
		h.subject = h.Access.Subject
	}
	if h.Access != nil && h.Access.Groups != "" {
		h.groups = h.Access.Groups
	}
	return rules, nil
}
