package tokenfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

const (
	// checkInterval is the minimum interval between checks for changes of the file. A
	// revoked token is refused within a second.
	checkInterval = 250 * time.Millisecond

	// settleTime is the minimum age of a modification. Only if the file is older, its
	// time and size are trusted to reveal the next change. File system clocks advance
	// in steps, and two changes within one step look like one.
	settleTime = 3 * time.Second
)

// A File has the tokens of a file that may change at any time. It is safe for
// concurrent use.
//
// An invalid line disables its own token. Without the file there are no tokens. If the
// file exists but cannot be read, the tokens known so far are still accepted: an I/O
// error should not lock out all clients. Each of these problems is logged once. Tokens
// that have expired or expire soon are logged once, too.
type File struct {
	path   string
	logger *slog.Logger
	now    func() time.Time
	opened time.Time

	// Requests read these two without a lock as long as the last check is recent.
	tokens  atomic.Pointer[Tokens]
	checked atomic.Int64 // nanoseconds after opened

	mu      sync.Mutex  // held during a check
	info    fs.FileInfo // of the content that was read; nil: read it again in any case
	sum     [sha256.Size]byte
	problem string // logged last; empty when it is over

	expiryLogged time.Time // the tokens that expired before, or soon after, are logged
}

// Open reads a file. It fails if the file is missing or has an invalid line, so that
// the problem shows when the server starts. The error wraps the error of the file
// system. now is the clock.
func Open(path string, logger *slog.Logger, now func() time.Time) (*File, error) {
	f := &File{path: path, logger: logger, now: now, opened: now()}
	content, info, err := read(path)
	if err != nil {
		return nil, err
	}
	tokens, errs := Parse(content)
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", path, joinErrors(errs))
	}
	f.tokens.Store(tokens)
	f.remember(content, info, f.opened)
	f.logExpiry(f.opened)
	return f, nil
}

// Path returns the file's path.
func (f *File) Path() string { return f.path }

// Find returns the subject that a token identifies, as Tokens.Find does.
func (f *File) Find(secret string) (access.Subject, error) {
	tokens, now := f.current()
	return tokens.Find(secret, now)
}

// Entries lists the tokens in the order of the file.
func (f *File) Entries() []Entry {
	tokens, _ := f.current()
	return tokens.Entries()
}

// current returns the current tokens of the file, and the present time.
func (f *File) current() (*Tokens, time.Time) {
	now := f.now()
	if !f.recent(now) {
		f.check()
	}
	return f.tokens.Load(), now
}

// recent reports whether the last check is recent. After the clock was set back, it
// returns false.
func (f *File) recent(now time.Time) bool {
	age := now.Sub(f.opened) - time.Duration(f.checked.Load())
	return 0 <= age && age < checkInterval
}

// check reads the file if it has changed. Requests wait for it: without recent requests
// the tokens in memory may be old, and the presented token may have been revoked since
// then.
func (f *File) check() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now() // another request may have checked while this one waited
	if f.recent(now) {
		return
	}
	defer func() {
		f.logExpiry(now)
		f.checked.Store(int64(now.Sub(f.opened)))
	}()

	if f.info != nil {
		info, err := os.Stat(f.path)
		if err == nil && os.SameFile(f.info, info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) {
			return
		}
	}
	content, info, err := read(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.info, f.sum = nil, [sha256.Size]byte{}
		f.tokens.Store(newTokens(nil))
		f.report("the tokens file is gone: no token is accepted until it is back", err)
	case err != nil:
		f.info = nil
		f.report("the tokens file cannot be read: the tokens known so far are still accepted", err)
	default:
		f.update(content)
		f.remember(content, info, now)
	}
}

// update parses the content, unless it is unchanged.
func (f *File) update(content []byte) {
	changed := sha256.Sum256(content) != f.sum
	if !changed && f.problem == "" {
		return
	}
	f.problem = ""
	if !changed {
		f.logger.Info("the tokens file can be read again", "file", f.path)
		return
	}
	tokens, errs := Parse(content)
	f.tokens.Store(tokens)
	f.logger.Info("the tokens file has changed and was read again", "file", f.path, "tokens", len(tokens.tokens))
	if len(errs) > 0 {
		f.logger.Error("the tokens file has invalid lines: their tokens are not accepted",
			"file", f.path, "lines", len(errs), "error", joinErrors(errs).Error())
	}
}

// report logs a problem when it begins.
func (f *File) report(message string, err error) {
	if f.problem != err.Error() {
		f.problem = err.Error()
		f.logger.Error(message, "error", f.problem)
	}
}

// remember records the state of the file for the next check.
func (f *File) remember(content []byte, info fs.FileInfo, now time.Time) {
	f.sum = sha256.Sum256(content)
	f.info = info
	if now.Sub(info.ModTime()) < settleTime {
		f.info = nil
	}
}

// read reads a file, up to one byte more than allowed, and returns the info of the file
// that it has read.
func read(path string) ([]byte, fs.FileInfo, error) {
	// Opening a named pipe would wait for a writer.
	if info, err := os.Stat(path); err != nil {
		return nil, nil, err
	} else if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat() // the path may name another file by now
	if err != nil {
		return nil, nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	return content, info, err
}
