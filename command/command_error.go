package command

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// A commandError ends a command with a status. What prints it is cobra, as
// "Error: " and a sentence: Caddy's own wrapper writes errors to the log, where
// people who typed a command get them as JSON or between a time and a level.
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
	exit := func(caddycmd.Flags) (int, error) { return status, nil }
	return &commandError{err, caddycmd.WrapCommandFuncForCobra(exit)(cmd, nil)}
}
