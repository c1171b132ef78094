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
	own, err := tlog.ReadStoredKey(ctx, l.Files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return tlog.Options{}, err
	case own.Public != k.Public:
		return tlog.Options{}, fmt.Errorf("it is a copy of another log: its key is %s, and the key of the log is %s", k.Public, own.Public)
	case own.ID != k.ID:
		return tlog.Options{}, errors.New("it is no copy of the folder of the log, but another folder with the same key: the two may have different entries")
	}
	return l.optionsFor(k)
}
