package authenticate

import (
	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
)

// issuerPool has the OpenID Connect issuers in use, by URL. They outlive the
// configurations that use them: their keys stay cached if the configuration is
// reloaded while an issuer is down, and so does the discovery that logins need.
var issuerPool = caddy.NewUsagePool()

// A pooledIssuer needs no clean-up, since its fetches end by themselves.
type pooledIssuer struct{ *oidc.Issuer }

// Destruct implements caddy.Destructor.
func (pooledIssuer) Destruct() error { return nil }

// AcquireIssuer returns the issuer with the URL, which must be released with
// ReleaseIssuer. Nothing is fetched from the issuer yet.
func AcquireIssuer(url string) (*oidc.Issuer, error) {
	pooled, _, err := issuerPool.LoadOrNew(url, func() (caddy.Destructor, error) {
		issuer, err := oidc.NewIssuer(url)
		return pooledIssuer{issuer}, err
	})
	if err != nil {
		return nil, err
	}
	return pooled.(pooledIssuer).Issuer, nil
}

// ReleaseIssuer releases an acquired issuer. It ignores nil: Caddy also cleans up after
// a failed Provision, which must not release an issuer that other modules have
// acquired.
func ReleaseIssuer(issuer *oidc.Issuer) error {
	if issuer == nil {
		return nil
	}
	_, err := issuerPool.Delete(issuer.URL())
	return err
}

var _ caddy.Destructor = pooledIssuer{}
