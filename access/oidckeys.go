package access

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

// asymmetric are the signature algorithms a token may have. Never "none", and
// none of those whose key both sides know: a public key is no secret, and would
// sign any token (RFC 8725, 2.1).
var asymmetric = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512,
	jose.ES256, jose.ES384, jose.ES512,
	jose.PS256, jose.PS384, jose.PS512,
	jose.EdDSA,
}

// algorithms returns those the issuer says it signs with. One that says nothing
// uses the one that all have to know.
func (i *Issuer) algorithms(ctx context.Context) ([]string, error) {
	c, err := i.configured(ctx)
	if err != nil {
		return nil, err
	}
	var known []string
	for _, a := range c.Algorithms {
		if slices.Contains(asymmetric, jose.SignatureAlgorithm(a)) {
			known = append(known, a)
		}
	}
	if len(known) == 0 {
		known = []string{oidc.RS256}
	}
	return known, nil
}

func (i *Issuer) fetchKeys() ([]jose.JSONWebKey, error) {
	c, err := i.configuration.get(context.Background()) // takes a bounded time too
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
		// Keys of kinds not known here are none of ours, the others remain good
		// (RFC 7517, 5). So are those for encryption.
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

// verify returns the payload of a token that the issuer signed. A signature
// that no known key made may be by a new one, so the issuer is asked again. The
// error is an ErrIssuerUnavailable if it could not be, and the key is not known.
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

// verifyWith returns the token's payload if one of the keys made its signature,
// and whether the key it names is among them. A token may name none.
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
