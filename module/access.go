package module

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
	"github.com/caddy-terraform/caddy-terraform-registry/module/authenticate"
	"github.com/caddy-terraform/caddy-terraform-registry/module/option"
)

// Access says who may read, publish and manage what.
//
// The first rule that matches decides. If no rule matches, access is denied. But everyone
// has the rights of anonymous.
type Access struct {
	// The subject of a request, with placeholders. A request whose placeholders are
	// all empty is anonymous. Any authentication can be used: the `authentication`
	// handler and the providers in `auth` set the default, client certificates are in
	// `{http.request.tls.client.subject}`, and `forward_auth` copies headers such as
	// `{http.request.header.Remote-User}`. Make sure that clients cannot set such a
	// header themselves. Default: `{http.auth.user.id}`.
	Subject string `json:"subject,omitempty"`

	// The groups of the subject, with placeholders: a list, or a text separated by
	// commas. Default: `{http.auth.user.groups}`.
	Groups string `json:"groups,omitempty"`

	// The rules, in order. At least one is required. The first that matches decides. But
	// everyone has the rights of anonymous, also after a rule that denies them.
	Rules []AccessRule `json:"rules,omitempty"`
}

// AccessRule allows or denies a right to subjects.
type AccessRule struct {
	// `allow` or `deny`.
	Effect string `json:"effect,omitempty"`

	// The subjects the rule applies to:
	//
	// - `anonymous`: in a rule that allows, anyone, with or without credentials; in
	//   a rule that denies, requests without credentials;
	// - `authenticated`: anyone with valid credentials;
	// - `group:NAME`: the members of a group;
	// - anything else: the subject with that name. A `*` stands for any characters,
	//   here and in the name of a group: `repo:acme/*`.
	Who string `json:"who,omitempty"`

	// `read`, `publish` or `manage`. Publishing adds versions and documentation. Managing
	// includes it, and the right to write `registry.hcl`, which withdraws, deprecates and
	// restores versions and describes a provider or module. Who may manage everything
	// also sees the report.
	Right string `json:"right,omitempty"`

	// The addresses of providers and modules the rule applies to, as patterns of the
	// form `[HOSTNAME/]NAMESPACE/…`. A `*` stands for any characters except a slash,
	// and parts omitted at the end match anything: `acme` is the namespace with all
	// its providers and modules, `acme/vpc/*` one module for all systems, and
	// `registry.terraform.io/hashicorp` a namespace mirrored from another registry.
	// Without HOSTNAME a pattern matches hosted addresses, under any of the
	// registry's hostnames. The same goes for a pattern with one of these hostnames,
	// which has to be in the option `hostname`. A single `*` matches everything.
	Addresses []string `json:"addresses,omitempty"`
}

// HasPlaceholder reports whether the value of an option is known only when the configuration is
// loaded.
func HasPlaceholder(value string) bool { return strings.Contains(value, "{") }

// NewAccessRule returns the rule of a line: its effect, subject, right and addresses,
// as access.ParseRule expects them. The error quotes the wrong word. A word with a
// placeholder is taken for right, since its value is not known yet.
func NewAccessRule(words []string) (AccessRule, error) {
	known := slices.Clone(words)
	for i, word := range known {
		if HasPlaceholder(word) {
			known[i] = []string{"allow", "anonymous", "read", "*"}[min(i, 3)]
		}
	}
	if _, err := access.ParseRule(known...); err != nil {
		return AccessRule{}, err
	}
	return AccessRule{Effect: words[0], Who: words[1], Right: words[2], Addresses: words[3:]}, nil
}

func (r AccessRule) words() []string {
	return append([]string{r.Effect, r.Who, r.Right}, r.Addresses...)
}

const (
	defaultLinks   = caddy.Duration(15 * time.Minute)
	defaultSubject = "{http.auth.user.id}"
	defaultGroups  = "{http.auth.user.groups}"
)

// provisionAccess sets up authentication, and returns the rules.
func (h *Handler) provisionAccess(ctx caddy.Context, app *App) (*access.Rules, error) {
	authenticators, err := ctx.LoadModule(h, "AuthRaw")
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	for _, a := range authenticators.([]any) {
		if basic, ok := a.(*caddyauth.HTTPBasicAuth); ok {
			a = authenticate.BoundPasswords(basic, app.passwords)
		}
		h.authenticators = append(h.authenticators, a.(caddyauth.Authenticator))
	}
	rules, err := h.rules()
	if err != nil {
		return nil, err
	}
	if rules == nil && h.Links != 0 {
		return nil, errors.New("links: no links are signed where anyone may read everything: add `access` or `auth`, or leave links out")
	}
	if h.Links == 0 {
		h.Links = defaultLinks
	}
	if h.Links < caddy.Duration(time.Second) || h.Links > caddy.Duration(access.MaxLinkLife) {
		return nil, fmt.Errorf("links: %s is not between 1s and %s", time.Duration(h.Links), access.MaxLinkLife)
	}
	h.subject, h.groups, h.outage = defaultSubject, defaultGroups, new(atomic.Bool)
	if h.Access != nil && h.Access.Subject != "" {
		if !HasPlaceholder(h.Access.Subject) {
			return nil, fmt.Errorf("access: subject: %q has no placeholder, so all requests would have the same subject: write it like {http.auth.user.id}", h.Access.Subject)
		}
		h.subject = h.Access.Subject
	}
	if h.Access != nil && h.Access.Groups != "" {
		h.groups = h.Access.Groups
	}
	return rules, nil
}

