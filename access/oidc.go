package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

var (
	// ErrNotJWT means that a token is none of an issuer's at all. It may be of
	// another kind, that somebody else knows.
	ErrNotJWT = errors.New("the token is not a JWT")

	// ErrTokenRefused means that a token is no good here: it has expired, is not
	// for this registry, of another issuer, or forged. What it wraps says which.
	// Nothing in it is of use to whoever finds it in a log.
	ErrTokenRefused = errors.New("the token is refused")
)

// A Verifier tells who a token of an issuer is for, a JSON Web Token: of a user
// who logged in, or of a CI job. It is safe for concurrent use.
type Verifier struct {
	issuer   *Issuer
	audience []string
	claims   claimMapping
	verdicts verdicts
}

// VerifierOptions say which tokens of an issuer are good, and what they make
// their bearer. A claim within another is named with a dot, as
// `realm_access.roles`.
type VerifierOptions struct {
	// Audience are the names of this registry at the issuer, one of which a token
	// has to be for. At least one: an issuer's tokens for other services must
	// not be good for this one.
	Audience []string

	// SubjectClaim names the subject. It has to be a text. Empty: `sub`.
	SubjectClaim string

	// GroupsClaims name the subject's groups, each a text or a list of texts.
	// Groups with a comma or a space at either end are left out, as they could
	// not be told from others in a list separated by commas. Empty: `groups`.
	GroupsClaims []string

	// Require are claims a token must have, with the values that are allowed, in
	// which `*` matches any run of characters. It keeps out the tokens of others
	// where many share an issuer.
	Require map[string][]string
}

// NewVerifier returns a verifier of the issuer's tokens. The issuer is not asked
// for anything before there is a token to verify.
func NewVerifier(issuer *Issuer, o VerifierOptions) (*Verifier, error) {
	if len(o.Audience) == 0 {
		return nil, errors.New("audience: it is missing: without, tokens meant for other services would be good here")
	}
	if slices.Contains(o.Audience, "") {
		return nil, errors.New("audience: it is empty")
	}
	claims, err := newClaimMapping(o.SubjectClaim, o.GroupsClaims, o.Require)
	if err != nil {
		return nil, err
	}
	return &Verifier{issuer: issuer, audience: o.Audience, claims: claims}, nil
}

// Verify returns who the token is for; the groups are not to be changed. The
// error is an ErrNotJWT, ErrTokenRefused or ErrIssuerUnavailable. None of them
// has the token in it.
func (v *Verifier) Verify(ctx context.Context, token string) (Subject, error) {
	if strings.Count(token, ".") != 2 {
		return Subject{}, ErrNotJWT
	}
	digest, now := sha256.Sum256([]byte(token)), v.issuer.now()
	if s, ok := v.verdicts.get(digest, now); ok {
		return s, nil
	}
	if !hasJWTHeader(token) {
		return Subject{}, ErrNotJWT
	}
	verified, err := v.verify(ctx, token)
	if err != nil {
		return Subject{}, err
	}
	subject, err := v.subject(verified)
	if err != nil {
		return Subject{}, refused(err)
	}
	ends := now.Add(verdictLife)
	if verified.Expiry.Before(ends) {
		ends = verified.Expiry
	}
	v.verdicts.put(digest, verdict{subject, ends})
	return subject, nil
}

// verify checks everything about the token that does not depend on what it is
// wanted for: who issued it, and when it is valid.
func (v *Verifier) verify(ctx context.Context, token string) (*oidc.IDToken, error) {
	parsed, err := jose.ParseSignedCompact(token, asymmetric)
	if err != nil {
		return nil, refused(err)
	}
	// What a token says of its issuer is believed as far as not to ask this one
	// about another's: with several issuers each token is shown to all of them,
	// and one that is down must not stand in the way of the others.
	var claimed struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(parsed.UnsafePayloadWithoutVerification(), &claimed); err != nil {
		return nil, refused(errors.New("its claims are not the JSON that they should be"))
	}
	if claimed.Issuer != v.issuer.url {
		return nil, refused(errors.New("it is of another issuer"))
	}
	algorithms, err := v.issuer.algorithms(ctx)
	if err != nil {
		return nil, err
	}
	signature := &signatureCheck{issuer: v.issuer, token: parsed}
	verified, err := oidc.NewVerifier(v.issuer.url, signature, &oidc.Config{
		SkipClientIDCheck:    true, // there may be several, see subject
		SupportedSigningAlgs: algorithms,
		Now:                  v.issuer.now,
	}).Verify(ctx, token)
	switch {
	case errors.Is(signature.err, ErrIssuerUnavailable):
		return nil, signature.err
	case err != nil:
		return nil, refused(err)
	}
	return verified, nil
}

// subject returns who a verified token is for, if it is for this registry.
func (v *Verifier) subject(token *oidc.IDToken) (Subject, error) {
	if !slices.ContainsFunc(token.Audience, func(a string) bool { return slices.Contains(v.audience, a) }) {
		return Subject{}, fmt.Errorf("its audience is %q, not one of %q", token.Audience, v.audience)
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return Subject{}, errors.New("its claims are not the JSON that they should be")
	}
	return v.claims.apply(claims)
}

// A signatureCheck checks the signature of one token for go-oidc, which would
// lose of what kind an error is.
type signatureCheck struct {
	issuer *Issuer
	token  *jose.JSONWebSignature
	err    error
}

// VerifySignature implements oidc.KeySet. The token is parsed already.
func (c *signatureCheck) VerifySignature(ctx context.Context, _ string) ([]byte, error) {
	payload, err := c.issuer.verify(ctx, c.token)
	c.err = err
	return payload, err
}

// hasJWTHeader tells whether a token of three parts is meant to be a JWT, good
// or not.
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

func refused(cause error) error {
	return fmt.Errorf("%w: %w", ErrTokenRefused, cause)
}

// Interface guards
var _ oidc.KeySet = (*signatureCheck)(nil)
