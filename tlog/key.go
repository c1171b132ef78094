package tlog

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
)

// A Key signs the checkpoints of a log. Its name is the origin of the log.
type Key struct {
	Signer   note.Signer
	Verifier note.Verifier

	// Public is the line by which others know the key: ORIGIN+HASH+KEY.
	Public string
}

// GenerateKey returns a new private key for the log with that origin, as a line of text.
func GenerateKey(origin string) (private string, err error) {
	if err := CheckOrigin(origin); err != nil {
		return "", err
	}
	private, _, err = note.GenerateKey(rand.Reader, origin)
	return private, err
}

// ReadKeys reads private keys, one a line. An error has no part of them.
func ReadKeys(lines string) (keys []Key, err error) {
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		k, err := ReadKey(line)
		switch {
		case err != nil:
			return nil, err
		case len(keys) > 0 && k.Signer.Name() != keys[0].Signer.Name():
			return nil, fmt.Errorf("it has keys of %s and of %s: a log has one name", keys[0].Signer.Name(), k.Signer.Name())
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errNoKey
	}
	return keys, nil
}

// ReadKey reads a private key, as GenerateKey writes it. The error has no part of it.
func ReadKey(private string) (k Key, err error) {
	private = strings.TrimSpace(private)
	// The form is PRIVATE+KEY+NAME+HASH+KEY, and the key has the algorithm before the seed.
	fields := strings.SplitN(private, "+", 5)
	if k.Signer, err = note.NewSigner(private); err != nil || len(fields) != 5 {
		return Key{}, errNoKey
	}
	seed, err := base64.StdEncoding.DecodeString(fields[4])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return Key{}, errNoKey
	}
	public := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	if k.Public, err = note.NewEd25519VerifierKey(k.Signer.Name(), public); err != nil {
		return Key{}, errNoKey
	}
	k.Verifier, err = note.NewVerifier(k.Public)
	return k, err
}

var errNoKey = errors.New("it is no key of a log, which begins with PRIVATE+KEY+")

// CheckOrigin returns an error for a text that cannot be the name of a log.
func CheckOrigin(origin string) error {
	switch {
	case origin == "":
		return errors.New("the name is empty")
	case !utf8.ValidString(origin) || strings.ContainsFunc(origin, unicode.IsSpace) || strings.Contains(origin, "+"):
		return fmt.Errorf("%q has a space or a +: name it like registry.example.com/v1/tlog", origin)
	case strings.Contains(origin, "://"):
		return fmt.Errorf("%q has a scheme: name it like registry.example.com/v1/tlog", origin)
	}
	return nil
}

// keyName is the file in a Store with the public key that its log was begun with, and the ID
// of the Store. Of several instances that begin a log, one creates it.
const keyName = "key"

// A StoredKey identifies the log of a Store.
type StoredKey struct {
	Public   string // the line by which others know the key
	Verifier note.Verifier

	// ID is of the Store. A log lies in one Store: with another one its key would sign other
	// entries.
	ID string
}

const idField = "id "

// ReadStoredKey returns the public key of the log in a store. Only fs.ErrNotExist means that
// the store has none.
func ReadStoredKey(ctx context.Context, s Store) (k StoredKey, err error) {
	content, err := s.Read(ctx, keyName)
	if err != nil {
		return k, err
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	k.Public = lines[0]
	k.Verifier, err = note.NewVerifier(k.Public)
	if err == nil && len(lines) > 1 {
		k.ID, _ = strings.CutPrefix(lines[1], idField)
	}
	if id, bad := hex.DecodeString(k.ID); err != nil || bad != nil || len(id) != 16 {
		return StoredKey{}, fmt.Errorf("the file %s of the log is damaged: move it away, and restore it", keyName)
	}
	return k, nil
}

// StoreKey makes a public key the one of a new log in a store, and gives the store its ID.
// The error is fs.ErrExist if there is a key.
func StoreKey(ctx context.Context, s Store, public string) error {
	id := newNonce()
	return s.Create(ctx, keyName, fmt.Appendf(nil, "%s\n%s%x\n", public, idField, id))
}

// ErrCreates means that a store creates a file that exists: several instances could write
// different entries with the same number.
var ErrCreates = errors.New("the file system or store of the log lets a file be created that exists, so that instances could write different entries: have the log in a folder of another one")

// CheckCreation returns ErrCreates if a store does not refuse to create the file with the key,
// which exists. The file gets the content that it has. If the store cannot be written to,
// nothing can be added anyway.
func CheckCreation(ctx context.Context, s Store) error {
	content, err := s.Read(ctx, keyName)
	if err == nil && s.Create(ctx, keyName, content) == nil {
		return ErrCreates
	}
	return err
}

// IsEmpty reports whether a store has nothing of a log but perhaps a key. What is left of one
// counts: its entries would become entries of a log that is begun in the store.
func IsEmpty(ctx context.Context, s Store) (bool, error) {
	names := []string{checkpointName, begunName}
	for _, folder := range []string{batchFolder, path.Dir(bundleName(0)), path.Dir(TilePath(fullTile(0, 0)))} {
		files, err := s.List(ctx, folder)
		if err != nil {
			return false, err
		}
		for _, name := range files {
			names = append(names, path.Join(folder, name))
		}
	}
	for _, name := range names {
		if _, err := s.Read(ctx, name); !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}
