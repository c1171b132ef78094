// Package signin signs people in with their browser: they log in at an OpenID Connect
// issuer, and a cookie stores their identity.
//
// Nothing is kept on the server. An attempt to sign in and a session are cookies. They
// are encrypted and authenticated with keys that all instances of a registry share (see
// [access.Sealer]), so any instance can continue the work of another.
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

// Errors of Finish, in addition to the errors of oidc.Client.Redeem.
var (
	// ErrNoAttempt means that this browser has not begun to sign in, has begun too long
	// ago, or has already finished. Another site may have sent it here.
	ErrNoAttempt = errors.New("the browser is not signing in")

	// ErrDeclined means that the issuer has not let the person in, or that the person
	// has cancelled.
	ErrDeclined = errors.New("the issuer has not let anyone in")

	// ErrTooLarge means that the session does not fit into a cookie.
	ErrTooLarge = errors.New("the names of the subject and its groups are too long for a cookie")
)

const (
	// attemptLife is the time that people have for logging in.
	attemptLife = 10 * time.Minute

	// maxSession is the maximum length of a session. It is half the time for which a
	// key is certain to open the data that it has sealed, see access.Sealer.
	maxSession = 12 * time.Hour
)

// A SignIn signs people in to one registry. Its fields must not change after its first
// use.
type SignIn struct {
	Client *oidc.Client
	Sealer *access.Sealer

	// Rules determine which groups a session has to remember. A session ends if the
	// rules name other groups.
	Rules *access.Rules

	// AllGroups has a session remember all groups: the groups in rules are made of them.
	AllGroups bool

	// Scope is the configuration that a session depends on besides the client and the
	// groups in rules, such as the claims that identify a subject. Sessions of another
	// scope are anonymous.
	Scope string

	// Now is the clock. Nil means the system's clock.
	Now func() time.Time
}

func (s *SignIn) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// purpose returns the purpose for which a cookie is sealed.
func (s *SignIn) purpose(cookie string) string {
	scope := []any{cookie, s.Client.Issuer.URL(), s.Client.ID, s.Scope, s.Rules.Groups()}
	if s.AllGroups {
		scope = append(scope, "all groups")
	}
	text, _ := json.Marshal(scope) // strings always encode
	return string(text)
}

// An attempt is the data that this registry needs after a person has logged in at the
// issuer.
type attempt struct {
	Challenge oidc.Challenge `json:"c"`
	To        string         `json:"t"`
	Ends      int64          `json:"e"`
}

// Begin returns the URL at which a browser logs in, and the cookie of this attempt. The
// browser returns to redirectURI, and should then go to the page to. With again, the
// issuer asks for a user even if one is logged in there.
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

// Finish handles the request with which the issuer has sent a browser back. It returns
// the cookie of a new session and the page to go to. The page is empty if this browser
// has not begun to sign in. Whatever the error, the attempt has ended: see EndAttempt.
func (s *SignIn) Finish(r *http.Request) (to string, session *http.Cookie, err error) {
	query := r.URL.Query()
	a, err := s.attemptOf(r, query)
	if err != nil {
		return "", nil, err
	}
	// Another issuer's answer is an attack on both issuers (RFC 9207). Many issuers do
	// not say who they are.
	if issuer := query.Get("iss"); issuer != "" && issuer != s.Client.Issuer.URL() {
		return a.To, nil, fmt.Errorf("%w: another issuer has answered", oidc.ErrRefused)
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

// attemptOf returns the attempt that a browser has begun, when it comes back.
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

// A session is the identity of a person, as far as rules depend on it.
type session struct {
	Subject string   `json:"s"`
	Groups  []string `json:"g,omitempty"`
	Ends    int64    `json:"e"`
}

// newSession returns the cookie of a new session. It does not depend on earlier
// sessions.
func (s *SignIn) newSession(of oidc.Identity) (*http.Cookie, error) {
	now := s.now()
	life := min(of.Expiry.Sub(now), maxSession)
	if life < time.Second {
		return nil, fmt.Errorf("%w: it has expired", oidc.ErrRefused)
	}
	groups := of.Subject.Groups
	if !s.AllGroups {
		groups = s.Rules.NamedGroups(groups)
	}
	sealed, err := s.seal(sessionCookie, session{of.Subject.ID, groups, now.Add(life).Unix()})
	if err != nil {
		return nil, err
	}
	return newCookie(sessionCookie, sealed, life), nil
}

// Subject returns the subject of the session to which a request belongs. It is
// anonymous if the request has no session, or a session that has ended. The error means
// that sessions cannot be read at the moment.
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

// The names of the cookies. Browsers accept a cookie with such a prefix only from this
// host itself, over TLS, and not from a sibling in its domain.
const (
	cookiePrefix  = "__Host-terraform-registry"
	sessionCookie = cookiePrefix
	attemptCookie = cookiePrefix + "-sign-in"
)

// maxCookie is the maximum size of a name and a value together that browsers accept.
const maxCookie = 4096

// newCookie returns a cookie that scripts cannot read. Browsers send it if another site
// links or redirects here, as the issuer does, but not if another site sends a form.
func newCookie(name, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, MaxAge: int(life / time.Second),
		Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// HasSession reports whether a request has the cookie of a session, which may have ended or be
// unreadable.
func HasSession(r *http.Request) bool {
	_, err := r.Cookie(sessionCookie)
	return err == nil
}

// EndSession returns the cookie that ends a session in the browser.
func EndSession() *http.Cookie { return newCookie(sessionCookie, "", -time.Second) }

// EndAttempt returns the cookie that ends an attempt to sign in.
func EndAttempt() *http.Cookie { return newCookie(attemptCookie, "", -time.Second) }

// RemoveCookies removes the cookies of this package from the header of a request that
// other handlers answer.
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
			if name, _, _ := strings.Cut(part, "="); part != "" && !isOwnCookie(strings.TrimSpace(name)) {
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

func isOwnCookie(name string) bool { return name == sessionCookie || name == attemptCookie }
