package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// maxMessage is how much of git's messages is kept in an error, in bytes from the end.
const maxMessage = 4 << 10

// waitDelay is how long git's own children, such as git-remote-http, may keep its output open after
// git has ended.
const waitDelay = 5 * time.Second

// A CommandError is the error of a git command that failed. Its text is git's message,
// which may have paths of this machine in it.
type CommandError struct {
	command, repository string
	said                string // last, on one line and without credentials; may be empty
	err                 error
}

func (e *CommandError) Error() string {
	if e.said == "" {
		return fmt.Sprintf("git %s in %s: %v", e.command, e.repository, e.err)
	}
	return fmt.Sprintf("git %s in %s: %s", e.command, e.repository, e.said)
}

func (e *CommandError) Unwrap() error { return e.err }

// exitStatus returns the exit status of a git command that failed; zero for other errors, and -1 if it was killed.
func exitStatus(err error) int {
	if ended, is := errors.AsType[*exec.ExitError](err); is {
		return ended.ExitCode()
	}
	return 0
}

// ErrKilled means that git was ended by a signal, perhaps because the machine lacks memory.
var ErrKilled = errors.New("git was killed")

// ErrLocal means that a command failed that reads nothing of a repository, so that the failure is of this machine.
var ErrLocal = errors.New("git failed on this machine")

// localCauses are the causes of failures that are on this machine, by what git says. C libraries word some
// differently.
var localCauses = []struct {
	text  string
	cause error
}{
	{"No space left on device", syscall.ENOSPC},
	{"uota exceeded", syscall.EDQUOT},
	{"Input/output error", syscall.EIO},
	{"I/O error", syscall.EIO},
	{"Read-only file system", syscall.EROFS},
	{"Permission denied", syscall.EACCES},
	{"Too many open files", syscall.EMFILE},
	{"No file descriptors available", syscall.EMFILE},
	{"Out of memory", syscall.ENOMEM},
	{"Cannot allocate memory", syscall.ENOMEM},
	{"Resource temporarily unavailable", syscall.EAGAIN},
	{"died of signal", ErrKilled},
}

// withCause returns the error of a failed command together with its cause if that is on this machine: a
// syscall.Errno, ErrKilled or ErrLocal.
func withCause(command string, failed error, messages string) error {
	cause := localCause(messages)
	if ended, is := errors.AsType[*exec.ExitError](failed); is {
		if status, is := ended.Sys().(syscall.WaitStatus); is && status.Signaled() {
			cause = ErrKilled
		}
	}
	if cause == nil && slices.Contains([]string{"init", "remote", "config"}, command) {
		cause = ErrLocal
	}
	if cause == nil {
		return failed
	}
	return fmt.Errorf("%w: %w", cause, failed)
}

// localCause returns the cause in the last of git's messages that has one, or nil. Lines that the other side has
// sent say nothing about this machine.
func localCause(messages string) (cause error) {
	for line := range strings.Lines(messages) {
		if strings.HasPrefix(line, "remote:") || strings.Contains(line, "remote error:") {
			continue
		}
		for _, local := range localCauses {
			if strings.Contains(line, local.text) {
				cause = local.cause
				break
			}
		}
	}
	return cause
}

// read runs git with some input, and passes its output to consume. An error of consume
// ends git.
func (r *Repository) read(ctx context.Context, input io.Reader, consume func(*bufio.Reader) error, command string, args ...string) error {
	running, end := context.WithCancel(ctx)
	defer end()
	cmd := exec.CommandContext(running, "git", slices.Concat(optionsAlways, []string{"-C", r.dir, command}, args)...)
	cmd.Env, cmd.Stdin, cmd.WaitDelay = r.environment, input, waitDelay
	if r.sealed { // a user's git must get the terminal's signals, and may ask there
		endWithChildren(cmd)
	}
	messages := &tailWriter{limit: maxMessage}
	cmd.Stderr = messages
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("git cannot be run: %w", err)
	}
	consumed := consume(bufio.NewReaderSize(output, 64<<10))
	if consumed != nil {
		end()
	}
	failed := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case consumed != nil && !errors.Is(consumed, io.EOF) && !errors.Is(consumed, io.ErrUnexpectedEOF):
		return consumed
	case failed != nil:
		return &CommandError{command, r.name, messageLine(r.secret.Replace(string(messages.tail))), withCause(command, failed, string(messages.tail))}
	}
	return consumed
}

// run runs git for its effect, and ignores its output.
func (r *Repository) run(ctx context.Context, input io.Reader, command string, args ...string) error {
	drain := func(output *bufio.Reader) error {
		_, err := io.Copy(io.Discard, output)
		return err
	}
	return r.read(ctx, input, drain, command, args...)
}

// lines passes each line of git's output to take, without the line end.
func (r *Repository) lines(ctx context.Context, input io.Reader, take func(line string) error, command string, args ...string) error {
	return r.records(ctx, '\n', input, take, command, args...)
}

// maxRecord limits a record of git's output, in bytes. Paths are shorter on all
// systems.
const maxRecord = 16 << 10

// records passes each record of git's output to take, without the byte that ends it.
func (r *Repository) records(ctx context.Context, end byte, input io.Reader, take func(record string) error, command string, args ...string) error {
	split := func(output *bufio.Reader) error {
		s := bufio.NewScanner(output)
		s.Buffer(nil, maxRecord)
		s.Split(func(data []byte, atEOF bool) (int, []byte, error) {
			if i := bytes.IndexByte(data, end); i >= 0 {
				return i + 1, data[:i], nil
			}
			if atEOF && len(data) > 0 {
				return 0, nil, io.ErrUnexpectedEOF
			}
			return 0, nil, nil
		})
		for s.Scan() {
			if err := take(s.Text()); err != nil {
				return err
			}
		}
		if errors.Is(s.Err(), bufio.ErrTooLong) {
			return r.damaged("it has a name of more than %d bytes", maxRecord)
		}
		return s.Err()
	}
	return r.read(ctx, input, split, command, args...)
}

// list returns a list for the standard input of git.
func list(lines []string) io.Reader {
	if len(lines) == 0 {
		return strings.NewReader("")
	}
	return strings.NewReader(strings.Join(lines, "\n") + "\n")
}

// messageLine returns the end of git's messages on one line.
func messageLine(messages string) string {
	var lines []string
	for line := range strings.Lines(messages) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
				return ' '
			}
			return r
		}, line))
		if line != "" && !strings.HasPrefix(line, "hint:") && !strings.HasPrefix(line, "warning:") {
			lines = append(lines, line)
		}
	}
	const last = 4
	return strings.Join(lines[max(0, len(lines)-last):], " ")
}

// printable quotes a name if it has characters that would change the look of a terminal
// or a log.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// A tailWriter keeps the end of the written bytes.
type tailWriter struct {
	limit int // in bytes
	tail  []byte
}

func (w *tailWriter) Write(p []byte) (int, error) {
	w.tail = append(w.tail, p...)
	if over := len(w.tail) - w.limit; over > 0 {
		w.tail = slices.Delete(w.tail, 0, over)
	}
	return len(p), nil
}
