package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// Restore returns the options for a log that gets what it lacks from a copy of its folder. The
// folder may lack everything.
func (l Log) Restore(ctx context.Context, from tlog.Store) (tlog.Options, error) {
	k, err := tlog.ReadStoredKey(ctx, from)
	if errors.Is(err, fs.ErrNotExist) {
		return tlog.Options{}, errors.New("it is no copy of a log, since it has no file key")
	}
	if err != nil {
		return tlog.Options{}, err
	}
	if err := l.checkName(k); err != nil {
		return tlog.Options{}, err
	}
	own, err := tlog.ReadStoredKey(ctx, l.Files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		latest, _, err := l.latest(ctx)
		switch {
		case errors.Is(err, fs.ErrNotExist): // the storage knows the log by another name, or is lost
		case err != nil:
			return tlog.Options{}, fmt.Errorf("reading the newest checkpoint of the log: %w", err)
		case latest.Origin != k.Verifier.Name():
			return tlog.Options{}, fmt.Errorf("it is a copy of another log: its key is %s, and the log is called %s", k.Public, latest.Origin)
		}
	case err != nil:
		return tlog.Options{}, err
	case own.Public != k.Public:
		return tlog.Options{}, fmt.Errorf("it is a copy of another log: its key is %s, and the key of the log is %s", k.Public, own.Public)
	case own.ID != k.ID:
		return tlog.Options{}, errors.New("it is no copy of the folder of the log, but another folder with the same key: the two may have different entries")
	}
	return l.optionsFor(ctx, k)
}
