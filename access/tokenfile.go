package access

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
)

const (
	// tokenFileLook is how often it is looked at whether the file has changed.
	// A token that was revoked is to be refused within a second.
	tokenFileLook = 250 * time.Millisecond

	// tokenFileRest is how long a file must not have been written to before its
	// time and size are trusted to tell of the next change. File systems count
	// time in steps, and two changes within one look like one.
	tokenFileRest = 3 * time.Second
)

// A TokenFile is the tokens of a file that may change at any time.
//
// A line that cannot be read disables its own token. Without the file there are
// no tokens. If the file is there but cannot be read, the tokens known so far
// stay good: a disk with a hiccup should not lock out everybody. All that is
// logged, once.
type TokenFile struct {
	path   string
	logger *slog.Logger
	now    func() time.Time
	opened time.Time

	// Requests read these two, and wait for nobody as long as a look is recent.
	tokens atomic.Pointer[Tokens]
	looked atomic.Int64 // when, since opened

	looking sync.Mutex
	info    fs.FileInfo // of what was read; nil: read again whatever it is
	sum     [sha256.Size]byte
	problem string // the last one logged, empty when it is over
}

// OpenTokenFile reads a tokens file. A file that is missing or has an error is
// one for whoever starts the server to see. Now is the clock.
func OpenTokenFile(path string, logger *slog.Logger, now func() time.Time) (*TokenFile, error) {
	f := &TokenFile{path: path, logger: logger, now: now, opened: now()}
	content, info, err := readTokensFile(path)
	if err != nil {
		return nil, err
	}
	tokens, errs := ParseTokens(content)
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", path, joinTokenErrors(errs))
	}
	f.tokens.Store(tokens)
	f.remember(content, info, f.opened)
	return f, nil
}

// Find tells whose token it is, as Tokens.Find does.
func (f *TokenFile) Find(secret string) (Subject, error) {
	now := f.now()
	if !f.recent(now) {
		f.look()
	}
	return f.tokens.Load().Find(secret, now)
}

// recent tells whether the last look was just now. A clock that was set back
// does not make it so.
func (f *TokenFile) recent(now time.Time) bool {
	age := now.Sub(f.opened) - time.Duration(f.looked.Load())
	return 0 <= age && age < tokenFileLook
}

// look reads the file if it has changed. Requests that come meanwhile wait: what
// is known may be from long ago, when nobody asked in between, and the token at
// hand may have been revoked since.
func (f *TokenFile) look() {
	f.looking.Lock()
	defer f.looking.Unlock()
	now := f.now() // it may be a while since, and another request was first
	if f.recent(now) {
		return
	}
	defer func() { f.looked.Store(int64(now.Sub(f.opened))) }()

	if f.info != nil {
		info, err := os.Stat(f.path)
		if err == nil && os.SameFile(f.info, info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) {
			return
		}
	}
	content, info, err := readTokensFile(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.forget()
		f.tokens.Store(newTokens(nil))
		f.report("the tokens file is gone: no token is accepted until it is back", err)
	case err != nil:
		f.info = nil
		f.report("the tokens file cannot be read: the tokens known so far are still accepted", err)
	default:
		f.take(content)
		f.remember(content, info, now)
	}
}

// take parses what was read, unless it is what was there before.
func (f *TokenFile) take(content []byte) {
	changed := sha256.Sum256(content) != f.sum
	if !changed && f.problem == "" {
		return
	}
	f.problem = ""
	if !changed {
		f.logger.Info("the tokens file can be read again", "file", f.path)
		return
	}
	tokens, errs := ParseTokens(content)
	f.tokens.Store(tokens)
	f.logger.Info("read the tokens file, which has changed", "file", f.path, "tokens", len(tokens.tokens))
	if len(errs) > 0 {
		f.logger.Error("lines of the tokens file are wrong: their tokens are not accepted",
			"file", f.path, "lines", len(errs), "error", joinTokenErrors(errs).Error())
	}
}

// report logs a problem when it begins.
func (f *TokenFile) report(message string, err error) {
	if f.problem != err.Error() {
		f.problem = err.Error()
		f.logger.Error(message, "error", f.problem)
	}
}

// remember keeps what tells that the file has not changed.
func (f *TokenFile) remember(content []byte, info fs.FileInfo, now time.Time) {
	f.sum = sha256.Sum256(content)
	f.info = info
	if now.Sub(info.ModTime()) < tokenFileRest {
		f.info = nil
	}
}

func (f *TokenFile) forget() {
	f.info = nil
	f.sum = [sha256.Size]byte{}
}

// readTokensFile reads a file, and one byte more than it may have.
func readTokensFile(path string) ([]byte, fs.FileInfo, error) {
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
	info, err := file.Stat() // of what is read, whatever has the name by now
	if err != nil {
		return nil, nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxTokensFile+1))
	return content, info, err
}

// joinTokenErrors makes one error of those of a file, and a short one of those
// of something that is no tokens file at all.
func joinTokenErrors(errs []error) error {
	const enough = 10
	if more := len(errs) - enough; more > 0 {
		errs = append(errs[:enough:enough], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}
