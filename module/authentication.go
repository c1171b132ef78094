package module

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
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
			h.noteOutage(nil)
			announce(repl, user)
			if s := h.subjectOf(repl); !s.Anonymous() {
				return s, nil
			}
			// The subject is made of something else, such as a client certificate that
			// this client does not have.
			return access.Subject{ID: user.ID, Groups: access.ParseGroups(user.Metadata["groups"])}, nil
		}
		if errors.Is(err, oidc.ErrUnavailable) {
			unavailable = err
		} else if err != nil {
			h.logger.Error("authentication provider failed", "error", err.Error())
		}
	}
	if unavailable != nil {
		h.noteOutage(unavailable)
	}
	return access.Subject{}, unavailable
}

// noteOutage logs that credentials cannot be checked, and that they can again:
// once each, as anybody can send some.
func (h *Handler) noteOutage(err error) {
	switch {
	case err != nil && h.outage.CompareAndSwap(false, true):
		h.logger.Error("credentials cannot be checked", "error", err.Error())
	case err == nil && h.outage.Load() && h.outage.CompareAndSwap(true, false):
		h.logger.Info("credentials can be checked again")
	}
}

// subjectOf is whom the placeholders name. It is nobody as long as they are all
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
