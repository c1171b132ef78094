package tlog

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	sumdb "golang.org/x/mod/sumdb/tlog"
)

// A Checkpoint says which leaves a log has: the first Size ones have the root hash Root. Its
// text, in C2SP's tlog-checkpoint, is the note that is signed.
type Checkpoint struct {
	Origin string // the name of the log, which is also the name of its key
	Size   int64
	Root   sumdb.Hash
}

// String returns the text of the checkpoint.
func (c Checkpoint) String() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

// parseCheckpoint reads the text of a checkpoint, whose signatures have been checked. Lines
// after the third are extensions, which are skipped.
func parseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) < 4 || lines[0] == "" {
		return Checkpoint{}, errors.New("a checkpoint has the lines ORIGIN, SIZE and ROOT")
	}
	c := Checkpoint{Origin: lines[0]}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("%q is no size of a log", lines[1])
	}
	c.Size = size
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != sumdb.HashSize {
		return Checkpoint{}, fmt.Errorf("%q is no root of a log", lines[2])
	}
	copy(c.Root[:], root)
	return c, nil
}

// Sign returns the checkpoint with a signature of each signer.
func (c Checkpoint) Sign(signers ...note.Signer) ([]byte, error) {
	signed, err := note.Sign(&note.Note{Text: c.String()}, signers...)
	if err != nil {
		return nil, fmt.Errorf("signing a checkpoint: %w", err)
	}
	return signed, nil
}

// OpenCheckpoint reads a checkpoint that one of the verifiers has signed, of the log that has
// that origin. Signatures of others are skipped: so keys rotate, and witnesses cosign.
func OpenCheckpoint(signed []byte, origin string, verifiers ...note.Verifier) (Checkpoint, error) {
	n, err := note.Open(signed, note.VerifierList(verifiers...))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint of %s: %w", origin, err)
	}
	c, err := parseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, err
	}
	if c.Origin != origin {
		return Checkpoint{}, fmt.Errorf("the checkpoint is of the log %q, not of %q", c.Origin, origin)
	}
	return c, nil
}
