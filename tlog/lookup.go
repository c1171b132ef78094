package tlog

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// A Lookup has the entries of one version, with everything that is needed to check them.
type Lookup struct {
	Entries []ProvenEntry

	// Shasums is the SHA256 of the SHA256SUMS that the registry serves, in hexadecimal
	// digits; empty: the version is not offered, or is a module's. No entry proves it.
	Shasums string

	// Signed is the checkpoint of the proofs, with its signatures.
	Signed []byte
}

// A ProvenEntry is the text of a leaf with the proof that it is in the log.
type ProvenEntry struct {
	Text  string
	Proof Proof
}

const shasumsField = "shasums "

// String returns the lookup as text: parts with an empty line between them. They are each
// entry and its proof, the line "shasums SHA256" if there is one, and the checkpoint.
func (l Lookup) String() string {
	var b strings.Builder
	for _, e := range l.Entries {
		b.WriteString(e.Text + "\n\n" + e.Proof.String() + "\n")
	}
	if l.Shasums != "" {
		b.WriteString(shasumsField + l.Shasums + "\n\n")
	}
	b.Write(l.Signed)
	return b.String()
}

// maxEntries bounds what a lookup may have. A version has an entry for each platform, and
// some more for withdrawals.
const maxEntries = 10_000

// ParseLookup reads what String has written. It checks neither proofs nor signatures.
func ParseLookup(text string) (l Lookup, err error) {
	for {
		part, rest, more := strings.Cut(text, "\n\n")
		value, isShasums := strings.CutPrefix(part, shasumsField)
		switch {
		case !more:
			return Lookup{}, errors.New("a look-up ends with a checkpoint")
		case strings.Contains(part, "\n"): // no other part has several lines
			l.Signed = []byte(text)
			return l, nil
		case isShasums && l.Shasums == "":
			if sum, err := hex.DecodeString(value); err != nil || len(sum) != 32 || strings.ToLower(value) != value {
				return Lookup{}, fmt.Errorf("%.100q is no SHA256", value)
			}
			l.Shasums, text = value, rest
			continue
		case l.Shasums != "" || len(l.Entries) == maxEntries:
			return Lookup{}, errors.New("a look-up has entries with their proofs, and then the checkpoint")
		}
		if _, err := ParseLeaf(part); err != nil {
			if _, other := ParseSuccession(part); other != nil {
				return Lookup{}, err
			}
		}
		proof, after, more := strings.Cut(rest, "\n\n")
		if !more {
			return Lookup{}, errors.New("a proof follows each entry")
		}
		p, err := parseProof(proof + "\n")
		if err != nil {
			return Lookup{}, err
		}
		l.Entries, text = append(l.Entries, ProvenEntry{part, p}), after
	}
}

// Check checks the signature and all proofs of a lookup in the log with that origin, and
// returns the checkpoint.
func (l Lookup) Check(origin string, verifiers ...note.Verifier) (Checkpoint, error) {
	c, err := OpenCheckpoint(l.Signed, origin, verifiers...)
	if err != nil {
		return Checkpoint{}, err
	}
	for _, e := range l.Entries {
		if err := e.Proof.Check(e.Text, c); err != nil {
			return Checkpoint{}, err
		}
	}
	return c, nil
}