// rules returns the rules of the configuration; nil if anyone may read everything. With
// authentication and without rules, authenticated requests may read everything.
func (h *Handler) rules() (*access.Rules, error) {
	configured := []AccessRule{{Effect: "allow", Who: "authenticated", Right: "read", Addresses: []string{"*"}}}
	switch {
	case h.Access == nil && len(h.authenticators) == 0:
		return nil, nil
	case h.Access != nil && len(h.Access.Rules) == 0:
		return nil, errors.New("access: it has no rule, so nothing could be read: add one such as `allow authenticated read *`")
	case h.Access != nil:
		configured = h.Access.Rules
	}
	repl, rules := caddy.NewReplacer(), make([]access.Rule, len(configured))
	for i := range configured {
		words := configured[i].words()
		err := option.Expand(repl, option.List("words", words))
		if err == nil {
			rules[i], err = access.ParseRule(words...)
		}
		if err != nil {
			return nil, fmt.Errorf("access: rule %d: %w", i+1, err)
		}
		configured[i] = AccessRule{Effect: words[0], Who: words[1], Right: words[2], Addresses: words[3:]}
	}
	return access.NewRules(rules...), nil
}

// warnOfManaging logs that no one may manage anything although someone may publish. The
// right to publish once included managing. A rule about managing shows that the
// operator knows.
func (h *Handler) warnOfManaging() {
	if h.Access == nil || !h.Access.allows(access.Publish) {
		return
	}
	if !slices.ContainsFunc(h.Access.Rules, func(r AccessRule) bool { return r.Right == access.Manage.String() }) {
		h.logger.Warn("the right publish no longer includes writing registry.hcl and seeing the report, which nobody may do now: add a rule such as `allow group:platform manage *` to access, or `deny authenticated manage *` to leave it at that")
	}
}

// allows reports whether a rule gives anyone the right.
func (a *Access) allows(right access.Right) bool {
	return slices.ContainsFunc(a.Rules, func(r AccessRule) bool { return r.Effect == "allow" && r.Right == right.String() })
}

// authenticate returns the subject that an earlier handler has set, or else the first
// subject that an authentication provider of the registry finds. An error means that
// credentials cannot be checked at the moment. A request with invalid credentials is
// anonymous.
func (h *Handler) authenticate(r *http.Request) (access.Subject, error) {
	repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return access.Subject{}, nil
	}
	if s := h.subjectOf(repl); !s.Anonymous() || len(h.authenticators) == 0 {
		return s, nil
	}
	var unavailable error
	for _, a := range h.authenticators {
		// The registry writes the answer, which must not have the challenge of one provider if
		// another one authenticates the client.
		user, ok, err := a.Authenticate(headerWriter{make(http.Header)}, r)
		if ok {
			h.noteOutage(nil)
			return h.subjectOfUser(repl, user), nil
		}
		if errors.Is(err, oidc.ErrUnavailable) || errors.Is(err, authenticate.ErrTooManyPasswords) {
			unavailable = err
		} else if err != nil {
			h.logger.Error("authentication provider failed", "error", err.Error())
		}
	}
	if unavailable != nil && r.Context().Err() == nil { // else the client may have left while an issuer was asked
		h.noteOutage(unavailable)
	}
	return access.Subject{}, unavailable
}

// subjectOfUser returns the subject for a user that a provider has found.
func (h *Handler) subjectOfUser(repl *caddy.Replacer, user caddyauth.User) access.Subject {
	setUser(repl, user)
	if s := h.subjectOf(repl); !s.Anonymous() {
		return s
	}
	// The configured subject has other placeholders, such as the subject of a client
	// certificate, which are empty for this request.
	return access.Subject{ID: user.ID, Groups: access.ParseGroups(user.Metadata["groups"])}
}

// noteOutage logs that credentials cannot be checked, and later that they can be
// checked again. Each is logged once, since anyone can cause it by sending a token.
func (h *Handler) noteOutage(err error) {
	switch {
	case err != nil && h.outage.CompareAndSwap(false, true):
		h.logger.Error("credentials cannot be checked", "error", err.Error())
	case err == nil && h.outage.Load() && h.outage.CompareAndSwap(true, false):
		h.logger.Info("credentials can be checked again")
	}
}

// subjectOf returns the subject in the placeholders. It is anonymous if all of them are
// empty, whatever text is around them.
func (h *Handler) subjectOf(repl *caddy.Replacer) access.Subject {
	named := false
	id, err := repl.ReplaceFunc(h.subject, func(_ string, value any) (any, error) {
		text := caddy.ToString(value)
		named = named || text != ""
		return text, nil
	})
	if err != nil || !named {
		return access.Subject{}
	}
	s := access.Subject{ID: id}
	if h.groups == defaultGroups {
		groups, _ := repl.Get("http.auth.user.groups")
		s.Groups = access.ParseGroups(groups)
	} else {
		s.Groups = access.ParseGroups(repl.ReplaceAll(h.groups, ""))
	}
	return s
}

// setUser sets the same placeholders as Caddy's authentication handler. The access log
// takes the user from them.
func setUser(repl *caddy.Replacer, user caddyauth.User) {
	repl.Set("http.auth.user.id", user.ID)
	for key, value := range user.Metadata {
		repl.Set("http.auth.user."+key, value)
	}
}

// A headerWriter is passed to authentication providers. It keeps the header of their answers.
type headerWriter struct{ header http.Header }

func (w headerWriter) Header() http.Header         { return w.header }
func (w headerWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w headerWriter) WriteHeader(int)             {}
