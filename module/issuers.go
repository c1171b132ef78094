package module

import (
	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
)

// issuers are the OpenID Connect issuers in use, by their URL. They outlive the
// configurations that use them: a reload while an issuer is down does not forget
// its keys, and a login asks for no configuration that is known already.
var issuers = caddy.NewUsagePool()

// A pooledIssuer has nothing to give back: what it fetches ends by itself.
type pooledIssuer struct{ *oidc.Issuer }

// Destruct implements caddy.Destructor.
func (pooledIssuer) Destruct() error { return nil }

// acquireIssuer returns the issuer with the URL, to be given back with
// releaseIssuer. It does not ask it for anything.
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

// releaseIssuer gives back one that was acquired; nil is none. Caddy cleans up
// after a failed Provision too, and must not give back what others have.
func releaseIssuer(issuer *oidc.Issuer) error {
	if issuer == nil {
		return nil
	}
	_, err := issuers.Delete(issuer.URL())
	return err
}

// Interface guards
var _ caddy.Destructor = pooledIssuer{}
