package module

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/module/authenticate"
	"github.com/caddy-terraform/caddy-terraform-registry/pages"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
)

// UI configures the pages.
type UI struct {
	// The path below which the pages are. It starts with a slash. Links on pages are
	// paths as the registry gets them: `handle_path` and proxies in front must not take
	// a part away, not even the one in `public_url`. Default: `/`.
	Path string `json:"path,omitempty"`

	// The name of the registry, for the head of each page. Default: its hostname.
	Name string `json:"name,omitempty"`

	// The file with the logo, beside the name: SVG, PNG, WebP, JPEG or GIF, at most
	// 256 KiB. It is read when the configuration is loaded, and everyone can see it.
	// Default: the icon of this program.
	Logo string `json:"logo,omitempty"`

	// Links for the foot of each page, such as to where people can ask.
	Links []UILink `json:"links,omitempty"`
}

// A UILink is a link at the foot of the pages.
type UILink struct {
	// The text of the link. Required.
	Text string `json:"text"`

	// Where the link leads: a URL with `https`, `http` or `mailto`, or a path of the same
	// site. Required.
	URL string `json:"url"`
}

// provisionPages sets up the pages of the registry.
func (h *Handler) provisionPages() error {
	if h.UI == nil {
		return nil
	}
	logo, err := h.UI.readLogo()
	if err != nil {
		return err
	}
	var links []pages.Link
	for _, l := range h.UI.Links {
		links = append(links, pages.Link(l))
	}
	h.pages = &pages.Site{
		Registry: h.registry,
		Path:     strings.TrimSuffix(h.UI.Path, "/"),
		Name:     h.UI.Name,
		Logo:     logo,
		Links:    links,
		SignIn:   h.signIn,
		Login:    h.Login != nil,
		Unsigned: h.SigningKey != nil && h.SigningKey.Off,
		Version:  BuildVersion().Registry,
		Logger:   h.logger,
	}
	if slices.ContainsFunc(h.authenticators, authenticate.WorksInBrowser) {
		h.pages.Challenge = h.challenge
	}
	// If the subject is configured, people are authenticated before the registry.
	if h.signIn == nil && h.pages.Challenge == nil && len(h.authenticators) > 0 && h.subject == defaultSubject {
		h.logger.Warn("people cannot sign in to the pages with a browser, as no provider in auth works there: add login with an issuer that one of terraform_oidc has, or http_basic")
	}
	return nil
}

// readLogo reads the file with the logo. It returns nil if there is none.
func (u *UI) readLogo() (*assets.Logo, error) {
	if u.Logo == "" {
		return nil, nil
	}
	f, err := os.Open(u.Logo)
	if err != nil {
		return nil, fmt.Errorf("ui: logo: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, assets.MaxLogo+1))
	if err != nil {
		return nil, fmt.Errorf("ui: logo: %w", err)
	}
	logo, err := assets.NewLogo(u.Logo, content)
	if err != nil {
		return nil, fmt.Errorf("ui: logo: %w", err)
	}
	return logo, nil
}

// challenge adds the challenges of the authentication providers for a browser to the
// header of a 401, such as the request of `http_basic` for a user name and password.
func (h *Handler) challenge(header http.Header, r *http.Request) {
	for _, a := range h.authenticators {
		offer := headerWriter{make(http.Header)}
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

// maxUIName is the length of the registry's name on the pages.
const maxUIName = 60

// validate checks the path of the pages, their name and their links.
func (u *UI) validate(prefix string) error {
	if u == nil {
		return nil
	}
	if utf8.RuneCountInString(u.Name) > maxUIName {
		return fmt.Errorf("ui: the name is longer than %d characters", maxUIName)
	}
	for _, l := range u.Links {
		to, err := url.Parse(l.URL)
		switch {
		case l.Text == "":
			return fmt.Errorf("ui: the link to %q has no text", l.URL)
		case err != nil, to.Scheme == "" && !strings.HasPrefix(l.URL, "/"), !slices.Contains([]string{"", "https", "http", "mailto"}, to.Scheme):
			return fmt.Errorf("ui: the link %q leads to %q, which is neither a URL with https, http or mailto nor a path", l.Text, l.URL)
		}
	}
	if u.Path == "" || u.Path == "/" {
		return nil
	}
	trimmed := strings.TrimSuffix(u.Path, "/")
	below, inPrefix := strings.CutPrefix(trimmed, prefix+"/")
	switch {
	case !strings.HasPrefix(u.Path, "/"):
		return fmt.Errorf("ui: the path %q does not start with a slash", u.Path)
	case path.Clean(trimmed) != trimmed:
		return fmt.Errorf("ui: the path %q has empty or dot segments", u.Path)
	case (&url.URL{Path: trimmed}).EscapedPath() != trimmed:
		return fmt.Errorf("ui: the path %q has characters that need escaping in a URL", u.Path)
	case trimmed == prefix || inPrefix && handlers.ForClients(below):
		return fmt.Errorf("ui: the path %q is one that clients use: choose another", u.Path)
	}
	return nil
}
