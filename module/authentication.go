package module

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// authenticate tells who asks: whom a handler before this one has found, or one
// of the registry's own authentication providers. The error is that it could
// not be told, not that it is nobody.
func (h *Handler) authenticate(r *http.Request) (access.Subject, error) {
	repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return access.Subject{}, nil
	}
	if s := h.subjectOf(repl); !s.Anonymous() || len(h.guests) == 0 {
		return s, nil
	}
	var unavailable error
	for _, guest := range h.guests {
		user, ok, err := guest.Authenticate(discardedWriter{}, r)
		if ok {
			announce(repl, user)
			return h.subjectOf(repl), nil
		}
		if errors.Is(err, access.ErrIssuerUnavailable) {
			unavailable = err
		} else if err != nil {
			h.logger.Error("authentication provider failed", "error", err.Error())
		}
	}
	return access.Subject{}, unavailable
}

func (h *Handler) subjectOf(repl *caddy.Replacer) access.Subject {
	s := access.Subject{ID: repl.ReplaceAll(h.subject, "")}
	if s.ID == "" {
		return s
	}
	if h.groups == defaultGroups {
		groups, _ := repl.Get("http.auth.user.groups")
		s.Groups = access.ParseGroups(groups)
	} else {
		s.Groups = access.ParseGroups(repl.ReplaceAll(h.groups, ""))
	}
	return s
}

// announce sets the placeholders that Caddy's own authentication handler sets,
// from which the access log has the user too.
func announce(repl *caddy.Replacer, user caddyauth.User) {
	repl.Set("http.auth.user.id", user.ID)
	for key, value := range user.Metadata {
		repl.Set("http.auth.user."+key, value)
	}
}

// discardedWriter is what authentication providers write to: the answer is the
// registry's, and a challenge of one provider must not be in an answer to
// somebody whom another one knows.
type discardedWriter struct{}

func (discardedWriter) Header() http.Header         { return make(http.Header) }
func (discardedWriter) Write(p []byte) (int, error) { return len(p), nil }
func (discardedWriter) WriteHeader(int)             {}
