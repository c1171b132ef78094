package tlog

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// A Succession is the first entry of a log that was begun in place of another one. Its text is
//
//	continues 2026-11-26T08:00:00Z log registry.example.com/v1/tlog 52 checkpoint:… 9f…
//
// with the name and the size of the log before, and its newest checkpoint, in base64 with its
// signatures. Who knows the key of that log checks them: the entry says what its new log puts
// itself in place of, and not that it may.
type Succession struct {
	Time time.Time
	Checkpoint
	Signed []byte // the checkpoint with its signatures, which were not checked
	Nonce  [16]byte
}

const (
	successionEvent = "continues"
	successionKind  = "log"
	checkpointField = "checkpoint:"
)

// NewSuccession returns the first entry of a log in place of the log of a checkpoint.
func NewSuccession(signed []byte) (s Succession, err error) {
	s = Succession{Time: time.Now().UTC().Truncate(time.Second), Signed: signed, Nonce: newNonce()}
	if s.Checkpoint, err = unverified(signed); err == nil {
		_, err = ParseSuccession(s.String())
	}
	return s, err
}

// unverified reads a checkpoint without the keys of its log.
func unverified(signed []byte) (Checkpoint, error) {
	_, err := note.Open(signed, note.VerifierList())
	var without *note.UnverifiedNoteError
	if !errors.As(err, &without) {
		return Checkpoint{}, errors.New("it is no signed checkpoint")
	}
	return parseCheckpoint(without.Note.Text)
}

// String returns the text of the entry.
func (s Succession) String() string {
	return strings.Join([]string{
		successionEvent, formatTime(s.Time), successionKind, s.Origin, strconv.FormatInt(s.Size, 10),
		checkpointField + base64.StdEncoding.EncodeToString(s.Signed), hex.EncodeToString(s.Nonce[:]),
	}, " ")
}

// ParseSuccession reads what String has written. It does not check the signatures.
func ParseSuccession(text string) (s Succession, err error) {
	fields := strings.Split(text, " ")
	if len(text) > MaxLeaf || len(fields) != 7 || fields[0] != successionEvent || fields[2] != successionKind {
		return s, fmt.Errorf("%.100q is no entry that continues another log", text)
	}
	wrong := func(err error) (Succession, error) { return Succession{}, fmt.Errorf("entry %.100q: %w", text, err) }
	if s.Time, err = parseTime(fields[1]); err != nil {
		return wrong(err)
	}
	encoded, _ := strings.CutPrefix(fields[5], checkpointField)
	if s.Signed, err = base64.StdEncoding.Strict().DecodeString(encoded); err != nil {
		return wrong(err)
	}
	if s.Checkpoint, err = unverified(s.Signed); err != nil {
		return wrong(err)
	}
	nonce, err := hex.DecodeString(fields[6])
	if err != nil || len(nonce) != len(s.Nonce) {
		return wrong(errors.New("it does not end with 16 bytes in hexadecimal"))
	}
	copy(s.Nonce[:], nonce)
	if CheckOrigin(s.Origin) != nil || s.String() != text {
		return wrong(errors.New("it is not the entry of its checkpoint"))
	}
	return s, nil
}

// StoreSuccession makes an entry the first one of a store without a log. If the first entry of the
// store continues the same checkpoint, that one counts. Otherwise the error is fs.ErrExist.
func StoreSuccession(ctx context.Context, store Store, s Succession) error {
	stored, err := storesSuccession(ctx, store, s)
	if err != nil || stored {
		return err
	}
	empty, err := IsEmpty(ctx, store)
	switch {
	case err != nil:
		return err
	case !empty:
		return fs.ErrExist
	}
	err = store.Create(ctx, batchName(0), EncodeBundle([]string{s.String()}))
	if errors.Is(err, fs.ErrExist) { // another call was first
		if stored, err := storesSuccession(ctx, store, s); stored || err != nil {
			return err
		}
	}
	return err
}

// storesSuccession reports whether the first entry of a store continues a checkpoint. The batch
// that had it may be gone.
func storesSuccession(ctx context.Context, store Store, s Succession) (bool, error) {
	f := files{store: store}
	entries, err := f.from(ctx, 0)
	if errors.Is(err, ErrForked) {
		return false, fs.ErrExist // of what is left of a log
	}
	if err != nil || entries == nil {
		return false, err
	}
	before, err := ParseSuccession(entries[0])
	if err != nil || string(before.Signed) != string(s.Signed) {
		return false, fs.ErrExist
	}
	return true, nil
}

// Succession returns the first entry of a head with its proof, if it says that the log was begun in
// place of another one. Otherwise the error is fs.ErrNotExist.
func (l *Log) Succession(ctx context.Context, h *Head) (Lookup, error) {
	if h.Size == 0 {
		return Lookup{}, fs.ErrNotExist
	}
	text, err := l.files.entry(ctx, h.edge, 0)
	if err != nil {
		return Lookup{}, err
	}
	if _, err := ParseSuccession(text); err != nil {
		return Lookup{}, fs.ErrNotExist
	}
	p, err := l.Prove(ctx, h, 0)
	return Lookup{Entries: []ProvenEntry{{text, p}}, Signed: h.Signed}, err
}
