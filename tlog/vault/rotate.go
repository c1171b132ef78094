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

// overlap is for how long a key signs beside the key that follows it. Whoever verifies a log less
// often must be told the new key.
const overlap = 400 * 24 * time.Hour

// laterKeys are the keys that have followed the key in the folder of the log, as lines with the
// key and since when it signs, the oldest first. They are in the storage: who can write to
// the folder alone must not add a key.
const laterKeys = "keys"

// keys are all keys of a log, the newest first, also those that do not sign any more.
type keys []key

type key struct {
	tlog.PublicKey
	since time.Time
	note.Verifier
}

// keys returns the keys of the log that was begun with that one.
func (l Log) keys(ctx context.Context, first tlog.StoredKey) (all keys, err error) {
	content, err := l.Storage.Load(ctx, l.name(laterKeys))
	if errors.Is(err, fs.ErrNotExist) {
		err = l.neverRotated(ctx, first)
	}
	if err != nil {
		return nil, fmt.Errorf("loading the keys of the log: %w", err)
	}
	all = keys{{PublicKey: tlog.PublicKey{Line: first.Public}, Verifier: first.Verifier}}
	for line := range strings.Lines(string(content)) {
		public, since, _ := strings.Cut(strings.TrimSpace(line), " ")
		k := key{PublicKey: tlog.PublicKey{Line: public}}
		if k.since, err = time.Parse(time.RFC3339, since); err == nil {
			k.Verifier, err = note.NewVerifier(public)
		}
		if err != nil || k.Name() != l.Origin {
			return nil, fmt.Errorf("%s in Caddy's storage is damaged: restore it", l.name(laterKeys))
		}
		all[0].Until = k.since.Add(overlap)
		all = slices.Insert(all, 0, k)
	}
	return all, nil
}

