package command

import (
	"errors"
	"fmt"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// Exit statuses of the subcommands.
const (
	exitProblem = 1 // the command found something that is wrong or missing
	exitUsage   = 2 // it was called wrongly, or could not do its work
)

// errProblem ends a subcommand with exitProblem. The reasons have been printed.
var errProblem = errors.New("there are problems")

// problem returns errProblem, which is not printed.
func problem(cmd *cobra.Command) error {
	cmd.SilenceErrors = true
	return errProblem
}

// usageError ends the command with exitUsage.
func usageError(cmd *cobra.Command, err error) error {
	return failWith(cmd, exitUsage, err)
}

// noArguments is the check of the arguments of a command that takes none. The error does not
// repeat them: one may be a token.
func noArguments(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usageError(cmd, errors.New("unexpected argument: "+hint))
	}
}

// A commandError ends a command with a status. It is printed as cobra does, as "Error: "
// and a sentence: Caddy's own wrapper writes errors to the log, as JSON or between
// a time and a level.
type commandError struct {
	err    error
	status error // Caddy's own, which its main function looks for
}

func (e *commandError) Error() string { return e.err.Error() }

func (e *commandError) Unwrap() []error {
	if e.status == nil { // the status is 1, as of any error
		return []error{e.err}
	}
	return []error{e.err, e.status}
}

// failWith ends the command with a status and an error. Nil stays nil.
func failWith(cmd *cobra.Command, status int, err error) error {
	if err == nil {
		return nil
	}
	if out := cmd.ErrOrStderr(); isTerminal(out) && !cmd.SilenceErrors { // in a log, it stays one line
		cmd.SilenceErrors = true
		w, _ := fitted(out)
		fmt.Fprintln(w, cmd.ErrPrefix(), err)
	}
	exit := func(caddycmd.Flags) (int, error) { return status, nil }
	return &commandError{err, caddycmd.WrapCommandFuncForCobra(exit)(cmd, nil)}
}
