package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// Errors of Client.Redeem, in addition to ErrUnavailable and ErrRefused.
var (
	// ErrCode means that the issuer does not accept the code: it has been used already,
	// has expired, or belongs to another login.
	ErrCode = errors.New("the issuer does not accept the code")

	// ErrClient means that the issuer and the registry do not agree on the client: its
	// ID, its secret, or its permissions. An operator has to correct the configuration.
	ErrClient = errors.New("the issuer does not accept the client of the registry")
)

// A Client logs people in at an issuer with their browser, by the authorization code
// grant of OpenID Connect with PKCE. Its fields must not change after its first use.
type Client struct {
	Issuer *Issuer

	// ID of the client at the issuer, and its secret if it has one.
	ID, Secret string

	// Authorization and Token replace the issuer's endpoints unless they are empty.
	Authorization, Token string

	// Scopes to request in addition to `openid`.
	Scopes []string

	// Verifiers verify tokens of the issuer and determine their subject. Of those with the
	// audience of a token, the first that accepts it decides. At least one is required.
	Verifiers []*Verifier
}

// A Challenge binds an answer of the issuer to one login. The browser brings back the
// state, and the ID token contains the nonce; only this registry knows the other
// fields.
type Challenge struct {
	State, Nonce, Verifier string

	// RedirectURI is the URL to which the browser returns.
	RedirectURI string
}

// AuthorizationURL returns the URL at which a browser logs in. With again, the issuer
// asks for a user even if one is logged in there. The error is an ErrUnavailable.
func (c *Client) AuthorizationURL(ctx context.Context, to Challenge, again bool) (string, error) {
	config, err := c.config(ctx, to.RedirectURI)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(to.Verifier), oidc.Nonce(to.Nonce)}
	if again {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
	}
	return config.AuthCodeURL(to.State, options...), nil
}

func (c *Client) config(ctx context.Context, redirectURI string) (*oauth2.Config, error) {
	authorization, token, err := c.Issuer.Endpoints(ctx)
	if err != nil {
		return nil, err
	}
	endpoint := oauth2.Endpoint{AuthURL: cmp.Or(c.Authorization, authorization), TokenURL: cmp.Or(c.Token, token), AuthStyle: oauth2.AuthStyleInParams}
	if c.Secret != "" {
		configuration, err := c.Issuer.configured(ctx)
		if err != nil {
			return nil, err
		}
		// Without a list, the header is the default (OpenID Connect Discovery, 3).
		if methods := configuration.AuthMethods; len(methods) == 0 || slices.Contains(methods, "client_secret_basic") {
			endpoint.AuthStyle = oauth2.AuthStyleInHeader
		}
	}
	scopes := c.Scopes
	if !slices.Contains(scopes, oidc.ScopeOpenID) {
		scopes = append([]string{oidc.ScopeOpenID}, scopes...)
	}
	return &oauth2.Config{ClientID: c.ID, ClientSecret: c.Secret, Endpoint: endpoint, RedirectURL: redirectURI, Scopes: scopes}, nil
}

// An Identity is a subject, and the time until which its token proves it.
type Identity struct {
	Subject access.Subject
	Expiry  time.Time
}

// Redeem returns the identity of the person who has logged in, for the code that the
// browser has brought back.
//
// The ID token proves that the code belongs to this login: it has the nonce, and this
// client as its audience. `terraform login` would store the access token. If a verifier
// has its audience, the person has its subject and groups here, too. With several
// verifiers the person is refused if that one refuses the access token. Otherwise the same
// claims of the ID token count. The identity ends with the access token, whose life the
// issuer states, or else with the ID token.
func (c *Client) Redeem(ctx context.Context, code string, of Challenge) (Identity, error) {
	config, err := c.config(ctx, of.RedirectURI)
	if err != nil {
		return Identity{}, err
	}
	tokens, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, c.Issuer.exchanger()), code, oauth2.VerifierOption(of.Verifier))
	if err != nil {
		return Identity{}, exchangeFailed(err)
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok || raw == "" {
		return Identity{}, fmt.Errorf("%w: it sends no ID token: request the scope openid", ErrClient)
	}
	login, err := c.Verifiers[0].verify(ctx, raw)
	if err != nil {
		return Identity{}, err
	}
	if err := c.checkLogin(login, of.Nonce, tokens.AccessToken); err != nil {
		return Identity{}, refused(err)
	}
	token, err := c.Verifiers[0].verifyJWT(ctx, tokens.AccessToken)
	if errors.Is(err, ErrUnavailable) {
		return Identity{}, err
	}
	if err == nil {
		if verifiers := c.verifiersFor(token); len(verifiers) > 0 {
			identity, err := firstClaimed(verifiers, token, token.Expiry)
			// With several verifiers a refusal is final: another one could accept the ID token.
			// A single one may find claims in the ID token that the access token lacks.
			if err == nil || len(c.Verifiers) > 1 {
				return identity, err
			}
		}
	}
	expiry := login.Expiry
	if tokens.ExpiresIn > 0 {
		expiry = c.Issuer.now().Add(time.Duration(tokens.ExpiresIn) * time.Second)
	}
	if verifiers := c.verifiersFor(login); len(verifiers) > 0 {
		return firstClaimed(verifiers, login, expiry)
	}
	// Where access tokens are for the registry, ID tokens are only for the client. Which of
	// several audiences the access token would have had is not known then: a person can ask
	// for an access token without one, so as to be judged by another verifier.
	if c.hasSeveralAudiences() {
		for _, v := range c.Verifiers {
			if _, err := v.claimed(login); err != nil {
				return Identity{}, refused(err)
			}
		}
	}
	return firstClaimed(c.Verifiers, login, expiry)
}

