package module

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/module/option"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// signingKeyName is the key of the registry's signing key in Caddy's storage, which instances
// share.
const signingKeyName = "terraform_registry/signing_key.asc"

// SigningKey is the key with which the registry signs releases that their
// publisher did not sign.
type SigningKey struct {
	// File is an OpenPGP private key in ASCII armor, as written by `gpg --armor
	// --export-secret-keys`. Placeholders are supported, such as
	// `{env.REGISTRY_KEY}`. It should be an RSA key if Terraform 0.13 has to verify
	// its signatures.
	File string `json:"file,omitempty"`

	// Passphrase decrypts the file, if it is encrypted. Keep it out of the
	// configuration with a placeholder: `{env.REGISTRY_PASSPHRASE}` or
	// `{file./run/secrets/passphrase}`.
	Passphrase string `json:"passphrase,omitempty"`

	// Off means that the registry signs nothing. Releases without a signature of
	// their publisher are then offered by the network mirror only. Default:
	// `false`.
	Off bool `json:"off,omitempty"`
}

// A signingPolicy determines how releases are signed: with the registry's key in
// Caddy's storage, with the signer, or, without either, not at all.
type signingPolicy struct {
	stored bool
	signer index.Signer
}

// read returns the policy for the options. It reads the file now and not when it is
// needed, so that `caddy validate` fails if the passphrase is wrong.
func (k *SigningKey) read(repl *caddy.Replacer) (signingPolicy, error) {
	if k == nil {
		return signingPolicy{stored: true}, nil
	}
	if k.Off {
		if k.File != "" || k.Passphrase != "" {
			return signingPolicy{}, errors.New("signing_key: it has a file and is off: choose one of them")
		}
		return signingPolicy{}, nil
	}
	// The passphrase must not get into the configuration.
	file, passphrase := k.File, k.Passphrase
	if err := option.Expand(repl, option.Scalar("signing_key: file", &file), option.Scalar("signing_key: passphrase", &passphrase)); err != nil {
		return signingPolicy{}, err
	}
	if file == "" {
		return signingPolicy{}, errors.New("signing_key: it has no file: leave signing_key out to use the registry's own key")
	}
	armored, err := os.ReadFile(file)
	if err != nil {
		return signingPolicy{}, fmt.Errorf("signing_key: %w", err)
	}
	key, err := signing.ReadKey(armored, passphrase)
	if err != nil {
		return signingPolicy{}, fmt.Errorf("signing_key: %s: %w", file, err)
	}
	return signingPolicy{signer: key}, nil
}

// signingKeyTimeout limits the wait for another instance to generate the key, and for a
// slow storage.
const signingKeyTimeout = 2 * time.Minute

// signingKey returns the registry's key in Caddy's storage. It generates a key if there
// is none.
func (a *App) signingKey() (*signing.Key, error) {
	ctx, cancel := context.WithTimeout(a.ctx, signingKeyTimeout)
	defer cancel()
	key, err := a.loadOrGenerateKey(ctx, storage.NewCalls(a.storage, 1))
	if err != nil {
		return nil, fmt.Errorf("the registry's signing key, %s in Caddy's storage: %w", signingKeyName, err)
	}
	return key, nil
}

func (a *App) loadOrGenerateKey(ctx context.Context, stored storage.Calls) (*signing.Key, error) {
	key, err := loadKey(ctx, stored)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	unlock, err := a.lock(ctx, signingKeyName)
	if err != nil {
		return nil, fmt.Errorf("locking it: %w", err)
	}
	defer unlock()
	// Another instance may have generated the key meanwhile, and mirrors may know it
	// already: they would refuse a different key.
	key, err = loadKey(ctx, stored)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	a.logger.Info("generating the registry's signing key, which is done once")
	if key, err = a.generate(); err != nil {
		return nil, fmt.Errorf("generating it: %w", err)
	}
	armored, err := key.Armor()
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	if err := stored.Store(ctx, signingKeyName, armored); err != nil {
		return nil, fmt.Errorf("storing it: %w", err)
	}
	a.logger.Info("generated the registry's signing key", "key", key.PublicKey().ID)
	return key, nil
}

// loadKey loads the signing key. The error wraps fs.ErrNotExist only if there is
// none. A key that cannot be read is never replaced: an operator has to decide.
func loadKey(ctx context.Context, stored storage.Calls) (*signing.Key, error) {
	armored, err := stored.Load(ctx, signingKeyName)
	if err != nil {
		return nil, fmt.Errorf("loading it: %w", err)
	}
	key, err := signing.ReadKey(armored, "")
	if errors.Is(err, signing.ErrClock) {
		return nil, err // the key must not be deleted
	}
	if err != nil {
		return nil, fmt.Errorf("it is damaged, restore it or delete it to have a new one: %w", err)
	}
	return key, nil
}

// Memo returns the store of a registry that serves a tree on the local disk, and the
// identity of the tree in it. The registry must run as the same user.
func Memo(directories source.Directories) (store memo.Store, identity string) {
	t := servedTree{source: source.Source{Directories: directories}}
	return t.memo(), t.identity()
}

// memo returns the file for the memo of a tree.
func (t servedTree) memo() storage.MemoFile { return storage.MemoOf(t.identity()) }

// Interface guards
var (
	_ access.LinkKeyStore = storage.LinkKeys{}
	_ tlog.Memo           = tlogMemo{}
)