// neverRotated returns an error if the newest checkpoint is signed by another key of the log than the
// first one. Without that key, readers who know it alone would take the log for another one.
func (l Log) neverRotated(ctx context.Context, first tlog.StoredKey) error {
	signed, err := l.Storage.Load(ctx, l.name("checkpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	n, err := note.Open(signed, note.VerifierList(first.Verifier))
	if unverified, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
		n, err = unverified.Note, nil
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(n.UnverifiedSigs, func(s note.Signature) bool { return s.Name == l.Origin }) {
		folder, err := l.Storage.Load(ctx, l.name("folder"))
		if errors.Is(err, fs.ErrNotExist) || err == nil && string(folder) != first.ID {
			return nil // of the log in another folder, which the anchor tells
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("the log is signed by a later key, and %s in Caddy's storage is gone: restore it", l.name(laterKeys))
	}
	return nil
}

func (all keys) has(line string) bool {
	return slices.ContainsFunc(all, func(k key) bool { return k.Line == line })
}

// current returns the keys that sign now, the newest first.
func (all keys) current() (signing keys) {
	for _, k := range all {
		if k.Until.IsZero() || time.Now().Before(k.Until) {
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
	for _, k := range all.current() {
		public.Public = append(public.Public, k.PublicKey)
	}
	return public
}

// signing returns the keys that sign now, with their private keys. If they are the same as before,
// their private keys are not loaded again.
func (l Log) signing(ctx context.Context, first tlog.StoredKey, before tlog.Keys) (signing tlog.Keys, err error) {
	all, err := l.keys(ctx, first)
	if err != nil {
		return signing, err
	}
	if signing = all.public(); slices.Equal(signing.Public, before.Public) {
		return before, nil
	}
	configured, err := l.configured()
	if err != nil {
		return signing, err
	}
	if configured != nil && !slices.ContainsFunc(configured, func(c tlog.Key) bool { return all.has(c.Public) }) {
		return signing, errors.New("the log was begun with another key: configure that one, or let the configured key follow it with tlog rotate")
	}
	for _, k := range all.current() {
		private, err := l.private(ctx, k, configured)
		if err != nil {
			return signing, err
		}
		signing.Signers = append(signing.Signers, private.Signer)
	}
	return signing, nil
}

// configured returns the private keys of the configuration; nil: it has none.
func (l Log) configured() ([]tlog.Key, error) {
	if l.Private == "" {
		return nil, nil
	}
	configured, err := tlog.ReadKeys(l.Private)
	if err != nil {
		return nil, fmt.Errorf("the private key of the log: %w", err)
	}
	return configured, nil
}

// private returns the private key of a key.
func (l Log) private(ctx context.Context, k key, configured []tlog.Key) (tlog.Key, error) {
	if i := slices.IndexFunc(configured, func(c tlog.Key) bool { return c.Public == k.Line }); i >= 0 {
		return configured[i], nil
	}
	name := l.privateName(k)
	private, err := l.Storage.Load(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && configured != nil:
		return tlog.Key{}, fmt.Errorf("the log is signed by the key %s, too, which is not configured: add its private key as a line to the file, and reload", k.Line)
	case errors.Is(err, fs.ErrNotExist):
		return tlog.Key{}, fmt.Errorf("the private key of the log is gone: restore %s in Caddy's storage", name)
	case err != nil:
		return tlog.Key{}, fmt.Errorf("loading the private key of the log: %w", err)
	}
	found, err := tlog.ReadKey(string(private))
	if err != nil || found.Public != k.Line {
		return tlog.Key{}, fmt.Errorf("%s in Caddy's storage is damaged: restore it", name)
	}
	return found, nil
}

// Rotate has another key sign the log. It is the configured one that does not sign yet; if no key
// is configured, one is generated. The key before goes on to sign for 400 days. Instances that
// have the log open take over the key.
func (l Log) Rotate(ctx context.Context) (tlog.Keys, error) {
	first, err := l.stored(ctx)
	if err != nil {
		return tlog.Keys{}, err
	}
	l.Origin = first.Verifier.Name()
	all, err := l.keys(ctx, first)
	if err != nil {
		return tlog.Keys{}, err
	}
	if signing := all.current(); len(signing) == tlog.MaxKeys {
		return tlog.Keys{}, fmt.Errorf("%d keys sign the log, and more are not looked at: wait until %s, when the oldest one ceases", tlog.MaxKeys, signing[len(signing)-1].Until.Format(time.DateOnly))
	}
	next, err := l.next(ctx, all)
	if err != nil {
		return tlog.Keys{}, err
	}
	return l.add(ctx, first, all, next)
}

// next returns the key that is to sign. A generated one is stored before anyone is to sign by it.
func (l Log) next(ctx context.Context, all keys) (tlog.Key, error) {
	configured, err := l.configured()
	if err != nil {
		return tlog.Key{}, err
	}
	if configured != nil {
		i := slices.IndexFunc(configured, func(c tlog.Key) bool { return !all.has(c.Public) })
		if i < 0 {
			return tlog.Key{}, errors.New("the file with the private key has no other key: add one as a line, which tlog key --new prints, and reload all servers")
		}
		return configured[i], nil
	}
	private, err := tlog.GenerateKey(l.Origin)
	if err != nil {
		return tlog.Key{}, err
	}
	k, err := tlog.ReadKey(private)
	if err != nil {
		return tlog.Key{}, err
	}
	if err := l.Storage.Store(ctx, l.privateName(k.Verifier), []byte(private)); err != nil {
		return tlog.Key{}, fmt.Errorf("storing the private key of the log: %w", err)
	}
	return k, nil
}

// add stores a key. Of two calls at the same time, one gets an error.
func (l Log) add(ctx context.Context, first tlog.StoredKey, all keys, k tlog.Key) (tlog.Keys, error) {
	if slices.ContainsFunc(all, func(known key) bool { return known.KeyHash() == k.Verifier.KeyHash() }) {
		return tlog.Keys{}, errors.New("the new key has the short hash of another one: take another key")
	}
	var lines strings.Builder
	for _, known := range slices.Backward(all[:len(all)-1]) {
		fmt.Fprintf(&lines, "%s %s\n", known.Line, known.since.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&lines, "%s %s\n", k.Public, time.Now().UTC().Format(time.RFC3339))
	if err := l.Storage.Store(ctx, l.name(laterKeys), []byte(lines.String())); err != nil {
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
