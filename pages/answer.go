package pages

import (
	"cmp"
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/accept"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
)

// An answer to a request. It does not change once it is made.
type answer struct {
	status      int
	contentType string // empty: it is a page
	body        []byte
	tag         string // of the content; empty: none
	location    string // of a redirect
	cookies     []*http.Cookie

	// zipped is the body compressed with gzip. It is nil unless the answer is cached.
	zipped []byte

	// About is the provider or module that the answer shows, in this version; zero if it
	// shows none.
	about   address.Address
	version string

	challenges bool // a 401 asks for a password even if people sign in otherwise

	immutable bool   // the URL always has this content
	unstored  bool   // no cache keeps it, not even the browser's
	policy    string // Content-Security-Policy; empty: pagePolicy
}

// Content-Security-Policies: a page has nothing but what this registry serves, and a
// file of a package, which is anybody's, has nothing at all and does nothing.
const (
	pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	filePolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"
)

const htmlType = "text/html; charset=utf-8"

// pageAnswer renders a page.
func pageAnswer(name string, model any) (*answer, error) {
	body, err := render(name, model)
	if err != nil {
		return nil, err
	}
	return &answer{status: http.StatusOK, body: body, tag: assets.Tag(body)}, nil
}

func assetAnswer(f assets.File) *answer {
	return &answer{status: http.StatusOK, contentType: f.Type, body: f.Content, zipped: f.Zipped, tag: f.Tag, immutable: true}
}

// logoAnswer answers with the logo. It does nothing, whatever is in it.
func logoAnswer(l *assets.Logo) *answer {
	a := assetAnswer(l.File)
	a.policy = filePolicy
	return a
}

// write writes an answer, and reports it to the registry.
func (s *Site) write(w http.ResponseWriter, r *http.Request, a *answer) {
	status, length := s.writeAnswer(w, r, a)
	if s.Registry.Answered != nil {
		s.Registry.Answered(r, handlers.NewPageExchange(a.about, a.version, status, int64(length)))
	}
}

// writeAnswer writes an answer, and returns its status and the length of its body.
func (s *Site) writeAnswer(w http.ResponseWriter, r *http.Request, a *answer) (status, length int) {
	s.setHeader(w.Header(), r, a)
	c := handlers.Content{Type: cmp.Or(a.contentType, htmlType), Body: a.body, Caching: s.caching(a)}
	if a.location != "" {
		c.Redirect(w, a.status, a.location)
		return a.status, 0
	}
	other := ""
	if a.tag != "" {
		c.ETag, other = `"`+a.tag+`"`, `"`+a.tag+`-gzip"` // as Caddy's encode writes them, which removes the suffix from requests
	}
	zipped := a.zipped != nil && accept.Gzip(r.Header.Get("Accept-Encoding"))
	if zipped {
		c.Body, c.ETag, other = a.zipped, other, c.ETag
	}
	if a.status == http.StatusOK && a.tag != "" && c.NotModified(w, r, other) {
		return http.StatusNotModified, 0
	}
	if zipped {
		w.Header().Set("Content-Encoding", "gzip")
	}
	return a.status, c.Write(w, r, a.status)
}

// caching is the Cache-Control of an answer.
func (s *Site) caching(a *answer) string {
	switch {
	case a.immutable:
		return "public, max-age=31536000, immutable"
	case a.unstored:
		return "no-store"
	case s.Registry.Rules != nil:
		return "private, no-cache"
	}
	return "no-cache"
}

// setHeader sets the header that does not depend on the form in which the content is sent.
func (s *Site) setHeader(h http.Header, r *http.Request, a *answer) {
	h.Set("Content-Security-Policy", cmp.Or(a.policy, pagePolicy))
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if s.SignIn != nil && !a.immutable {
		h.Add("Vary", "Cookie")
	}
	for _, cookie := range a.cookies {
		h.Add("Set-Cookie", cookie.String())
	}
	switch a.status {
	case http.StatusUnauthorized:
		// Where people sign in on a page, a dialog for a password would be in their way.
		if s.Challenge != nil && (s.SignIn == nil || a.challenges) {
			s.Challenge(h, r)
		}
		if h.Get("WWW-Authenticate") == "" {
			h.Set("WWW-Authenticate", "Bearer") // a 401 has to have one
		}
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	}
	if a.zipped != nil {
		h.Add("Vary", "Accept-Encoding")
	}
}
