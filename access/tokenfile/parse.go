package tokenfile

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// Errors of Tokens.Find. They do not contain any part of the presented token.
var (
	errUnknown = errors.New("the token is unknown or revoked")
	errExpired = errors.New("the token has expired")
)

// maxFile limits the size of a file, in bytes. There is room for about ten thousand
// tokens.
const maxFile = 1 << 20

// digestPrefix starts the second word of a line.
const digestPrefix = "sha256:"

// Tokens are the tokens of a file at one moment. They are immutable.
type Tokens struct {
	tokens   []token
	byDigest map[digest]int // places in tokens
}

// A token is a line of the file.
type token struct {
	Entry
	digest digest
}

func newTokens(tokens []token) *Tokens {
	t := &Tokens{tokens: tokens, byDigest: make(map[digest]int, len(tokens))}
	for i := range tokens {
		t.byDigest[tokens[i].digest] = i
	}
	return t
}

// Find returns the subject that a token identifies. The error says whether the token is
// unknown or has expired, and does not quote it.
//
// Its timing does not help to guess tokens, since only digests are compared, never secrets.
// Measuring the comparison would reveal a digest at most, and no random secret can be derived
// from a digest.
func (t *Tokens) Find(secret string, now time.Time) (access.Subject, error) {
	i, ok := t.byDigest[digestOf(secret)]
	if !ok {
		return access.Subject{}, errUnknown
	}
	entry := &t.tokens[i].Entry
	if entry.Expired(now) {
		return access.Subject{}, fmt.Errorf("%w: %s, at %s", errExpired, entry.Name, entry.Expires.Format(time.RFC3339))
	}
	return access.Subject{ID: entry.Name, Groups: entry.Groups}, nil
}

// Entries lists the tokens in the order of the file.
func (t *Tokens) Entries() []Entry {
	entries := make([]Entry, len(t.tokens))
	for i := range t.tokens {
		entries[i] = t.tokens[i].Entry
	}
	return entries
}

// Parse reads the content of a file.
//
// Each error is about one line, whose token is left out; all other lines are used. A
// file that is too large has no valid lines. Errors quote the number of the line, and a
// name only if it cannot be anything else: a word in the wrong place may be a secret.
func Parse(content []byte) (*Tokens, []error) {
	if len(content) > maxFile {
		return newTokens(nil), []error{fmt.Errorf("it is larger than %d KiB: remove what is not a token", maxFile>>10)}
	}
	var (
		tokens []token
		errs   []error
		names  = make(map[string]int)
		hashes = make(map[digest]int)
	)
	for number, line := range numberedLines(content) {
		words := wordsOf(line)
		if len(words) == 0 {
			continue
		}
		t, err := parseLine(words)
		if err == nil && names[t.Name] > 0 {
			err = fmt.Errorf("%s is the name on line %d already: choose another one", t.Name, names[t.Name])
		}
		if err == nil && hashes[t.digest] > 0 {
			// The order of lines would decide which subject the token identifies.
			err = fmt.Errorf("%s has the token of line %d: give it one of its own", t.Name, hashes[t.digest])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		names[t.Name], hashes[t.digest] = number, number
		tokens = append(tokens, t)
	}
	return newTokens(tokens), errs
}

// joinErrors joins the errors of a file. The result is short even for a file of a
// completely different kind.
func joinErrors(errs []error) error {
	const limit = 10
	if more := len(errs) - limit; more > 0 {
		errs = append(errs[:limit:limit], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// numberedLines yields the numbers of the lines of a file, from one, and the lines with
// their line ends.
func numberedLines(content []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		number := 0
		for line := range bytes.Lines(content) {
			if number++; !yield(number, line) {
				return
			}
		}
	}
}

// wordsOf splits the part of a line before the comment. Editors on Windows end
// lines in CRLF and begin a file with a byte order mark.
func wordsOf(line []byte) []string {
	words := strings.Fields(strings.TrimPrefix(string(line), "\ufeff"))
	for i, word := range words {
		if word[0] == '#' {
			return words[:i]
		}
	}
	return words
}

func parseLine(words []string) (t token, err error) {
	if err := validateName(words[0]); err != nil {
		return t, err
	}
	if len(words) < 2 || !strings.HasPrefix(words[1], digestPrefix) {
		// Without a hash after it, the first word may be a secret.
		return t, fmt.Errorf("a line is NAME %sHEX, with the SHA-256 of the token: let the command for new tokens write it", digestPrefix)
	}
	t.Name = words[0]
	if t.digest, err = parseDigest(words[1]); err != nil {
		return t, fmt.Errorf("%s: %w", t.Name, err)
	}
	for _, word := range words[2:] {
		if err := t.parseOption(word); err != nil {
			return t, fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return t, nil
}

func parseDigest(word string) (d digest, err error) {
	text := strings.TrimPrefix(word, digestPrefix)
	if hex.DecodedLen(len(text)) != len(d) || len(text)%2 != 0 {
		return d, fmt.Errorf("a hash has %d digits: copy all of it", hex.EncodedLen(len(d)))
	}
	if _, err := hex.Decode(d[:], []byte(text)); err != nil {
		return d, errors.New("the hash contains a character that is not a hexadecimal digit: copy it again")
	}
	if d == digestOf("") {
		// The result of hashing an unset variable.
		return d, errors.New("it is the hash of an empty token: hash the token itself")
	}
	return d, nil
}

// parseOption reads one of the words after the hash.
func (t *token) parseOption(word string) error {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "groups":
		if t.Groups != nil {
			return errors.New("groups= is there twice: put all groups in one, with commas between them")
		}
		t.Groups = strings.Split(value, ",")
		return validateGroups(t.Groups)
	case "expires":
		if !t.Expires.IsZero() {
			return errors.New("expires= is there twice: leave one out")
		}
		expires, err := time.Parse(time.RFC3339, value)
		if err != nil || expires.IsZero() {
			return errors.New("expires= needs a time such as 2027-01-01T00:00:00Z")
		}
		t.Expires = expires.UTC()
		return validateExpiry(t.Expires)
	}
	return errors.New("after the hash there can only be groups=, expires= and a comment that begins with #")
}

// appendTo appends the token's line, without a line end.
func (t *token) appendTo(b []byte) []byte {
	b = append(b, t.Name...)
	b = append(b, ' ')
	b = append(b, digestPrefix...)
	b = hex.AppendEncode(b, t.digest[:])
	if len(t.Groups) > 0 {
		b = append(b, " groups="...)
		b = append(b, strings.Join(t.Groups, ",")...)
	}
	if !t.Expires.IsZero() {
		b = append(b, " expires="...)
		b = t.Expires.UTC().AppendFormat(b, time.RFC3339Nano)
	}
	return b
}

// hasName reports whether a line is the line of a name, or was meant to be.
func hasName(line []byte, name string) bool {
	words := wordsOf(line)
	return len(words) > 0 && words[0] == name
}
