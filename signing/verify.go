package signing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Verify returns the key that made the binary detached signature of document, as
// clients determine it. If the sub-key that signed expires earlier than the key,
// Expires is the time of the sub-key. A time in the past means that the key has expired
// since it signed. The error wraps ErrUnknownKey, ErrKeyExpired, ErrSignedInFuture or,
// for anything else that a client would refuse, ErrBadSignature.
func (r *Keyring) Verify(document, signature []byte) (PublicKey, error) {
	if len(signature) == 0 {
		return PublicKey{}, fmt.Errorf("%w: the signature file is empty: sign again", ErrBadSignature)
	}
	if len(signature) > maxSize {
		return PublicKey{}, fmt.Errorf("%w: the signature file is larger than %d bytes: sign again", ErrBadSignature, maxSize)
	}
	now := r.now()
	config := &packet.Config{Time: func() time.Time { return now }}
	var expired *PublicKey
	var refusal error
	for _, m := range r.members {
		made, _, err := openpgp.VerifyDetachedSignature(m.read(), bytes.NewReader(document), bytes.NewReader(signature), config)
		if errors.Is(err, pgperrors.ErrUnknownIssuer) {
			continue
		}
		key, err := m.judge(made, err, now)
		switch {
		case errors.Is(err, ErrKeyExpired):
			// Another key may have signed, too; OpenTofu looks for such a key.
			refusal = err
		case err != nil:
			return PublicKey{}, err
		case key.Expires.IsZero() || key.Expires.After(now):
			return key, nil
		case expired == nil:
			expired = &key
		}
	}
	switch {
	case expired != nil:
		return *expired, nil
	case refusal != nil:
		return PublicKey{}, refusal
	}
	return PublicKey{}, unknown(signature)
}

// judge returns the answer of Verify for the library's result with this key.
func (m member) judge(made *packet.Signature, err error, now time.Time) (PublicKey, error) {
	switch {
	case err == nil, errors.Is(err, pgperrors.ErrKeyExpired):
		// Terraform accepts a signature by an expired key and OpenTofu does so
		// with a warning, whenever it was made (checklist 56).
	case errors.Is(err, pgperrors.ErrSignatureExpired) && made.CreationTime.After(now):
		// As below; with an expired key the library reports only this error.
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return PublicKey{}, fmt.Errorf("%w: the time it was made for, or the key's own signature, is over (%w): sign again", ErrBadSignature, err)
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return PublicKey{}, fmt.Errorf("%w: key %s is revoked: sign again with another key", ErrBadSignature, m.public.ID)
	default:
		return PublicKey{}, unreadable(err)
	}
	if made.CreationTime.After(now) {
		return PublicKey{}, fmt.Errorf("%w (%s): set the clocks right, or sign again", ErrSignedInFuture, made.CreationTime.UTC().Format(time.RFC3339))
	}
	key := m.public
	for _, signer := range m.read().KeysByIdUsage(*made.IssuerKeyId, packet.KeyFlagSign) {
		end := expiry(signer.PublicKey, signer.SelfSignature)
		if !end.IsZero() && (key.Expires.IsZero() || end.Before(key.Expires)) {
			key.Expires = end
		}
	}
	if !key.Expires.IsZero() && made.CreationTime.After(key.Expires) {
		return PublicKey{}, fmt.Errorf("%w: key %s expired %s, signed %s", ErrKeyExpired, key.ID,
			key.Expires.Format(time.RFC3339), made.CreationTime.UTC().Format(time.RFC3339))
	}
	return key, nil
}

// CheckSignature returns an error unless signature is a binary detached signature that
// clients can read. Neither the key nor the document matters. The error wraps
// ErrBadSignature.
func CheckSignature(signature []byte) error {
	_, err := issuersOf(signature)
	return err
}

// Issuer returns the ID of the first key that a detached signature names: of the sub-key, if
// one has signed. It is empty if the signature names none.
func Issuer(signature []byte) string {
	issuers, err := issuersOf(signature)
	if err != nil {
		return ""
	}
	return issuers[0]
}

// unknown returns the error for a signature that none of the keys made. Clients skip
// other bytes, too: for bytes that no key could verify the error is another one.
func unknown(signature []byte) error {
	issuers, err := issuersOf(signature)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: key ID %s", ErrUnknownKey, strings.Join(issuers, ", "))
}

// issuersOf returns the IDs of the keys that are named in a detached signature.
func issuersOf(signature []byte) (issuers []string, err error) {
	reason := errors.New("it names no key")
	packets := packet.NewOpaqueReader(bytes.NewReader(signature))
	for {
		next, err := packets.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, unreadable(err)
		}
		if next.Tag != tagSignature {
			return nil, unreadable(errors.New("it is not a detached signature"))
		}
		parsed, err := next.Parse()
		var unsupported pgperrors.UnsupportedError
		if errors.As(err, &unsupported) {
			reason = err
			continue
		}
		if err != nil {
			return nil, unreadable(err)
		}
		if signature, ok := parsed.(*packet.Signature); ok && signature.IssuerKeyId != nil {
			issuers = append(issuers, fmt.Sprintf("%016X", *signature.IssuerKeyId))
		}
	}
	if len(issuers) == 0 {
		return nil, fmt.Errorf("%w: clients do not know this kind of signature (%w): sign again with `gpg --detach-sign --digest-algo SHA256`",
			ErrBadSignature, reason)
	}
	return issuers, nil
}

// unreadable says what to do about a signature that the library refused.
func unreadable(err error) error {
	var wrong pgperrors.SignatureError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%w: the document is not the one that was signed (%w): sign it again, or copy both files again", ErrBadSignature, err)
	}
	return fmt.Errorf("%w: it is not a binary detached signature (%w): make one with `gpg --detach-sign`, without --armor", ErrBadSignature, err)
}
