package signing

import (
	"errors"
	"time"
)

// A PublicKey is one OpenPGP public key as clients are given it.
type PublicKey struct {
	// ID is the long key ID: 16 upper-case hexadecimal digits. No client reads
	// it, other tools show it (checklist 47).
	ID string

	// Armor is the key in ASCII armor, exactly one block: clients read only
	// the first block of a string (checklist 43).
	Armor string

	// UserID is who the key says it belongs to, such as "Acme <releases@acme.example>".
	// Everyone can claim to be anyone there.
	UserID string

	// Created is when the key was made.
	Created time.Time

	// Expires is when the key stops being valid; zero means never.
	Expires time.Time
}

// What Keyring.Verify finds wrong with a signature.
var (
	// ErrUnknownKey: none of the keys made the signature. Clients say
	// "authentication signature from unknown issuer".
	ErrUnknownKey = errors.New("the signature is by a key that is not in the namespace's keys")

	// ErrKeyExpired: the key had expired when it made the signature.
	ErrKeyExpired = errors.New("the key had already expired when it signed")

	// ErrSignedInFuture: the signature's time has not come yet; Terraform
	// reports it as expired (checklist 56).
	ErrSignedInFuture = errors.New("the signature is dated in the future")

	// ErrBadSignature: the bytes are not a binary detached signature, or not one
	// over this document (checklist 55).
	ErrBadSignature = errors.New("the signature does not match")
)
