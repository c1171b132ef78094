package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// Exit statuses of the subcommands.
const (
	ExitProblem = 1 // the command found something that is wrong or missing
	ExitUsage   = 2 // the command was called wrongly, or could not do its work
)

// ErrProblem ends a subcommand with ExitProblem. The reasons have been printed.
var ErrProblem = errors.New("there are problems")

// An Error ends a command with a status. It is printed as cobra prints errors, as "Error: "
// and a sentence: Caddy's own wrapper writes errors to the log, as JSON or between a time
// and a level.
type Error struct {
	err    error
	Status error // Caddy's own error, which its main function looks for; nil: the status is 1
}

func (e *Error) Error() string { return e.err.Error() }

func (e *Error) Unwrap() []error {
	if e.Status == nil {
		return []error{e.err}
	}
	return []error{e.err, e.Status}
}

// Fail ends the command with a status and an error. Nil stays nil.
func Fail(cmd *cobra.Command, status int, err error) error {
	if err == nil {
		return nil
	}
	if out := cmd.ErrOrStderr(); IsTerminal(out) && !cmd.SilenceErrors { // in a log, it stays one line
		cmd.SilenceErrors = true
		fmt.Fprintln(Fitted(out), cmd.ErrPrefix(), err)
	}
	exit := func(caddycmd.Flags) (int, error) { return status, nil }
	return &Error{err, caddycmd.WrapCommandFuncForCobra(exit)(cmd, nil)}
}

// UsageError ends the command with ExitUsage.
func UsageError(cmd *cobra.Command, err error) error { return Fail(cmd, ExitUsage, err) }

// Exit ends the command with a status, and prints nothing.
func Exit(cmd *cobra.Command, status int) error {
	if status == 0 {
		return nil
	}
	cmd.SilenceErrors = true
	if status == ExitProblem {
		return ErrProblem
	}
	return Fail(cmd, status, ErrProblem)
}

// RunE has a command end with ExitUsage for errors that have no status of their own.
func RunE(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if _, hasStatus := errors.AsType[*Error](err); hasStatus || errors.Is(err, ErrProblem) {
			return err
		}
		if err != nil && wasInterrupted(cmd.Context()) { // it says that a context was canceled
			err = errors.New("interrupted before it was done")
		}
		return UsageError(cmd, err)
	}
}

// Interruptible returns the context of the command, which ends from now on when the user
// interrupts the process. A second signal ends the process.
func Interruptible(cmd *cobra.Command) (interruptible context.Context, stop func()) {
	interruptible, stop = signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(interruptible, stop)
	cmd.SetContext(interruptible)
	return interruptible, stop
}

// wasInterrupted reports whether a context of Interruptible ended by a signal, not by stop.
func wasInterrupted(ctx context.Context) bool {
	return ctx.Err() != nil && context.Cause(ctx) != context.Canceled
}

// NoArguments checks that a command has no arguments.
func NoArguments(hint string) cobra.PositionalArgs {
	return arguments(func(n int) bool { return n == 0 }, "unexpected argument: "+hint)
}

// Arguments checks the number of arguments.
func Arguments(n int, hint string) cobra.PositionalArgs {
	return arguments(func(given int) bool { return given == n }, hint)
}

// SomeArguments checks that a command has arguments.
func SomeArguments(hint string) cobra.PositionalArgs {
	return arguments(func(n int) bool { return n > 0 }, hint)
}

// arguments checks the number of arguments. The error does not repeat the arguments: one may
// be a token.
func arguments(fits func(n int) bool, hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if fits(len(args)) {
			return nil
		}
		return UsageError(cmd, errors.New(hint))
	}
}
