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
// newest checkpoint, of the storage. The folder must have no log: what is left of the old one
// is evidence, and is moved away by hand. An empty origin is the old one with the next number.
// Renew may be called again after it was cut off.
func (l Log) Renew(ctx context.Context, origin string) (r Renewal, err error) {
	for { // of a log that was renewed before
		name, err := l.Storage.Load(ctx, l.name(successor))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return r, fmt.Errorf("asking Caddy's storage for the log: %v", err)
		}
		l.Origin = string(name)
	}
	signed, err := l.Storage.Load(ctx, l.name("checkpoint"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("Caddy's storage has no checkpoint of %s: there is no log to continue, and the server begins one", l.Origin)
	case err != nil:
		return r, fmt.Errorf("reading the newest checkpoint of the log: %v", err)
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
	k, err := tlog.ReadKey(l.Private)
	if err != nil {
		return err
	}
	if name := k.Verifier.Name(); name != l.Origin {
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
