package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

var errSignature = errors.New("none of the issuer's keys made its signature")

// asymmetric are the signature algorithms that a token may have. "none" and algorithms
// with a shared key are never allowed: anyone could sign a token with the public key
// used as a shared one (RFC 8725, 2.1).
var asymmetric = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512,
	jose.ES256, jose.ES384, jose.ES512,
	jose.PS256, jose.PS384, jose.PS512,
	jose.EdDSA,
}

// algorithms returns the signature algorithms that the issuer names. If it names none,
// it is the algorithm that every implementation has to support.
func (i *Issuer) algorithms(ctx context.Context) ([]string, error) {
	c, err := i.configured(ctx)
	if err != nil {
		return nil, err
	}
	var supported []string
	for _, a := range c.Algorithms {
		if slices.Contains(asymmetric, jose.SignatureAlgorithm(a)) {
			supported = append(supported, a)
		}
	}
	if len(supported) == 0 {
		supported = []string{oidc.RS256}
	}
	return supported, nil
}

// fetchKeys fetches the issuer's key set.
//
// oidc.RemoteKeySet is not used: it fetches the keys for every token with an
// unknown key ID or a wrong signature, keeps withdrawn keys until such a token
// arrives, gives up on a whole set for one malformed key, uses keys meant for
// encryption, and does not bound the size of the answer.
func (i *Issuer) fetchKeys() ([]jose.JSONWebKey, error) {
	c, err := i.configuration.get(context.Background()) // takes a bounded time, too
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := i.fetch(c.JWKSURL, &set); err != nil {
		return nil, err
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		// Keys of unknown kinds are skipped, the others remain usable (RFC 7517, 5).
		var key jose.JSONWebKey
		if err := json.Unmarshal(raw, &key); err == nil && key.IsPublic() && key.Use != "enc" {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no key that tokens could be verified with", c.JWKSURL)
	}
	return keys, nil
}

// verify returns the payload of a token that the issuer signed. If no cached key made
// the signature, a new key may have made it, so the keys are fetched again. The error
// is an ErrUnavailable if that fails and the token's key is not cached.
func (i *Issuer) verify(ctx context.Context, token *jose.JSONWebSignature) ([]byte, error) {
	keys, err := i.keys.get(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	payload, known := verifyWith(keys, token)
	if payload != nil {
		return payload, nil
	}
	keys, err = i.keys.renewed(ctx)
	if payload, _ := verifyWith(keys, token); payload != nil {
		return payload, nil
	}
	if err != nil && !known {
		return nil, unavailable(err)
	}
	return nil, errSignature
}

// verifyWith returns the token's payload if one of the keys made its signature, and
// whether the keys include the key named in the token. A token may name none.
func verifyWith(keys []jose.JSONWebKey, token *jose.JSONWebSignature) (payload []byte, known bool) {
	id := token.Signatures[0].Header.KeyID
	for k := range keys {
		if id != "" && keys[k].KeyID != id {
			continue
		}
		known = known || id != ""
		if payload, err := token.Verify(&keys[k]); err == nil {
			return payload, true
		}
	}
	return nil, known
}
