// Package signin signs people in with their browser: it has them log in at an OpenID
// Connect issuer, and remembers who they are in a cookie.
//
// Nothing is kept on the server. An attempt to sign in and a session are cookies that are
// encrypted and authenticated with keys that all instances of a registry share (see
// [access.Sealer]), so any of them can go on with what another has begun.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
)

// Errors of Finish, beside those of oidc.Client.Redeem.
var (
	// ErrNoAttempt means that this browser has not begun to sign in, or too long ago, or
	// has done so already: somebody may have sent it here.
	ErrNoAttempt = errors.New("the browser is not signing in")

	// ErrDeclined means that the issuer has not let the person in, or that the person has
	// changed their mind.
	ErrDeclined = errors.New("the issuer has not let anyone in")

	// ErrTooLarge means that the session does not fit into a cookie.
	ErrTooLarge = errors.New("the names of the subject and its groups are too long for a cookie")
)

const (
	// attemptLife is how long logging in may take.
	attemptLife = 10 * time.Minute

	// maxSession is how long a session lasts at most: half as long as a key is sure to
	// open what it has sealed, see access.Sealer.
	maxSession = 12 * time.Hour
)

// A SignIn signs people in to one registry. Its fields must not change once it is used.
type SignIn struct {
	Client *oidc.Client
	Sealer *access.Sealer

	// Rules say which groups a session has to remember. It ends when they name others.
	Rules *access.Rules

	// Scope is what a session depends on beside the client and the groups that rules name,
	// such as which claims say who somebody is. With another scope it is nobody's.
	Scope string

	// Now is the clock. Nil: that of the system.
	Now func() time.Time
}

func (s *SignIn) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// purpose is what a cookie is sealed for.
func (s *SignIn) purpose(of string) string {
	text, _ := json.Marshal([]any{of, s.Client.Issuer.URL(), s.Client.ID, s.Scope, s.Rules.Groups()}) // strings always encode
	return string(text)
}

// An attempt is what this registry remembers while somebody logs in at the issuer.
type attempt struct {
	Challenge oidc.Challenge `json:"c"`
	To        string         `json:"t"`
	Ends      int64          `json:"e"`
}

// Begin returns where a browser logs in, and the cookie of this attempt. It comes back to
// the redirect URI, and is to go to the page To then. Again has the issuer ask for a user
// although one is logged in there.
func (s *SignIn) Begin(ctx context.Context, redirectURI, to string, again bool) (location string, cookie *http.Cookie, err error) {
	a := attempt{
		Challenge: oidc.Challenge{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), RedirectURI: redirectURI},
		To:        to, Ends: s.now().Add(attemptLife).Unix(),
	}
	if location, err = s.Client.AuthorizationURL(ctx, a.Challenge, again); err != nil {
		return "", nil, err
	}
	sealed, err := s.seal(attemptCookie, a)
	if err != nil {
		return "", nil, err
	}
	return location, newCookie(attemptCookie, sealed, attemptLife), nil
}

// Finish returns the cookie of the session that begins with the request that the issuer
// has sent a browser back with, and the page to go to. The page is empty if this browser
// has not begun to sign in; whatever the error, the attempt has ended: see EndAttempt.
func (s *SignIn) Finish(r *http.Request) (to string, session *http.Cookie, err error) {
	query := r.URL.Query()
	a, err := s.attemptOf(r, query)
	if err != nil {
		return "", nil, err
	}
	// An answer of another issuer, to confuse them (RFC 9207). Many do not tell.
	if issuer := query.Get("iss"); issuer != "" && issuer != s.Client.Issuer.URL() {
		return a.To, nil, fmt.Errorf("%w: the answer is that of another issuer", oidc.ErrRefused)
	}
	if code := query.Get("error"); code != "" {
		return a.To, nil, fmt.Errorf("%w: %.60q", ErrDeclined, code)
	}
	identity, err := s.Client.Redeem(r.Context(), query.Get("code"), a.Challenge)
	if err != nil {
		return a.To, nil, err
	}
	session, err = s.newSession(identity)
	return a.To, session, err
}

