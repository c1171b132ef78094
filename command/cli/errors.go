package cli

import (
	"errors"
	"fmt"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// Exit statuses of the subcommands.
const (
	ExitProblem = 1 // the command found something that is wrong or missing
	ExitUsage   = 2 // it was called wrongly, or could not do its work
)

// ErrProblem ends a subcommand with exitProblem. The reasons have been printed.
var ErrProblem = errors.New("there are problems")

// Problem returns errProblem, which is not printed.
func Problem(cmd *cobra.Command) error {
	cmd.SilenceErrors = true
	return ErrProblem
}

// UsageError ends the command with exitUsage.
func UsageError(cmd *cobra.Command, err error) error {
	return Fail(cmd, ExitUsage, err)
}

// NoArguments is the check of the arguments of a command that takes none. The error does not
// repeat them: one may be a token.
func NoArguments(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return UsageError(cmd, errors.New("unexpected argument: "+hint))
	}
}

// A Error ends a command with a status. It is printed as cobra does, as "Error: "
// and a sentence: Caddy's own wrapper writes errors to the log, as JSON or between
// a time and a level.
type Error struct {
	err    error
	Status error // Caddy's own, which its main function looks for
}

func (e *Error) Error() string { return e.err.Error() }

func (e *Error) Unwrap() []error {
	if e.Status == nil { // the status is 1, as of any error
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
		w, _ := Fitted(out)
		fmt.Fprintln(w, cmd.ErrPrefix(), err)
	}
	exit := func(caddycmd.Flags) (int, error) { return status, nil }
	return &Error{err, caddycmd.WrapCommandFuncForCobra(exit)(cmd, nil)}
}
