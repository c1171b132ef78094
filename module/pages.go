package module

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/pages"
)

// UI configures the pages.
type UI struct {
	// The path below which the pages are. It starts with a slash. Default: `/`.
	Path string `json:"path,omitempty"`
}

// provisionPages sets up the pages of the registry.
func (h *Handler) provisionPages() {
	if h.UI == nil {
		return
	}
	h.pages = &pages.Site{
		Registry: h.registry,
		Path:     strings.TrimSuffix(h.UI.Path, "/"),
		SignIn:   h.signIn,
		Login:    h.Login != nil,
		Unsigned: h.SigningKey != nil && h.SigningKey.Off,
		Version:  BuildVersion().Registry,
		Logger:   h.logger,
	}
	if slices.ContainsFunc(h.authenticators, worksInBrowser) {
		h.pages.Challenge = h.challenge
	}
	// If the subject is configured, people are authenticated before the registry.
	if h.signIn == nil && h.pages.Challenge == nil && len(h.authenticators) > 0 && h.subject == defaultSubject {
		h.logger.Warn("people cannot sign in to the pages with a browser, as no provider in auth works there: add login with an issuer that one of terraform_oidc has, or http_basic")
	}
}

// challenge adds the challenges of the authentication providers for a browser to the
// header of a 401, such as the request of `http_basic` for a user name and password.
func (h *Handler) challenge(header http.Header, r *http.Request) {
	for _, a := range h.authenticators {
		offer := offeredHeader{make(http.Header)}
		if _, known, _ := a.Authenticate(offer, r); known { // a failure has been logged
			continue
		}
		for _, value := range offer.header.Values("WWW-Authenticate") {
			if !slices.Contains(header.Values("WWW-Authenticate"), value) {
				header.Add("WWW-Authenticate", value)
			}
		}
	}
}

// An offeredHeader is a writer for an authentication provider. Only the header counts.
type offeredHeader struct{ header http.Header }

func (o offeredHeader) Header() http.Header         { return o.header }
func (o offeredHeader) Write(p []byte) (int, error) { return len(p), nil }
func (o offeredHeader) WriteHeader(int)             {}

// validate checks the path of the pages.
func (u *UI) validate(prefix string) error {
	if u == nil || u.Path == "" || u.Path == "/" {
		return nil
	}
	trimmed := strings.TrimSuffix(u.Path, "/")
	switch {
	case !strings.HasPrefix(u.Path, "/"):
		return fmt.Errorf("ui: the path %q does not start with a slash", u.Path)
	case path.Clean(trimmed) != trimmed:
		return fmt.Errorf("ui: the path %q has empty or dot segments", u.Path)
	case (&url.URL{Path: trimmed}).EscapedPath() != trimmed:
		return fmt.Errorf("ui: the path %q has characters that need escaping in a URL", u.Path)
	case trimmed == prefix:
		return errors.New("ui: the path is the registry's prefix, which clients use: choose another one")
	}
	return nil
}
