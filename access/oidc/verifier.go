// Package oidc authenticates clients by tokens of OpenID Connect issuers: JSON
// Web Tokens of users who logged in and of CI jobs.
//
// An [Issuer] is asked for its configuration and its keys when they are first needed,
// and not more often than a few times a minute, whatever tokens clients present. A
// [Verifier] checks a token's signature, issuer, audience, lifetime and claims, and
// returns the [access.Subject] to which it was issued.
package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
)

// ErrRefused means that a JSON Web Token is not accepted: it has expired, has another
// audience or another issuer, or is forged. The error that wraps it says which, and is
// safe to appear in a log.
var ErrRefused = errors.New("the token is refused")

// errNotJWT means that the token is of another kind. Another authenticator may accept
// it.
var errNotJWT = errors.New("the token is not a JWT")

const (
	// maxVerdicts limits the cache. A registry with more tokens in use at a time
	// verifies some of them again.
	maxVerdicts = 4096

	// verdictLife is the maximum time for which a verdict is cached. After it, a key
	// whose withdrawal is known no longer verifies any token.
	verdictLife = 5 * time.Minute
)

// A Verifier verifies the tokens of an issuer that are meant for this registry.
// It is safe for concurrent use.
type Verifier struct {
	issuer   *Issuer
	audience []string
	claims   claimMapping

	// Verdicts about valid tokens, by SHA-256 of the token: verifying a signature takes
	// a hundred times as long as all the rest. Refusals are not cached, as made-up
	// tokens would evict the valid ones.
	verdicts cache.Cache[[sha256.Size]byte, verdict]
}

// A verdict about a valid token holds until a time by the clock of the issuer.
type verdict struct {
	subject access.Subject
	until   time.Time
}

// Options determine which tokens of an issuer are accepted, and which subject they
// identify. A claim within another claim is named with a dot, as in
// `realm_access.roles`.
type Options struct {
	// Audience lists the names of this registry at the issuer. A token must have one of
	// them as its audience. Required: the issuer's tokens for other services must not
	// be accepted.
	Audience []string

	// SubjectClaim is the claim with the subject, which must be a string. Default:
	// `sub`.
	SubjectClaim string

	// GroupsClaims are the claims with the subject's groups, each a string or a list of
	// strings. Groups with a comma or with a space at either end are left out, since in
	// a list separated by commas they could look like other groups. Default: `groups`.
	GroupsClaims []string

	// Require has claims that a token must have, with their accepted values. A `*` in a
	// value matches any run of characters. The claims exclude the tokens of other users
	// of the issuer.
	Require map[string][]string
}

// NewVerifier returns a verifier of the issuer's tokens. The error is about the
// options: nothing is fetched from the issuer before there is a token to verify.
func NewVerifier(issuer *Issuer, o Options) (*Verifier, error) {
	if len(o.Audience) == 0 {
		return nil, errors.New("audience: it is missing: without it, tokens meant for other services would be accepted")
	}
	if slices.Contains(o.Audience, "") {
		return nil, errors.New("audience: it is empty")
	}
	claims, err := newClaimMapping(o.SubjectClaim, o.GroupsClaims, o.Require)
	if err != nil {
		return nil, err
	}
	return &Verifier{
		issuer: issuer, audience: o.Audience, claims: claims,
		verdicts: cache.Cache[[sha256.Size]byte, verdict]{MaxEntries: maxVerdicts},
	}, nil
}

// Verify returns the subject of the token, whose groups must not be changed. The
// error is ErrRefused, ErrUnavailable, or another one for a token that is not a
// JSON Web Token. None of them contains the token.
func (v *Verifier) Verify(ctx context.Context, token string) (access.Subject, error) {
	digest := sha256.Sum256([]byte(token))
	if known, ok := v.verdicts.Get(digest); ok && v.issuer.now().Before(known.until) {
		return known.subject, nil
	}
	verified, err := v.verifyJWT(ctx, token)
	if err != nil {
		return access.Subject{}, err
	}
	subject, err := v.subject(verified)
	if err != nil {
		return access.Subject{}, refused(err)
	}
	now := v.issuer.now()
	v.verdicts.Put(digest, verdict{subject, now.Add(min(verdictLife, verified.Expiry.Sub(now)))}, cache.UntilEvicted)
	return subject, nil
}

