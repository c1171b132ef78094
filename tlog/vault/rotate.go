package vault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// both is for how long a key signs beside the key that follows it. Whoever verifies a log less
// often must be told the new key.
const both = 400 * 24 * time.Hour

// maxSigning is how many keys may sign at a time: `verify` keeps no more.
const maxSigning = 8

// rotated are the keys that have followed the key in the folder of the log, as lines with the
// key and since when it signs, the oldest first. They are in the storage: who can write to
// the folder alone must not add a key.
const rotated = "keys"

// keys are all keys of a log, the newest first, also those that do not sign any more.
type keys []key

type key struct {
	line  string // by which others know it
	since time.Time
	until time.Time // zero: it is the newest
	note.Verifier
}

// keys returns the keys of the log that was begun with that one.
func (l Log) keys(ctx context.Context, first tlog.StoredKey) (all keys, err error) {
	content, err := l.Storage.Load(ctx, l.name(rotated))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("loading the keys of the log: %w", err)
	}
	all = keys{{line: first.Public, Verifier: first.Verifier}}
	for line := range strings.Lines(string(content)) {
		public, since, _ := strings.Cut(strings.TrimSpace(line), " ")
		k := key{line: public}
		if k.since, err = time.Parse(time.RFC3339, since); err == nil {
			k.Verifier, err = note.NewVerifier(public)
		}
		if err != nil || k.Name() != l.Origin {
			return nil, fmt.Errorf("%s in Caddy's storage is damaged: restore it", l.name(rotated))
		}
		all[0].until = k.since.Add(both)
		all = slices.Insert(all, 0, k)
	}
	return all, nil
}

func (all keys) has(line string) bool {
	return slices.ContainsFunc(all, func(k key) bool { return k.line == line })
}

// sign returns the keys that sign now, the newest first.
func (all keys) sign() (signing keys) {
	for _, k := range all {
		if k.until.IsZero() || time.Now().Before(k.until) {
			signing = append(signing, k)
		}
	}
	return signing
}

// public returns the keys for a log that is only read.
func (all keys) public() (public tlog.Keys) {
	for _, k := range all {
		public.Verifiers = append(public.Verifiers, k.Verifier)
	}
	for _, k := range all.sign() {
		public.Public = append(public.Public, tlog.PublicKey{Line: k.line, Until: k.until})
	}
	return public
}

// signing returns the keys that sign now, with their private keys.
func (l Log) signing(ctx context.Context, first tlog.StoredKey) (signing tlog.Keys, err error) {
	all, err := l.keys(ctx, first)
	if err != nil {
		return signing, err
	}
	signing = all.public()
	if l.Private != "" {
		configured, err := tlog.ReadKeys(l.Private)
		if err != nil {
			return signing, fmt.Errorf("the private key of the log: %w", err)
		}
		if !slices.ContainsFunc(configured, func(c tlog.Key) bool { return all.has(c.Public) }) {
			return signing, errors.New("the log was begun with another key: configure that one, or let the configured key follow it with tlog rotate")
		}
	}
	for _, k := range all.sign() {
		private, err := l.private(ctx, k)
		if err != nil {
			return signing, err
		}
		signing.Signers = append(signing.Signers, private.Signer)
	}
	return signing, nil
}

// private returns the private key of a key.
func (l Log) private(ctx context.Context, k key) (tlog.Key, error) {
	if l.Private != "" {
		configured, err := tlog.ReadKeys(l.Private)
		if err != nil {
			return tlog.Key{}, fmt.Errorf("the private key of the log: %w", err)
		}
		if i := slices.IndexFunc(configured, func(c tlog.Key) bool { return c.Public == k.line }); i >= 0 {
			return configured[i], nil
		}
	}
	name := l.privateName(k)
	private, err := l.Storage.Load(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && l.Private != "":
		return tlog.Key{}, fmt.Errorf("the log is signed by the key %s, too, which is not configured: add its private key as a line to the file, and reload", k.line)
	case errors.Is(err, fs.ErrNotExist):
		return tlog.Key{}, fmt.Errorf("the private key of the log is gone: restore %s in Caddy's storage", name)
	case err != nil:
		return tlog.Key{}, fmt.Errorf("loading the private key of the log: %w", err)
	}
	found, err := tlog.ReadKey(string(private))
	if err != nil || found.Public != k.line {
		return tlog.Key{}, fmt.Errorf("%s in Caddy's storage is damaged: restore it", name)
	}
	return found, nil
}

