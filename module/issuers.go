package module

import (
	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
)

// issuers are the OpenID Connect issuers in use, by URL. They outlive the
// configurations that use them: their keys stay cached if the configuration is
// reloaded while an issuer is down, and so does the discovery that logins need.
var issuers = caddy.NewUsagePool()

// A pooledIssuer needs no clean-up: its fetches end by themselves.
type pooledIssuer struct{ *oidc.Issuer }

// Destruct implements caddy.Destructor.
func (pooledIssuer) Destruct() error { return nil }

// acquireIssuer returns the issuer with the URL, which must be released with
// releaseIssuer. Nothing is fetched from the issuer yet.
func acquireIssuer(url string) (*oidc.Issuer, error) {
	pooled, _, err := issuers.LoadOrNew(url, func() (caddy.Destructor, error) {
		issuer, err := oidc.NewIssuer(url)
		return pooledIssuer{issuer}, err
	})
	if err != nil {
		return nil, err
	}
	return pooled.(pooledIssuer).Issuer, nil
}

// releaseIssuer releases an issuer that was acquired. It ignores nil: Caddy also
// cleans up after a failed Provision, which must not release an issuer that other
// modules have acquired.
func releaseIssuer(issuer *oidc.Issuer) error {
	if issuer == nil {
		return nil
	}
	_, err := issuers.Delete(issuer.URL())
	return err
}

// Interface guards
var _ caddy.Destructor = pooledIssuer{}
