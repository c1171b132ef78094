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
	"time"

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

	// Private has the private keys, one a line; empty: they are in the storage, and the key of a
	// new log is generated.
	Private string
}

// Read returns the options for a log that is only read. The error is fs.ErrNotExist if there
// is no log yet.
func (l Log) Read(ctx context.Context) (tlog.Options, error) {
	k, err := l.stored(ctx)
	if err != nil {
		return tlog.Options{}, err
	}
	return l.optionsFor(ctx, k)
}

// stored returns the key of the log in the store. The error is fs.ErrNotExist if there is no log yet.
func (l Log) stored(ctx context.Context) (tlog.StoredKey, error) {
	k, err := tlog.ReadStoredKey(ctx, l.Files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return k, l.withoutKey(ctx)
	case err != nil:
		return k, err
	}
	return k, l.checkName(k)
}

func (l Log) optionsFor(ctx context.Context, k tlog.StoredKey) (tlog.Options, error) {
	l.Origin = k.Verifier.Name()
	keys, err := l.keys(ctx, k)
	if err != nil {
		return tlog.Options{}, err
	}
	return tlog.Options{Origin: l.Origin, Keys: keys.public(), Store: l.Files, Anchor: anchor{log: l, folder: k.ID}}, nil
}

// checkName returns an error for a log that has another name than the configuration says.
func (l Log) checkName(k tlog.StoredKey) error {
	if name := k.Verifier.Name(); l.Fixed && name != l.Origin {
		return fmt.Errorf("the log in this folder is called %s, and the configuration calls it %s: the name is fixed when a log is begun", name, l.Origin)
	}
	return nil
}

// withoutKey returns the error of a store without a key: fs.ErrNotExist if no log was begun in
// it.
func (l Log) withoutKey(ctx context.Context) error {
	empty, err := tlog.IsEmpty(ctx, l.Files)
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	signed, err := l.IsSigned(ctx)
	switch {
	case signed || !empty:
		return fmt.Errorf("%w: its folder has no file key any more, or the log lies in another folder", tlog.ErrBehind)
	case err != nil:
		return err
	}
	return fs.ErrNotExist
}

// IsSigned reports whether the storage has a checkpoint of the log: the log has been begun in some
// folder, perhaps under another name.
func (l Log) IsSigned(ctx context.Context) (bool, error) {
	_, _, err := l.latest(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the newest checkpoint of the log: %w", err)
	}
	return true, nil
}

// begunAs is the name with which the log of a registry was begun, if the registry has another
// name now. Without it, nothing would tell that a folder which is lost had a log.
const begunAs = "begun-as"

// noteBegunAs notes with which name the log was begun.
func (l Log) noteBegunAs(ctx context.Context, name string) error {
	noted, err := l.Storage.Load(ctx, l.name(begunAs))
	if err == nil && string(noted) == name {
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = l.Storage.Store(ctx, l.name(begunAs), []byte(name))
	}
	if err != nil {
		return fmt.Errorf("noting the name of the log in Caddy's storage: %w", err)
	}
	return nil
}

// Open returns the options for a log that is added to. If there is no log yet, it begins one.
func (l Log) Open(ctx context.Context) (tlog.Options, error) {
	kept := &keeper{Storage: l.Storage}
	l.Storage = kept
	k, err := l.stored(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		if err = l.begin(ctx); err == nil {
			k, err = l.stored(ctx)
		}
	}
	if err != nil {
		return tlog.Options{}, err
	}
	if err := tlog.CheckCreation(ctx, l.Files); err != nil {
		return tlog.Options{}, err
	}
	if name := k.Verifier.Name(); name != l.Origin {
		if err := l.noteBegunAs(ctx, name); err != nil {
			return tlog.Options{}, err
		}
		l.Origin = name
	}
	signing := func(ctx context.Context, before tlog.Keys) (tlog.Keys, error) { return l.signing(ctx, k, before) }
	keys, err := signing(ctx, tlog.Keys{})
	if err != nil {
		return tlog.Options{}, err
	}
	return tlog.Options{Origin: l.Origin, Keys: keys, Rotated: signing, Store: l.Files, Anchor: anchor{l, k.ID, kept}}, nil
}

