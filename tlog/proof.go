package tlog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	sumdb "golang.org/x/mod/sumdb/tlog"
)

// A Proof says where in a log an entry is, and with which hashes it makes up the root.
type Proof struct {
	Index  int64
	Hashes sumdb.RecordProof // from the hash beside the entry's upwards
}

const proofHeader = "c2sp.org/tlog-proof@v1"

// String returns the proof in C2SP's tlog-proof, without the empty line and the checkpoint
// that follow.
func (p Proof) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nindex %d\n", proofHeader, p.Index)
	writeHashes(&b, p.Hashes)
	return b.String()
}

// parseProof reads what String has written. A line with extra data is skipped.
func parseProof(text string) (Proof, error) {
	lines, err := linesOf(text)
	if err != nil {
		return Proof{}, err
	}
	if len(lines) == 0 || lines[0] != proofHeader {
		return Proof{}, fmt.Errorf("a proof begins with the line %s", proofHeader)
	}
	lines = lines[1:]
	if len(lines) > 0 && strings.HasPrefix(lines[0], "extra ") {
		lines = lines[1:]
	}
	if len(lines) == 0 {
		return Proof{}, errors.New("a proof has a line with an index")
	}
	digits, ok := strings.CutPrefix(lines[0], "index ")
	index, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || index < 0 || strconv.FormatInt(index, 10) != digits {
		return Proof{}, fmt.Errorf("%.100q is no index", lines[0])
	}
	hashes, err := parseHashes(lines[1:])
	if err != nil {
		return Proof{}, err
	}
	return Proof{Index: index, Hashes: hashes}, nil
}

// Check checks that the log of a checkpoint has the entry at the index of the proof.
func (p Proof) Check(entry string, c Checkpoint) error {
	if err := sumdb.CheckRecord(p.Hashes, c.Size, c.Root, p.Index, hashOf(entry)); err != nil {
		return fmt.Errorf("entry %d of %s: %w", p.Index, c.Origin, err)
	}
	return nil
}

// A Consistency says with which hashes the root of a log becomes the root of the log when it
// has grown.
type Consistency struct{ Hashes sumdb.TreeProof }

// String returns the hashes, one a line.
func (c Consistency) String() string {
	var b strings.Builder
	writeHashes(&b, c.Hashes)
	return b.String()
}

// ParseConsistency reads what String has written.
func ParseConsistency(text string) (Consistency, error) {
	lines, err := linesOf(text)
	if err != nil {
		return Consistency{}, err
	}
	hashes, err := parseHashes(lines)
	return Consistency{Hashes: hashes}, err
}

// Check checks that the log of the later checkpoint begins with the log of the earlier one.
func (c Consistency) Check(earlier, later Checkpoint) error {
	switch {
	case earlier.Size > later.Size:
		return fmt.Errorf("%s has %d entries, and had %d", later.Origin, later.Size, earlier.Size)
	case earlier.Size == later.Size && earlier.Root != later.Root:
		return fmt.Errorf("%s has two roots for %d entries", later.Origin, later.Size)
	case earlier.Size == 0 || earlier.Size == later.Size:
		return nil
	}
	if err := sumdb.CheckTree(c.Hashes, later.Size, later.Root, earlier.Size, earlier.Root); err != nil {
		return fmt.Errorf("%s has other entries than before: %w", later.Origin, err)
	}
	return nil
}

func writeHashes(b *strings.Builder, hashes []sumdb.Hash) {
	for _, h := range hashes {
		b.WriteString(h.String())
		b.WriteByte('\n')
	}
}

// maxHashes is more than any proof of a log with an int64 of leaves has.
const maxHashes = 128

func linesOf(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	if !strings.HasSuffix(text, "\n") {
		return nil, errors.New("the last line is cut off")
	}
	lines := strings.SplitN(text, "\n", maxHashes+4)
	if len(lines) == maxHashes+4 {
		return nil, errors.New("it has too many lines")
	}
	return lines[:len(lines)-1], nil
}

func parseHashes(lines []string) (hashes []sumdb.Hash, err error) {
	for _, line := range lines {
		h, err := sumdb.ParseHash(line)
		if err != nil || h.String() != line {
			return nil, fmt.Errorf("%.100q is no hash", line)
		}
		hashes = append(hashes, h)
	}
	return hashes, nil
}
