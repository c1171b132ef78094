package module

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// SigningKey is the key that the registry signs releases with which their
// publisher did not sign.
type SigningKey struct {
	// File is an OpenPGP private key in ASCII armor, as `gpg --armor
	// --export-secret-keys` writes it. Placeholders work, such as
	// `{env.REGISTRY_KEY}`. The key should be an RSA one if Terraform 0.13 is to
	// verify its signatures.
	File string `json:"file,omitempty"`

	// Passphrase unlocks the file, if it is locked. Keep it out of the
	// configuration with a placeholder: `{env.REGISTRY_PASSPHRASE}` or
	// `{file./run/secrets/passphrase}`.
	Passphrase string `json:"passphrase,omitempty"`

	// Off means that the registry signs nothing. Releases without a signature of
	// their publisher are then offered by the network mirror only. Default:
	// `false`.
	Off bool `json:"off,omitempty"`
}

// signingPolicy is a SigningKey worked out: the registry's own key, or signer,
// which is nil if nothing is to be signed.
type signingPolicy struct {
	own    bool
	signer index.Signer
}

// read turns the options into a policy. The file is read now and not when it
// is needed, so that a wrong passphrase fails `caddy validate`.
func (k *SigningKey) read(repl *caddy.Replacer) (signingPolicy, error) {
	if k == nil {
		return signingPolicy{own: true}, nil
	}
	if k.Off {
		if k.File != "" || k.Passphrase != "" {
			return signingPolicy{}, errors.New("signing_key: it has a file and is off: choose one of them")
		}
		return signingPolicy{}, nil
	}
	file, err := repl.ReplaceOrErr(k.File, true, true)
	if err != nil {
		return signingPolicy{}, fmt.Errorf("signing_key: file: %w", err)
	}
	if file == "" {
		return signingPolicy{}, errors.New("signing_key: it has no file: leave signing_key out to use the registry's own key")
	}
	passphrase, err := repl.ReplaceOrErr(k.Passphrase, true, true)
	if err != nil {
		return signingPolicy{}, fmt.Errorf("signing_key: passphrase: %w", err)
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

const (
	// ownKeyName is the registry's own key in Caddy's storage. Every instance
	// that shares the storage signs with it.
	ownKeyName = "terraform_registry/signing_key.asc"

	// ownKeyPatience is for waiting until another instance has generated the
	// key, and for a storage that is slow.
	ownKeyPatience = 2 * time.Minute
)

// ownKey returns the registry's own key, which is generated when there is none.
func (a *App) ownKey() (*signing.Key, error) {
	ctx, cancel := context.WithTimeout(a.ctx, ownKeyPatience)
	defer cancel()
	key, err := a.loadOrGenerate(ctx, a.ctx.Storage())
	if err != nil {
		return nil, fmt.Errorf("the registry's signing key, %s in Caddy's storage: %w", ownKeyName, err)
	}
	return key, nil
}

func (a *App) loadOrGenerate(ctx context.Context, storage certmagic.Storage) (*signing.Key, error) {
	key, err := loadKey(ctx, storage)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := storage.Lock(ctx, ownKeyName); err != nil {
		return nil, fmt.Errorf("locking it: %w", err)
	}
	defer func() {
		// A lock that is left behind is found to be stale in time.
		if err := storage.Unlock(context.WithoutCancel(ctx), ownKeyName); err != nil {
			a.logger.Warn("unlocking the signing key", "error", err.Error())
		}
	}()
	// Another instance may have been first. A key replaced by another one would
	// invalidate every lock file that was written in between.
	key, err = loadKey(ctx, storage)
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
	if err := storage.Store(ctx, ownKeyName, armored); err != nil {
		return nil, fmt.Errorf("storing it: %w", err)
	}
	a.logger.Info("generated the registry's signing key", "key", key.PublicKey().ID)
	return key, nil
}

// loadKey loads the key. The error is fs.ErrNotExist only if there is none:
// one that cannot be read is for a human to look at, never to be replaced.
func loadKey(ctx context.Context, storage certmagic.Storage) (*signing.Key, error) {
	armored, err := storage.Load(ctx, ownKeyName)
	if err != nil {
		return nil, fmt.Errorf("loading it: %w", err)
	}
	key, err := signing.ReadKey(armored, "")
	if err != nil {
		return nil, fmt.Errorf("it is damaged, restore it or delete it to have a new one: %w", err)
	}
	return key, nil
}

// linkKeysName is the name of the link keys in Caddy's storage. Instances that
// share the storage share the keys.
const linkKeysName = "terraform_registry/link_keys.json"

// A linkKeyStore keeps the link keys in Caddy's storage.
type linkKeyStore struct{ storage certmagic.Storage }

// Load implements access.LinkKeyStore.
func (s linkKeyStore) Load(ctx context.Context) ([]byte, error) {
	return s.storage.Load(ctx, linkKeysName)
}

// Store implements access.LinkKeyStore.
func (s linkKeyStore) Store(ctx context.Context, document []byte) error {
	return s.storage.Store(ctx, linkKeysName, document)
}

// Lock implements access.LinkKeyStore.
func (s linkKeyStore) Lock(ctx context.Context) error {
	return s.storage.Lock(ctx, linkKeysName)
}

// Unlock implements access.LinkKeyStore.
func (s linkKeyStore) Unlock(ctx context.Context) error {
	return s.storage.Unlock(ctx, linkKeysName)
}

// Interface guards
var _ access.LinkKeyStore = linkKeyStore{}

// identity names a tree in the memo of its digests, and in signed links. Two trees
// that are read alike have the same name, whatever is made of what is read. It is
// the same at all instances that have the tree in the same place.
func (t tree) identity() string {
	named := struct {
		FileSystem  string
		Directories index.Directories
	}{t.fsName, t.directories}
	identity, _ := json.Marshal(named) // strings always encode
	return string(identity)
}

// store is where the memo of a tree is kept: among Caddy's data, but not in its
// storage, as it can be large and is of use to this machine alone.
func (t tree) store() index.Store {
	sum := sha256.Sum256([]byte(t.identity()))
	dir := filepath.Join(caddy.AppDataDir(), "terraform_registry", "memo")
	return memoFile(filepath.Join(dir, hex.EncodeToString(sum[:12])))
}

// A memoFile keeps a memo in a file of that path.
type memoFile string

// Load implements index.Store. What a crash has left behind goes on this
// occasion.
func (f memoFile) Load() ([]byte, error) {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(string(f)), f.temporary()))
	for _, name := range left {
		// A young one may be another process's, which is writing it.
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			os.Remove(name)
		}
	}
	return os.ReadFile(string(f))
}

// temporary is the pattern of the names a memo has before it is whole.
func (f memoFile) temporary() string { return "." + filepath.Base(string(f)) + "-*" }

// Save implements index.Store. A crash, or a full disk, leaves the old memo.
func (f memoFile) Save(memo []byte) error {
	dir := filepath.Dir(string(f))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(dir, f.temporary()) // which only the owner may read
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // it is gone by then if all went well
	_, err = temporary.Write(memo)
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), string(f))
}

// Interface guards
var _ index.Store = memoFile("")