// Rotate has another key sign the log. It is the configured one that does not sign yet; if no key
// is configured, one is generated. The key before goes on to sign for 400 days. Instances that
// have the log open take over the key.
func (l Log) Rotate(ctx context.Context) (tlog.Keys, error) {
	o, err := l.Read(ctx)
	if err != nil {
		return tlog.Keys{}, err
	}
	l.Origin = o.Origin
	first, err := tlog.ReadStoredKey(ctx, l.Files)
	if err != nil {
		return tlog.Keys{}, err
	}
	all, err := l.keys(ctx, first)
	if err != nil {
		return tlog.Keys{}, err
	}
	if len(all.sign()) == maxSigning {
		return tlog.Keys{}, fmt.Errorf("%d keys sign the log, and more are not looked at: wait until %s, when the oldest one ceases", maxSigning, all.sign()[maxSigning-1].until.Format(time.DateOnly))
	}
	next, err := l.next(all)
	if err != nil {
		return tlog.Keys{}, err
	}
	return l.add(ctx, first, all, next)
}

// next returns the private key that is to sign.
func (l Log) next(all keys) (private string, err error) {
	if l.Private == "" {
		return tlog.GenerateKey(l.Origin)
	}
	for line := range strings.Lines(strings.TrimSpace(l.Private)) {
		k, err := tlog.ReadKey(line)
		if err != nil {
			return "", fmt.Errorf("the private key of the log: %w", err)
		}
		if !all.has(k.Public) {
			return strings.TrimSpace(line), nil
		}
	}
	return "", errors.New("the file with the private key has no other key: add one as a line, which tlog key --new prints, and reload all servers")
}

// add stores a key. Of two calls at the same time, one gets an error.
func (l Log) add(ctx context.Context, first tlog.StoredKey, all keys, private string) (tlog.Keys, error) {
	k, err := tlog.ReadKey(private)
	if err != nil {
		return tlog.Keys{}, err
	}
	if slices.ContainsFunc(all, func(known key) bool { return known.KeyHash() == k.Verifier.KeyHash() }) {
		return tlog.Keys{}, errors.New("the new key has the short hash of another one: take another key")
	}
	if l.Private == "" {
		// It is there before anyone is to sign by it.
		if err := l.Storage.Store(ctx, l.privateName(k.Verifier), []byte(private)); err != nil {
			return tlog.Keys{}, fmt.Errorf("storing the private key of the log: %w", err)
		}
	}
	var lines strings.Builder
	for _, known := range slices.Backward(all[:len(all)-1]) {
		fmt.Fprintf(&lines, "%s %s\n", known.line, known.since.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&lines, "%s %s\n", k.Public, time.Now().UTC().Format(time.RFC3339))
	if err := l.Storage.Store(ctx, l.name(rotated), []byte(lines.String())); err != nil {
		return tlog.Keys{}, fmt.Errorf("storing the keys of the log: %w", err)
	}
	select {
	case <-time.After(settled):
	case <-ctx.Done():
		return tlog.Keys{}, context.Cause(ctx)
	}
	now, err := l.keys(ctx, first)
	if err != nil {
		return tlog.Keys{}, err
	}
	if !now.has(k.Public) {
		if l.Private == "" {
			_ = l.Storage.Delete(ctx, l.privateName(k.Verifier))
		}
		return tlog.Keys{}, errors.New("another key was added at the same time: see tlog key")
	}
	return now.public(), nil
}
