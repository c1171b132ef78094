package module

import (
	"fmt"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// An AccessDecision is what the rules of one registry decide.
type AccessDecision struct {
	// Root is the root of the registry, absolute on the local disk.
	Root string `json:"root"`

	Allowed bool `json:"allowed"`

	// Text is the decision as a sentence, with the rule that decides.
	Text string `json:"text"`

	// Hosted reports that the address is one of the registry's own.
	Hosted bool `json:"hosted"`

	// Note is a warning about how the address was understood, or empty.
	Note string `json:"note,omitempty"`
}

// Decide asks the rules of every registry of the configuration whether s has the
// right to the address, in the order in which Caddy provisions the registries.
// Nothing is authenticated: the subject is taken as given.
//
// An address that has the hostname of a site is hosted there even without the
// option hostname, as it is for clients that use that hostname.
func (a *App) Decide(s access.Subject, right access.Right, address access.Resource) []AccessDecision {
	decisions := make([]AccessDecision, len(a.registries))
	for i, h := range a.registries {
		decisions[i] = h.decide(s, right, address)
	}
	return decisions
}

func (h *Handler) decide(s access.Subject, right access.Right, a access.Resource) AccessDecision {
	names := h.registry.Hostnames
	if slices.Contains(names, a.Hostname) || len(names) == 0 && onSite(h.site, string(a.Hostname)) {
		a.Hosted, a.Hostname = true, ""
	}
	d := AccessDecision{Root: h.source.tree.directories.Root, Hosted: a.Hosted}
	if h.registry.Rules == nil {
		d.Allowed, d.Text = right == access.Read, "denied: there are no access rules, and publishing requires one"
		if d.Allowed {
			d.Text = "allowed: there are no access rules, so everything is readable by anyone"
		}
		return d
	}
	if !a.Hosted && len(names) == 0 && len(h.site) == 0 {
		d.Note = fmt.Sprintf("%s is taken for the hostname of another registry: if it is one of this registry's, leave it out", a.Hostname.ForDisplay())
	}
	rules := h.registry.Rules.WithHostnames(names)
	decision := rules.Decide(s, right, a)
	verdict, why := "denied", ": no rule allows it"
	if decision.Allowed {
		verdict = "allowed"
	}
	switch {
	case decision.Rule == nil:
	case h.Access == nil:
		why = fmt.Sprintf(" by the rule that auth implies without access: %s", decision.Rule)
	default:
		number := slices.Index(slices.Collect(rules.All()), decision.Rule) + 1
		why = fmt.Sprintf(" by rule %d: %s", number, decision.Rule)
	}
	d.Allowed, d.Text = decision.Allowed, verdict+why
	return d
}

// ConfiguredApp returns the registry's app of a configuration; an error that is
// caddy.ErrNotConfigured if the configuration has no registry.
func ConfiguredApp(ctx caddy.Context) (*App, error) {
	app, err := ctx.AppIfConfigured("terraform_registry")
	if err != nil {
		return nil, err
	}
	return app.(*App), nil
}
