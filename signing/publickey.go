package signing

import (
	"errors"
	"time"
)

// A PublicKey is an OpenPGP public key in the form in which clients receive it.
type PublicKey struct {
	// ID is the long key ID: 16 upper-case hexadecimal digits. No client reads it, but
	// other tools show it (checklist 47).
	ID string

	// Armor is the key in ASCII armor, exactly one block: clients read only
	// the first block of a string (checklist 43).
	Armor string

	// UserID names the owner of the key, such as "Acme <releases@acme.example>". Anyone
	// can claim any name.
	UserID string

	// Created is the time at which the key was made.
	Created time.Time

	// Expires is the time at which the key expires; zero means never.
	Expires time.Time
}

// The errors of Keyring.Verify.
var (
	// ErrUnknownKey: none of the keys made the signature. Clients say
	// "authentication signature from unknown issuer".
	ErrUnknownKey = errors.New("the signature is by a key that is not in the namespace's keys")

	// ErrKeyExpired: the key had expired when it made the signature.
	ErrKeyExpired = errors.New("the key had already expired when it signed")

	// ErrSignedInFuture: the signature is dated in the future; Terraform reports it as
	// expired (checklist 56).
	ErrSignedInFuture = errors.New("the signature is dated in the future")

	// ErrBadSignature: the bytes are not a binary detached signature, or not one
	// over this document (checklist 55).
	ErrBadSignature = errors.New("the signature does not match")
)
