package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// ListTokens lists the tokens of a file. Those of its good lines are there
// with an error, too.
func ListTokens(path string) ([]TokenEntry, error) {
	content, _, err := readTokensFile(path)
	if err != nil {
		return nil, err
	}
	tokens, errs := ParseTokens(content)
	if len(errs) > 0 {
		return tokens.Entries(), fmt.Errorf("%s: %w", path, joinTokenErrors(errs))
	}
	return tokens.Entries(), nil
}

// AddToken adds a token at the end of a file. A file that does not exist is
// made, and only its owner may read it.
func AddToken(path string, entry TokenEntry, secret string) error {
	if secret == "" {
		return errors.New("the token is empty")
	}
	if err := entry.Validate(); err != nil {
		return err
	}
	return editTokens(path, func(content []byte, err error) ([]byte, error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, line := range tokenLines(content) {
			if isTokenOf(entry.Name, line) {
				return nil, fmt.Errorf("there is a token named %s already: revoke it first, or choose another name", entry.Name)
			}
		}
		t := token{TokenEntry: entry, digest: digestToken(secret)}
		content = t.appendLine(content)
		if _, errs := ParseTokens(content); len(errs) > 0 {
			return nil, fmt.Errorf("%s: %w", path, joinTokenErrors(errs))
		}
		return content, nil
	})
}

// appendLine adds the token's line, with the end that the other lines have.
func (t *token) appendLine(content []byte) []byte {
	end := "\n"
	if bytes.Contains(content, []byte("\r\n")) {
		end = "\r\n"
	}
	content = bytes.Clone(content)
	if len(content) > 0 && content[len(content)-1] != '\n' {
		content = append(content, end...)
	}
	return append(t.appendTo(content), end...)
}

// RevokeToken removes a token from a file. The line need not be a good one, and
// neither need the others: a token that leaked has to go, whatever else is wrong.
func RevokeToken(path, name string) error {
	if err := validateTokenName(name); err != nil {
		return err
	}
	return editTokens(path, func(content []byte, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		var left []byte
		for _, line := range tokenLines(content) {
			if !isTokenOf(name, line) {
				left = append(left, line...)
			}
		}
		if len(left) == len(content) {
			return nil, errors.New("no token in the file has this name: list the tokens to see their names")
		}
		return left, nil
	})
}

// tokenLockPatience is how long an edit waits for another one, which takes a
// moment.
const tokenLockPatience = 10 * time.Second

// editTokens replaces a file by what edit makes of it. One process does so at a
// time, and readers see the old file or the new one.
func editTokens(path string, edit func(content []byte, err error) ([]byte, error)) error {
	// Of a symbolic link it is the file it leads to that is replaced. What is
	// wrong with a path is said when it is used.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	// The file itself cannot be the lock, as it is replaced. The lock file stays:
	// whoever removed it could remove one that another process waits for.
	ctx, cancel := context.WithTimeout(context.Background(), tokenLockPatience)
	defer cancel()
	lock := flock.New(tokenLockName(path))
	switch _, err := lock.TryLockContext(ctx, 10*time.Millisecond); {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s is being edited by another process: try again", path)
	case err != nil:
		return fmt.Errorf("locking the tokens file: %w", err)
	}
	defer lock.Close()

	content, info, err := readTokensFile(path)
	if content, err = edit(content, err); err != nil {
		return err
	}
	return replaceTokens(path, content, info)
}

func tokenLockName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
}
