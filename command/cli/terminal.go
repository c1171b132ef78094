package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

const (
	// Width is the width of a terminal, in columns.
	Width = 80

	// Indent is the margin of a text about the line above it.
	Indent = 4
)

// A Result is the output of a subcommand: text or, with --json, one document.
type Result interface {
	// WriteText writes the result to out, and problems to errs, where they are seen when
	// a timer runs the command. It writes whole lines.
	WriteText(out, errs io.Writer) error

	// Document is encoded as JSON. Its lists are never nil.
	Document() any

	// Status is the exit status of the command.
	Status() int
}

// Finish prints the result of a command, and ends the command with its status.
func Finish(cmd *cobra.Command, r Result) error {
	if err := write(cmd, r); err != nil {
		return err
	}
	return Exit(cmd, r.Status())
}

func write(cmd *cobra.Command, r Result) error {
	if asJSON, _ := cmd.Flags().GetBool("json"); !asJSON {
		return r.WriteText(Fitted(cmd.OutOrStdout()), Fitted(cmd.ErrOrStderr()))
	}
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r.Document())
}

// Wrap breaks text into lines that fit the terminal, each behind a margin. A
// command between backquotes stays on one line so that it can be copied.
func Wrap(text string, margin int) string { return WrapBehind(text, strings.Repeat(" ", margin)) }

// WrapBehind is Wrap with a prefix for each line.
func WrapBehind(text, prefix string) string {
	var b strings.Builder
	column := 0
	for _, word := range words(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+length > Width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		if column == 0 {
			b.WriteString(prefix)
			column = utf8.RuneCountInString(prefix)
		}
		b.WriteString(word)
		column += length
	}
	return b.String() + "\n"
}

// A fittedWriter breaks lines that do not fit the terminal, and indents the rest of a broken
// line. In a file or a log, lines stay whole.
type fittedWriter struct {
	out  io.Writer
	rest []byte // of a line without its end
}

// Fitted returns a writer of whole lines to out.
func Fitted(out io.Writer) io.Writer {
	if !IsTerminal(out) {
		return out
	}
	return &fittedWriter{out: out}
}

func (w *fittedWriter) Write(text []byte) (int, error) {
	w.rest = append(w.rest, text...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte{'\n'})
		if !found {
			return len(text), nil
		}
		if _, err := io.WriteString(w.out, fit(string(line))+"\n"); err != nil {
			return 0, err
		}
		w.rest = rest
	}
}

// fit breaks a line. A path is not broken, so that it can be copied.
func fit(line string) string {
	text := strings.TrimLeft(line, " ")
	if utf8.RuneCountInString(line) <= Width || !strings.Contains(text, " ") {
		return line
	}
	margin := len(line) - len(text)
	return line[:margin] + strings.TrimSpace(Wrap(text, margin+Indent))
}

// words splits text at spaces that are not in a command.
func words(text string) []string {
	command := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '`' {
			command = !command
		}
		return r == ' ' && !command
	})
}

// Sentence turns a message into a sentence. If the message begins with a name, such as the
// name of a file, and not with a word, its first letter stays as it is: the case of names
// matters.
func Sentence(message string) string {
	if !strings.HasSuffix(message, "?") {
		message += "."
	}
	begin, _, _ := strings.Cut(message, " ")
	if strings.ContainsFunc(strings.TrimRight(begin, ".,:;?"), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		return message
	}
	first, size := utf8.DecodeRuneInString(message)
	return string(unicode.ToUpper(first)) + message[size:]
}

// Printable quotes text from a file name if it has characters that would change
// the look of a terminal.
func Printable(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}

// Count is a number with its noun, in the plural if needed.
func Count[N int | int64](n N, noun string) string {
	if n != 1 {
		if stem, found := strings.CutSuffix(noun, "ry"); found { // entry
			noun = stem + "rie"
		}
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// maxListed is how many names List names.
const maxListed = 5

// List lists the first of some names, and counts the others.
func List(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
