// Package vault keeps what belongs to a transparency log and must not lie in its folder: the
// private key, and the newest checkpoint. So who can write to the folder can neither sign
// nor roll the log back unnoticed.
package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"

	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// A Storage keeps values by keys that have slashes. Only fs.ErrNotExist means that there is
// none.
type Storage interface {
	Load(ctx context.Context, key string) ([]byte, error)
	Store(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
}

// A Log is a log in its store, with what a storage has of it.
type Log struct {
	Files   tlog.Store
	Storage Storage

	// Origin is the name of a new log. If it is Fixed, another log is refused.
	Origin string
	Fixed  bool

	// Private is the private key; empty: it is in the storage, and generated for a new log.
	Private string
}

// Read returns the options for a log that is only read. The error is fs.ErrNotExist if there
// is no log yet.
func (l Log) Read(ctx context.Context) (tlog.Options, error) {
	public, verifier, err := tlog.StoredKey(ctx, l.Files)
	if err != nil {
		return tlog.Options{}, err
	}
	if l.Fixed && verifier.Name() != l.Origin {
		return tlog.Options{}, fmt.Errorf("the log in this folder is called %s, and the configuration calls it %s: the name is fixed when a log is begun", verifier.Name(), l.Origin)
	}
	l.Origin = verifier.Name()
	return tlog.Options{Origin: l.Origin, Public: public, Verifiers: []note.Verifier{verifier}, Store: l.Files, Anchor: anchor{l}}, nil
}

// Open returns the options for a log that is added to. If there is no log yet, it begins one.
func (l Log) Open(ctx context.Context) (tlog.Options, error) {
	o, err := l.Read(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		if err = l.begin(ctx); err == nil {
			o, err = l.Read(ctx)
		}
	}
	if err != nil {
		return tlog.Options{}, err
	}
	l.Origin = o.Origin
	private := []byte(l.Private)
	if l.Private == "" {
		name := l.privateName(o.Verifiers[0])
		private, err = l.Storage.Load(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return tlog.Options{}, fmt.Errorf("the private key of the log is gone: restore %s in Caddy's storage", name)
		case err != nil:
			return tlog.Options{}, fmt.Errorf("loading the private key of the log: %w", err)
		}
	}
	k, err := tlog.ReadKey(string(private))
	if err != nil {
		return tlog.Options{}, fmt.Errorf("the private key of the log: %w", err)
	}
	if k.Public != o.Public {
		return tlog.Options{}, errors.New("the log was begun with another key: configure that one")
	}
	o.Signers = []note.Signer{k.Signer}
	return o, nil
}

// begin gives a store without a log its key, by a file whose creation fails if it exists. The
// private key is stored before, under a name of its own: of several instances that begin a
// log at the same time, the one whose file is created has the key that counts.
func (l Log) begin(ctx context.Context) error {
	empty, err := tlog.IsEmpty(ctx, l.Files)
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	_, err = anchor{l}.Load(ctx)
	switch {
	case err == nil || !empty:
		return fmt.Errorf("%w: its folder has no file key any more", tlog.ErrBehind)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading the newest checkpoint of the log: %w", err)
	}
	private, generated := l.Private, l.Private == ""
	if generated {
		if private, err = tlog.GenerateKey(l.Origin); err != nil {
			return err
		}
	}
	k, err := tlog.ReadKey(private)
	if err != nil {
		return err
	}
	if generated {
		if err := l.Storage.Store(ctx, l.privateName(k.Verifier), []byte(private)); err != nil {
			return fmt.Errorf("storing the private key of the log: %w", err)
		}
	}
	err = tlog.StoreKey(ctx, l.Files, k.Public)
	if errors.Is(err, fs.ErrExist) {
		if generated {
			_ = l.Storage.Delete(ctx, l.privateName(k.Verifier)) // another instance was first
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	return nil
}

func (l Log) name(file string) string {
	return path.Join("terraform_registry", "tlog", url.QueryEscape(l.Origin), file)
}

func (l Log) privateName(v note.Verifier) string {
	return l.name(fmt.Sprintf("key-%08x", v.KeyHash()))
}

// An anchor keeps the newest checkpoint.
type anchor struct{ log Log }

// Load implements tlog.Anchor.
func (a anchor) Load(ctx context.Context) ([]byte, error) {
	return a.log.Storage.Load(ctx, a.log.name("checkpoint"))
}

// Store implements tlog.Anchor.
func (a anchor) Store(ctx context.Context, checkpoint []byte) error {
	return a.log.Storage.Store(ctx, a.log.name("checkpoint"), checkpoint)
}