// hasSeveralAudiences reports whether not all verifiers are for the same tokens.
func (c *Client) hasSeveralAudiences() bool {
	return slices.ContainsFunc(c.Verifiers, func(v *Verifier) bool { return !slices.Equal(v.audience, c.Verifiers[0].audience) })
}

// verifiersFor returns the verifiers that have the audience of a token. The options of
// the others are for other tokens.
func (c *Client) verifiersFor(token *oidc.IDToken) (list []*Verifier) {
	for _, v := range c.Verifiers {
		if v.isMeant(token) {
			list = append(list, v)
		}
	}
	return list
}

// firstClaimed returns the identity by the first of the verifiers that accepts the claims
// of a verified token.
func firstClaimed(verifiers []*Verifier, token *oidc.IDToken, expiry time.Time) (Identity, error) {
	var err error
	for _, v := range verifiers {
		var subject access.Subject
		if subject, err = v.claimed(token); err == nil {
			return Identity{subject, expiry}, nil
		}
	}
	return Identity{}, refused(err)
}

// checkLogin checks that a verified ID token is the answer to one login of this client
// (OpenID Connect Core, 3.1.3.7).
func (c *Client) checkLogin(login *oidc.IDToken, nonce, accessToken string) error {
	var claims struct {
		Party string `json:"azp"`
	}
	if err := login.Claims(&claims); err != nil {
		return errors.New("its claims are not the expected JSON")
	}
	switch {
	case !slices.Contains(login.Audience, c.ID):
		return fmt.Errorf("the audience of the ID token is %q, not the client %q", login.Audience, c.ID)
	case claims.Party != "" && claims.Party != c.ID, claims.Party == "" && len(login.Audience) > 1:
		return errors.New("the ID token was issued to another client")
	case nonce == "" || login.Nonce != nonce:
		return errors.New("the ID token belongs to another login")
	case login.AccessTokenHash != "" && login.VerifyAccessToken(accessToken) != nil:
		return errors.New("the ID token belongs to another access token")
	}
	return nil
}

// exchangeFailed returns the error for a failed exchange of a code. The error has only
// the status and the code of the answer, since the rest may be a secret.
func exchangeFailed(err error) error {
	var answer *oauth2.RetrieveError
	switch {
	case !errors.As(err, &answer):
		var failed *url.Error
		if errors.As(err, &failed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return unavailable(err)
		}
		return unavailable(errors.New("its token endpoint does not answer with tokens"))
	case answer.ErrorCode == "invalid_grant":
		return ErrCode
	case answer.Response.StatusCode >= http.StatusInternalServerError, answer.Response.StatusCode == http.StatusTooManyRequests:
		return unavailable(fmt.Errorf("its token endpoint answers %d", answer.Response.StatusCode))
	}
	return fmt.Errorf("%w: its token endpoint answers %d %q", ErrClient, answer.Response.StatusCode, answer.ErrorCode)
}

// EndSessionURL returns the URL at which a browser ends the session of its user at the
// issuer and is redirected back. It is empty if the issuer has no such URL, or does not
// answer in time.
func (c *Client) EndSessionURL(ctx context.Context, back string) string {
	configuration, err := c.Issuer.configured(ctx)
	if err != nil {
		return ""
	}
	u, err := SecureURL(configuration.EndSessionURL)
	if err != nil {
		return ""
	}
	query := u.Query()
	query.Set("client_id", c.ID)
	query.Set("post_logout_redirect_uri", back)
	u.RawQuery = query.Encode()
	return u.String()
}

// exchanger returns the HTTP client for codes and secrets. It follows no redirects.
func (i *Issuer) exchanger() *http.Client {
	c := *i.client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}