// verifyJWT does the same as verify, for a token that may be of another kind.
func (v *Verifier) verifyJWT(ctx context.Context, token string) (*oidc.IDToken, error) {
	if strings.Count(token, ".") != 2 || !hasJWTHeader(token) {
		return nil, errNotJWT
	}
	return v.verify(ctx, token)
}

// verify checks the issuer, the signature and the lifetime of a token.
func (v *Verifier) verify(ctx context.Context, token string) (*oidc.IDToken, error) {
	parsed, err := jose.ParseSignedCompact(token, asymmetric)
	if err != nil {
		return nil, refused(err)
	}
	// The unverified issuer only decides whether to ask this issuer at all. With
	// several issuers, every token is presented to each of them, and an issuer that is
	// down must not affect the tokens of the others.
	var claimed struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(parsed.UnsafePayloadWithoutVerification(), &claimed); err != nil {
		return nil, refused(errors.New("its claims are not the expected JSON"))
	}
	if claimed.Issuer != v.issuer.url {
		return nil, refused(errors.New("it is of another issuer"))
	}
	algorithms, err := v.issuer.algorithms(ctx)
	if err != nil {
		return nil, err
	}
	keys := &parsedKeySet{issuer: v.issuer, token: parsed}
	verified, err := oidc.NewVerifier(v.issuer.url, keys, &oidc.Config{
		SkipClientIDCheck:    true, // there may be several, see subject
		SupportedSigningAlgs: algorithms,
		Now:                  v.issuer.now,
	}).Verify(ctx, token)
	switch {
	case errors.Is(keys.err, ErrUnavailable):
		return nil, keys.err
	case err != nil:
		return nil, refused(err)
	}
	return verified, nil
}

// subject returns the subject of a verified token that is meant for this registry.
func (v *Verifier) subject(token *oidc.IDToken) (access.Subject, error) {
	if !v.isMeant(token) {
		return access.Subject{}, fmt.Errorf("its audience is %q, not one of %q", token.Audience, v.audience)
	}
	return v.claimed(token)
}

// isMeant reports whether a token has one of the audiences of the verifier.
func (v *Verifier) isMeant(token *oidc.IDToken) bool {
	return slices.ContainsFunc(token.Audience, func(a string) bool { return slices.Contains(v.audience, a) })
}

// claimed returns the subject of the claims of a verified token, for any audience.
func (v *Verifier) claimed(token *oidc.IDToken) (access.Subject, error) {
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return access.Subject{}, errors.New("its claims are not the expected JSON")
	}
	return v.claims.apply(claims)
}

// A parsedKeySet verifies the signature of one token for go-oidc. It keeps the error
// itself, since go-oidc keeps only the text of it.
type parsedKeySet struct {
	issuer *Issuer
	token  *jose.JSONWebSignature
	err    error
}

// VerifySignature implements oidc.KeySet. It ignores its token, which is already
// parsed.
func (s *parsedKeySet) VerifySignature(ctx context.Context, _ string) ([]byte, error) {
	payload, err := s.issuer.verify(ctx, s.token)
	s.err = err
	return payload, err
}

// hasJWTHeader reports whether a token of three parts begins with the header of a
// JSON Web Token.
func hasJWTHeader(token string) bool {
	first, _, _ := strings.Cut(token, ".")
	header, err := base64.RawURLEncoding.DecodeString(first)
	if err != nil {
		return false
	}
	var h struct {
		Algorithm *string `json:"alg"`
	}
	return json.Unmarshal(header, &h) == nil && h.Algorithm != nil
}

func refused(cause error) error { return fmt.Errorf("%w: %w", ErrRefused, cause) }

// Interface guards
var _ oidc.KeySet = (*parsedKeySet)(nil)