// begin gives a store without a log its key, by a file whose creation fails if it exists. The
// private key is stored before, under a name of its own: of several instances that begin a
// log at the same time, the one whose file is created has the key that counts.
func (l Log) begin(ctx context.Context) error {
	private := l.Private
	if private == "" {
		var err error
		if private, err = l.generated(ctx); err != nil {
			return err
		}
	}
	keys, err := tlog.ReadKeys(private)
	if err != nil {
		return err
	}
	k := keys[0]
	name := l.privateName(k.Verifier)
	if l.Private == "" {
		if err := l.Storage.Store(ctx, name, []byte(private)); err != nil {
			return fmt.Errorf("storing the private key of the log: %w", err)
		}
	}
	err = tlog.StoreKey(ctx, l.Files, k.Public)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the log: %w", err)
	}
	if l.Private != "" {
		return nil
	}
	if err != nil { // another instance was first, perhaps with the same key
		stored, err := tlog.ReadStoredKey(ctx, l.Files)
		if err != nil {
			return err
		}
		if stored.Public != k.Public {
			_ = l.Storage.Delete(ctx, name)
		}
	}
	_ = l.Storage.Delete(ctx, l.name(newKey)) // a new log would use it, too
	return nil
}

// newKey is the private key of a log that is not begun yet. If the folder cannot be written
// to, the next attempt uses it again.
const newKey = "key-new"

func (l Log) generated(ctx context.Context) (string, error) {
	private, err := l.Storage.Load(ctx, l.name(newKey))
	if err == nil {
		return string(private), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("loading the private key of the log: %w", err)
	}
	text, err := tlog.GenerateKey(l.Origin)
	if err != nil {
		return "", err
	}
	if err := l.Storage.Store(ctx, l.name(newKey), []byte(text)); err != nil {
		return "", fmt.Errorf("storing the private key of the log: %w", err)
	}
	return text, nil
}

func (l Log) name(file string) string {
	return path.Join("terraform_registry", "tlog", url.QueryEscape(l.Origin), file)
}

func (l Log) privateName(v note.Verifier) string {
	return l.name(fmt.Sprintf("key-%08x", v.KeyHash()))
}

// An anchor keeps the newest checkpoint, and which folder has the log of this name: two folders
// with one key would be two logs.
type anchor struct {
	log    Log
	folder string  // the ID of the folder
	keys   *keeper // if the storage has no folder of the log, it becomes this one; nil: the log is only read
}

// Load implements tlog.Anchor. A Log calls it before it signs.
func (a anchor) Load(ctx context.Context) ([]byte, error) {
	if err := a.check(ctx); err != nil {
		return nil, err
	}
	return a.log.Storage.Load(ctx, a.log.name("checkpoint"))
}

// Store implements tlog.Anchor.
func (a anchor) Store(ctx context.Context, checkpoint []byte) error {
	return a.log.Storage.Store(ctx, a.log.name("checkpoint"), checkpoint)
}

// settled is for how long an instance that has named its folder waits for another one that
// is about to name another: a storage cannot tell who was first.
const settled = time.Second

// check checks that the log lies in this folder.
func (a anchor) check(ctx context.Context) error {
	name := a.log.name("folder")
	folder, err := a.log.Storage.Load(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		if a.keys == nil {
			return nil
		}
		if err := a.keys.storeAgain(ctx); err != nil {
			return fmt.Errorf("storing the keys of the log again, which Caddy's storage has lost: %v", err)
		}
		if err = a.log.Storage.Store(ctx, name, []byte(a.folder)); err == nil {
			select {
			case <-time.After(settled):
				folder, err = a.log.Storage.Load(ctx, name)
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
	}
	switch {
	case err != nil:
		// An absence is no answer here: the value was stored a moment ago.
		return fmt.Errorf("asking Caddy's storage for the folder of the log: %v", err)
	case string(folder) != a.folder:
		return fmt.Errorf("%w here: %s lies in another folder, says %s in Caddy's storage", tlog.ErrBehind, a.log.Origin, name)
	}
	return nil
}
