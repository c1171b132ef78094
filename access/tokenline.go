package access

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxTokensFile bounds a tokens file: room for about ten thousand tokens.
const maxTokensFile = 1 << 20

// digestPrefix begins the second word of a line.
const digestPrefix = "sha256:"

// ParseTokens reads a tokens file, in which every token has a line:
//
//	NAME sha256:HEX [groups=GROUP,GROUP…] [expires=2027-01-01T00:00:00Z] [# comment]
//
// Empty lines and those that begin with a # are comments. HEX is the SHA-256 of
// the token, 64 digits.
//
// Each error is about one line, whose token is left out; all others are good. A
// file that is too large has no good lines. Errors give the number of the line,
// and the name when it is certain to be one: what stands in a wrong place may be
// a secret.
func ParseTokens(file []byte) (*Tokens, []error) {
	if len(file) > maxTokensFile {
		return newTokens(nil), []error{fmt.Errorf("it is larger than %d KiB: remove what is not a token", maxTokensFile>>10)}
	}
	var (
		tokens []token
		errs   []error
		names  = make(map[string]int)
		hashes = make(map[tokenDigest]int)
	)
	for number, line := range tokenLines(file) {
		words := tokenWords(line)
		if len(words) == 0 {
			continue
		}
		t, err := parseToken(words)
		if err == nil && names[t.Name] > 0 {
			err = fmt.Errorf("%s is the name on line %d already: choose another one", t.Name, names[t.Name])
		}
		if err == nil && hashes[t.digest] > 0 {
			// Whose it is would depend on the order of lines.
			err = fmt.Errorf("%s has the token of line %d: give it one of its own", t.Name, hashes[t.digest])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		t.line = number
		names[t.Name], hashes[t.digest] = number, number
		tokens = append(tokens, t)
	}
	return newTokens(tokens), errs
}

// tokenLines are the lines of a file by number, from one, with their ends.
func tokenLines(file []byte) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		number := 0
		for line := range bytes.Lines(file) {
			if number++; !yield(number, line) {
				return
			}
		}
	}
}

// tokenWords are the words of a line before the comment. Editors of Windows end
// lines in CRLF and begin a file with a byte order mark.
func tokenWords(line []byte) []string {
	words := strings.Fields(strings.TrimPrefix(string(line), "\ufeff"))
	for i, word := range words {
		if word[0] == '#' {
			return words[:i]
		}
	}
	return words
}

func parseToken(words []string) (t token, err error) {
	if err := validateTokenName(words[0]); err != nil {
		return t, err
	}
	if len(words) < 2 || !strings.HasPrefix(words[1], digestPrefix) {
		// Without a hash behind it, what comes first may be anything.
		return t, fmt.Errorf("a line is NAME %sHEX, with the SHA-256 of the token: let the command for new tokens write it", digestPrefix)
	}
	t.Name = words[0]
	if t.digest, err = parseTokenDigest(words[1]); err != nil {
		return t, fmt.Errorf("%s: %w", t.Name, err)
	}
	for _, word := range words[2:] {
		if err := t.parseOption(word); err != nil {
			return t, fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return t, nil
}

func parseTokenDigest(word string) (digest tokenDigest, err error) {
	text := strings.TrimPrefix(word, digestPrefix)
	if hex.DecodedLen(len(text)) != len(digest) || len(text)%2 != 0 {
		return digest, fmt.Errorf("a hash has %d digits: copy all of it", hex.EncodedLen(len(digest)))
	}
	if _, err := hex.Decode(digest[:], []byte(text)); err != nil {
		return digest, errors.New("the hash has something in it that is no hexadecimal digit: copy it again")
	}
	if digest == digestToken("") {
		// What hashing an unset variable gives.
		return digest, errors.New("it is the hash of an empty token: hash the token itself")
	}
	return digest, nil
}

// parseOption reads one of the words behind the hash.
func (t *token) parseOption(word string) error {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "groups":
		if t.Groups != nil {
			return errors.New("groups= is there twice: put all groups in one, with commas between them")
		}
		t.Groups = strings.Split(value, ",")
		return validateTokenGroups(t.Groups)
	case "expires":
		if !t.Expires.IsZero() {
			return errors.New("expires= is there twice: leave one out")
		}
		expires, err := time.Parse(time.RFC3339, value)
		if err != nil || expires.IsZero() {
			return errors.New("expires= needs a time such as 2027-01-01T00:00:00Z")
		}
		t.Expires = expires.UTC()
		return validateTokenExpiry(t.Expires)
	}
	return errors.New("behind the hash there can only be groups=, expires= and a comment that begins with #")
}

// appendTo writes the token's line, without its end.
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

// isTokenOf tells whether a line is the token of that name, or was meant to be.
func isTokenOf(name string, line []byte) bool {
	words := tokenWords(line)
	return len(words) > 0 && words[0] == name
}