// attemptOf returns the attempt that a browser has begun and comes back from.
func (s *SignIn) attemptOf(r *http.Request, query url.Values) (a attempt, err error) {
	if err := s.open(r, attemptCookie, &a); errors.Is(err, access.ErrNoLinkKeys) {
		return a, err
	}
	states := query["state"]
	if a.Challenge.State == "" || len(states) != 1 || subtle.ConstantTimeCompare([]byte(states[0]), []byte(a.Challenge.State)) == 0 || s.now().Unix() >= a.Ends {
		return a, ErrNoAttempt
	}
	return a, nil
}

// A session is who somebody is, as far as rules depend on it.
type session struct {
	Subject string   `json:"s"`
	Groups  []string `json:"g,omitempty"`
	Ends    int64    `json:"e"`
}

// newSession returns the cookie of a new session: of nothing that was there before.
func (s *SignIn) newSession(of oidc.Identity) (*http.Cookie, error) {
	now := s.now()
	life := min(of.Expiry.Sub(now), maxSession)
	if life < time.Second {
		return nil, fmt.Errorf("%w: it has expired", oidc.ErrRefused)
	}
	sealed, err := s.seal(sessionCookie, session{of.Subject.ID, s.Rules.NamedGroups(of.Subject.Groups), now.Add(life).Unix()})
	if err != nil {
		return nil, err
	}
	return newCookie(sessionCookie, sealed, life), nil
}

// Subject returns whose session a request belongs to; anonymous if it has none, or one
// that has ended. The error means that sessions cannot be read at the moment.
func (s *SignIn) Subject(r *http.Request) (access.Subject, error) {
	var of session
	err := s.open(r, sessionCookie, &of)
	switch {
	case errors.Is(err, access.ErrNoLinkKeys):
		return access.Subject{}, err
	case err != nil, s.now().Unix() >= of.Ends:
		return access.Subject{}, nil
	}
	return access.Subject{ID: of.Subject, Groups: of.Groups}, nil
}

// seal returns the value of a cookie.
func (s *SignIn) seal(name string, v any) (string, error) {
	plaintext, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sealed, err := s.Sealer.Seal(s.purpose(name), plaintext)
	if err == nil && len(name)+len(sealed) > maxCookie {
		err = ErrTooLarge
	}
	return sealed, err
}

// open reads the cookie of a request. A request without one has an http.ErrNoCookie.
func (s *SignIn) open(r *http.Request, name string, v any) error {
	cookie, err := r.Cookie(name)
	if err != nil {
		return err
	}
	plaintext, err := s.Sealer.Open(s.purpose(name), cookie.Value)
	if err != nil {
		return err
	}
	return json.Unmarshal(plaintext, v)
}

// The names of the cookies. Browsers take one with such a prefix from this host alone,
// over TLS, not from a sibling that shares its domain.
const (
	cookiePrefix  = "__Host-terraform-registry"
	sessionCookie = cookiePrefix
	attemptCookie = cookiePrefix + "-sign-in"
)

// maxCookie is what browsers keep of a name and a value together.
const maxCookie = 4096

// newCookie returns a cookie that no script reads. It is sent along when another site
// leads here, as the issuer does, but not when it sends a form.
func newCookie(name, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, MaxAge: int(life / time.Second),
		Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// EndSession is the cookie that ends a session in the browser.
func EndSession() *http.Cookie { return newCookie(sessionCookie, "", -time.Second) }

// EndAttempt is the cookie that ends an attempt to sign in.
func EndAttempt() *http.Cookie { return newCookie(attemptCookie, "", -time.Second) }

// RemoveCookies removes the cookies of this package from the header of a request, which
// others are to answer.
func RemoveCookies(h http.Header) {
	lines, found := h["Cookie"], false
	for _, line := range lines {
		found = found || strings.Contains(line, cookiePrefix)
	}
	if !found {
		return
	}
	var kept []string
	for _, line := range lines {
		var others []string
		for part := range strings.SplitSeq(line, ";") {
			part = strings.TrimSpace(part)
			if name, _, _ := strings.Cut(part, "="); part != "" && !ours(strings.TrimSpace(name)) {
				others = append(others, part)
			}
		}
		if len(others) > 0 {
			kept = append(kept, strings.Join(others, "; "))
		}
	}
	h.Del("Cookie")
	if len(kept) > 0 {
		h["Cookie"] = kept
	}
}

func ours(name string) bool { return name == sessionCookie || name == attemptCookie }
