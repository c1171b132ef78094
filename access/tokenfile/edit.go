package tokenfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/caddy-terraform/caddy-terraform-registry/tree/disk"
)

// List lists the tokens of a file. It returns the entries of valid lines even if there
// is an error about other lines.
func List(path string) ([]Entry, error) {
	content, _, err := read(path)
	if err != nil {
		return nil, err
	}
	tokens, errs := Parse(content)
	if len(errs) > 0 {
		return tokens.Entries(), fmt.Errorf("%s: %w", path, joinErrors(errs))
	}
	return tokens.Entries(), nil
}

// Add appends a token to a file. A missing file is created, and only its owner can read
// it.
func Add(path string, entry Entry, secret string) error {
	if secret == "" {
		return errors.New("the token is empty")
	}
	if err := entry.validate(); err != nil {
		return err
	}
	return edit(path, func(content []byte, err error) ([]byte, error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, line := range numberedLines(content) {
			if hasName(line, entry.Name) {
				return nil, fmt.Errorf("there is a token named %s already: revoke it first, or choose another name", entry.Name)
			}
		}
		t := token{Entry: entry, digest: digestOf(secret)}
		content = t.appendLine(content)
		if _, errs := Parse(content); len(errs) > 0 {
			return nil, fmt.Errorf("%s: %w", path, joinErrors(errs))
		}
		return content, nil
	})
}

// appendLine appends the token's line, with the same line end as the others.
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

// ErrNoToken means that there is no token with the name.
var ErrNoToken = errors.New("no token in the file has this name: list the tokens to see their names")

// Revoke removes a token from a file, even if its line or another one is
// invalid: it must be possible to revoke a leaked token whatever else is wrong.
// The error is ErrNoToken if there is none.
func Revoke(path, name string) error {
	if err := validateName(name); err != nil {
		return err
	}
	return edit(path, func(content []byte, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		var rest []byte
		for _, line := range numberedLines(content) {
			if !hasName(line, name) {
				rest = append(rest, line...)
			}
		}
		if len(rest) == len(content) {
			return nil, ErrNoToken
		}
		return rest, nil
	})
}

// edit replaces the content of a file by the result of a function. The function
// receives the content or the error of reading it. Only one process edits at a time,
// and readers see either the old file or the new one.
func edit(path string, change func(content []byte, err error) ([]byte, error)) error {
	target, dangling, err := disk.LinkTarget(path)
	switch {
	case err != nil:
		return err
	case dangling: // as to a volume that is not mounted: a new file in its place would hide all tokens
		return fmt.Errorf("%s is a symlink to nothing: mend it, or name another file", path)
	}
	path = target
	// The file itself cannot be the lock, as it is replaced.
	unlock, err := disk.LockFile(context.Background(), filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock"))
	switch {
	case errors.Is(err, disk.ErrLocked):
		return fmt.Errorf("%s is being edited by another process: try again", path)
	case err != nil:
		return fmt.Errorf("locking the tokens file: %w", err)
	}
	defer unlock()

	content, info, err := read(path)
	if content, err = change(content, err); err != nil {
		return err
	}
	return disk.ReplaceFile(path, content, func(fresh *os.File) error { return copyPermissions(fresh, info) })
}

// copyPermissions sets the owner and the mode of the replaced file. The owner comes
// first, so that the mode never opens the file to others. The edit fails if the server
// could no longer read its tokens afterwards. info is nil if there is no old file.
func copyPermissions(fresh *os.File, info fs.FileInfo) error {
	if info == nil {
		return nil
	}
	now, err := fresh.Stat()
	if err != nil {
		return err
	}
	uid, gid, known := disk.Owner(info)
	if own, group, _ := disk.Owner(now); known && (own != uid || group != gid) {
		if err := fresh.Chown(uid, gid); err != nil {
			return fmt.Errorf("the file would no longer belong to its owner, edit it as the owner: %w", err)
		}
	}
	return fresh.Chmod(info.Mode().Perm())
}
