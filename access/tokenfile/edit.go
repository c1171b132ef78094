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
	path, err := target(path)
	if err != nil {
		return err
	}
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
	return replace(path, content, info)
}

// target returns the path that is replaced: of a symbolic link, its target. A link to nothing, as
// to a volume that is not mounted, is an error: a new file in its place would hide all tokens.
func target(path string) (string, error) {
	found, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return path, nil
	case err != nil:
		return "", err
	case info.Mode().Type() == fs.ModeSymlink:
		return "", fmt.Errorf("%s is a symlink to nothing: mend it, or name another file", path)
	}
	return path, nil
}

// replace replaces a file atomically: after a crash there is the old file or the new
// one. info describes the old file, whose owner and mode are kept; it is nil if there
// is none.
//
// google/renameio is not used as it is not available on Windows, keeps no owner,
// and does not sync the directory.
func replace(path string, content []byte, info fs.FileInfo) error {
	dir := filepath.Dir(path)
	temporary, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails after the rename, as it should
	if err := write(temporary, content, info); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return err
	}
	// A revoked token must not come back after a power failure. Not every system can
	// sync a directory.
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
	return nil
}

func write(temporary *os.File, content []byte, info fs.FileInfo) error {
	_, err := temporary.Write(content)
	if err == nil && info != nil {
		err = copyPermissions(temporary, info)
	}
	if err == nil {
		err = temporary.Sync()
	}
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	return err
}

// copyPermissions sets the owner and the mode of the replaced file. The owner comes
// first, so that the mode never opens the file to others. The edit fails if the server
// could no longer read its tokens afterwards.
func copyPermissions(temporary *os.File, info fs.FileInfo) error {
	now, err := temporary.Stat()
	if err != nil {
		return err
	}
	uid, gid, known := disk.Owner(info)
	if own, group, _ := disk.Owner(now); known && (own != uid || group != gid) {
		if err := temporary.Chown(uid, gid); err != nil {
			return fmt.Errorf("the file would no longer belong to its owner, edit it as the owner: %w", err)
		}
	}
	return temporary.Chmod(info.Mode().Perm())
}
