package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// A Renewal is a log that was begun in place of another one.
type Renewal struct {
	tlog.Options
	Before tlog.Checkpoint // the newest one of the other log
}

// successor is the name of the log that was begun in place of one.
const successor = "successor"

// Renew begins another log in place of the one that is lost or has forked: its first entry is the
// newest checkpoint, of the storage. The folder must have no log: files that are left of the old
// one are evidence, and are moved away by hand. An empty origin is the old one with the next number.
// Renew may be called again after it was cut off.
func (l Log) Renew(ctx context.Context, origin string) (r Renewal, err error) {
	l, signed, err := l.latest(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("there is no log to continue: Caddy's storage has no checkpoint of %s, and the server begins a log", l.Origin)
	case err != nil:
		return r, fmt.Errorf("reading the newest checkpoint of the log: %w", err)
	}
	s, err := tlog.NewSuccession(signed)
	if err != nil {
		return r, fmt.Errorf("the newest checkpoint of the log: %w", err)
	}
	r.Before = s.Checkpoint
	next := l
	if next.Origin = origin; origin == "" {
		next.Origin = nextOrigin(l.Origin)
	}
	next.Fixed = true
	if err := next.checkRenewal(l.Origin); err != nil {
		return r, err
	}
	k, err := tlog.ReadStoredKey(ctx, l.Files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err = next.checkUnused(ctx); err != nil {
			return r, err
		}
		if err = tlog.StoreSuccession(ctx, l.Files, s); err == nil {
			err = next.begin(ctx)
		}
	case err == nil && k.Verifier.Name() != next.Origin:
		err = fs.ErrExist
	case err == nil: // it was cut off
		err = tlog.StoreSuccession(ctx, l.Files, s)
	}
	if errors.Is(err, fs.ErrExist) {
		return r, errors.New("the folder has a log: move its files to another place, and keep them")
	}
	if err != nil {
		return r, fmt.Errorf("beginning the log: %w", err)
	}
	if r.Options, err = next.Open(ctx); err != nil {
		return r, err
	}
	if err := l.Storage.Store(ctx, l.name(successor), []byte(next.Origin)); err != nil {
		return r, fmt.Errorf("noting the new log in Caddy's storage: %w", err)
	}
	return r, nil
}

// latest returns the log that was begun last in place of a log, and its newest checkpoint. A log
// without one is not begun: that was cut off. The error is fs.ErrNotExist if no log has one.
func (l Log) latest(ctx context.Context) (_ Log, signed []byte, err error) {
	signed, err = l.Storage.Load(ctx, l.name("checkpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		var name []byte
		if name, err = l.Storage.Load(ctx, l.name(begunAs)); err == nil {
			l.Origin = string(name)
			signed, err = l.Storage.Load(ctx, l.name("checkpoint"))
		}
	}
	if err != nil {
		return l, nil, err
	}
	for {
		next := l
		name, err := l.Storage.Load(ctx, l.name(successor))
		if err == nil {
			next.Origin = string(name)
			name, err = l.Storage.Load(ctx, next.name("checkpoint"))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return l, signed, nil
		}
		if err != nil {
			return l, nil, err
		}
		l, signed = next, name
	}
}

// checkUnused returns an error for the name of a log that was begun before, perhaps in place of
// which the present one was begun: the storage has other entries of that name.
func (l Log) checkUnused(ctx context.Context) error {
	_, err := l.Storage.Load(ctx, l.name("checkpoint"))
	switch {
	case err == nil:
		return fmt.Errorf("%s is the name of another log: give the new one a name of its own, with --origin", l.Origin)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading the newest checkpoint of the log: %w", err)
	}
	return nil
}

func (l Log) checkRenewal(old string) error {
	if err := tlog.CheckOrigin(l.Origin); err != nil {
		return err
	}
	if l.Origin == old {
		return fmt.Errorf("%s is the name of the old log: give the new one another", old)
	}
	if l.Private == "" {
		return nil
	}
	keys, err := tlog.ReadKeys(l.Private)
	if err != nil {
		return err
	}
	if name := keys[0].Verifier.Name(); name != l.Origin {
		return fmt.Errorf("the configured key is the key of %s: configure one of %s, or none", name, l.Origin)
	}
	return nil
}

var numbered = regexp.MustCompile(`^(.+)-([0-9]{1,6})$`)

// nextOrigin returns the name with the next number.
func nextOrigin(origin string) string {
	if m := numbered.FindStringSubmatch(origin); m != nil {
		n, _ := strconv.Atoi(m[2])
		return fmt.Sprintf("%s-%d", m[1], n+1)
	}
	return origin + "-2"
}
