// Package tokenfile authenticates clients by tokens that are listed in a file. It
// defines the file's format, edits the file, and looks tokens up while the file
// changes.
//
// Every token has a line:
//
//	NAME sha256:HEX [groups=GROUP,GROUP…] [expires=2027-01-01T00:00:00Z] [# comment]
//
// NAME is the ID of the [access.Subject] that presents the token. HEX is the
// SHA-256 of the token, 64 digits: the file never contains a token itself. Empty
// lines and lines that begin with a # are comments.
package tokenfile

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// tokenPrefix begins every token, so that people and secret scanners recognise
// it.
const tokenPrefix = "tfr_"

// Generate returns a new token, the secret that a client sends. It consists of
// letters, digits and underscores only, which need no quoting in a header, an
// environment variable or a configuration file (checklist 105), and has 130
// random bits.
func Generate() string { return tokenPrefix + rand.Text() }

// A digest of a token is all that the file has of the token.
type digest [sha256.Size]byte

// digestOf hashes a token. One round of SHA-256 without a salt is enough since the
// secret is random: there is no dictionary to try, and 130 bits cannot be enumerated. A
// slow hash would only slow down every request.
func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// An Entry describes a token without its secret.
type Entry struct {
	Name    string    // ID of the subject
	Groups  []string  // of the subject
	Expires time.Time // zero: never
}

// Expired reports whether the token has expired.
func (e Entry) Expired(now time.Time) bool {
	return !e.Expires.IsZero() && !now.Before(e.Expires)
}

// validate returns an error if the entry cannot be written to a file. The error does
// not quote its input, which may be a secret in the wrong place.
func (e Entry) validate() error {
	if err := validateName(e.Name); err != nil {
		return err
	}
	if err := validateGroups(e.Groups); err != nil {
		return err
	}
	return validateExpiry(e.Expires)
}

// maxName bounds names, in bytes: they appear in every line of the access log.
const maxName = 255

// validateName refuses words that are not names, and words that a rule would not treat
// as the ID of this one subject.
func validateName(name string) error {
	if err := validateWord(name); err != nil {
		return fmt.Errorf("the name %w", err)
	}
	switch lower := strings.ToLower(name); {
	case lower == "anonymous", lower == "authenticated":
		return errors.New("the name must not be anonymous or authenticated, which have another meaning in a rule: choose another one")
	case strings.HasPrefix(lower, "group:"):
		return errors.New("the name must not begin with group:, which means a group in a rule: choose another one")
	case strings.HasPrefix(lower, tokenPrefix), strings.HasPrefix(lower, digestPrefix):
		return errors.New("the name is missing: there is a token or a hash in its place")
	}
	return nil
}

func validateGroups(groups []string) error {
	for i, group := range groups {
		if err := validateWord(group); err != nil {
			return fmt.Errorf("the name of a group %w", err)
		}
		if strings.HasPrefix(strings.ToLower(group), "group:") {
			return errors.New("the name of a group is given without group: before it")
		}
		if slices.Contains(groups[:i], group) {
			return errors.New("a group is listed twice: leave one out")
		}
	}
	return nil
}

// validateExpiry refuses years that cannot be written in RFC 3339. A time zone can turn
// the end of 9999 into such a year.
func validateExpiry(expires time.Time) error {
	if year := expires.UTC().Year(); year < 1 || year > 9999 {
		return errors.New("the year it expires in must have four digits")
	}
	return nil
}

// validateWord refuses characters that would end a word of the file, begin a comment,
// or be a wildcard in a rule.
func validateWord(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > maxName:
		return fmt.Errorf("is longer than %d bytes: choose a shorter one", maxName)
	case !utf8.ValidString(s):
		return errors.New("is not in UTF-8: save the file as UTF-8")
	case strings.ContainsAny(s, " ,#*"):
		return errors.New("must not have a space, a comma, a # or a * in it: choose another one")
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return errors.New("has a character that cannot be printed: choose another one")
		}
	}
	return nil
}
