package access

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

// What Find may say. Neither says anything of the token that was presented.
var (
	// ErrTokenUnknown means that no such token has been issued, or that it has
	// been revoked.
	ErrTokenUnknown = errors.New("the token is unknown or revoked")

	// ErrTokenExpired means that the token was good until it expired.
	ErrTokenExpired = errors.New("the token has expired")
)

// tokenPrefix begins every token, for people and for tools that look for
// secrets in source code to know it by.
const tokenPrefix = "tfr_"

// NewToken makes a token: the secret that a client sends. It has letters, digits
// and underscores only, which need no quoting in a header, an environment
// variable or a configuration file (checklist 105), and 130 random bits.
func NewToken() string { return tokenPrefix + rand.Text() }

// A tokenDigest is what a tokens file knows of a token.
type tokenDigest [sha256.Size]byte

// digestToken hashes a token. One round of SHA-256 without a salt is enough,
// as the secret is random: there is no dictionary to try, and 130 bits are too
// many to go through. A slow hash would only slow down every request.
func digestToken(secret string) tokenDigest { return sha256.Sum256([]byte(secret)) }

// A TokenEntry is what is told of a token: all but the secret.
type TokenEntry struct {
	Name    string // the subject's ID
	Groups  []string
	Expires time.Time // zero: never
}

// Expired tells whether the token is good no longer.
func (e TokenEntry) Expired(now time.Time) bool {
	return !e.Expires.IsZero() && !now.Before(e.Expires)
}

// Validate tells what keeps the entry from being written to a tokens file. The
// error does not repeat what was given: it could be a secret in the wrong place.
func (e TokenEntry) Validate() error {
	if err := validateTokenName(e.Name); err != nil {
		return err
	}
	if err := validateTokenGroups(e.Groups); err != nil {
		return err
	}
	return validateTokenExpiry(e.Expires)
}

// maxTokenName bounds names, which get into every line of the access log.
const maxTokenName = 255

// validateTokenName refuses what is no name, and what a rule would take for
// something else than this one subject.
func validateTokenName(name string) error {
	if err := validateTokenWord(name); err != nil {
		return fmt.Errorf("the name %w", err)
	}
	switch lower := strings.ToLower(name); {
	case lower == "anonymous", lower == "authenticated":
		return errors.New("the name must not be anonymous or authenticated, which mean others in a rule: choose another one")
	case strings.HasPrefix(lower, "group:"):
		return errors.New("the name must not begin with group:, which means a group in a rule: choose another one")
	case strings.HasPrefix(lower, tokenPrefix), strings.HasPrefix(lower, digestPrefix):
		return errors.New("the name is missing: there is a token or a hash in its place")
	}
	return nil
}

func validateTokenGroups(groups []string) error {
	for i, group := range groups {
		if err := validateTokenWord(group); err != nil {
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

// validateTokenExpiry refuses what cannot be written with four digits for the
// year; a time zone can turn the end of 9999 into that.
func validateTokenExpiry(expires time.Time) error {
	if year := expires.UTC().Year(); year < 1 || year > 9999 {
		return errors.New("the year it expires in must have four digits")
	}
	return nil
}

// validateTokenWord refuses what would end a word of the file, begin a comment,
// or be a pattern in a rule.
func validateTokenWord(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > maxTokenName:
		return fmt.Errorf("is longer than %d bytes: choose a shorter one", maxTokenName)
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
