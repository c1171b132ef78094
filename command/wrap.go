package command

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	terminalWidth = 80
	reportIndent  = 4 // of what is said about the line above
)

// wrap breaks a text into lines that fit, each behind a margin. Between two
// backquotes is a command, which stays on one line so that it can be copied.
func wrap(text string, margin int) string {
	var b strings.Builder
	column := 0
	for _, word := range words(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+length > terminalWidth:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		if column == 0 {
			b.WriteString(strings.Repeat(" ", margin))
			column = margin
		}
		b.WriteString(word)
		column += length
	}
	return b.String() + "\n"
}

// words splits a text at spaces, but for those in commands.
func words(text string) []string {
	command := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '`' {
			command = !command
		}
		return r == ' ' && !command
	})
}

// sentence gives a message the form of one.
func sentence(message string) string {
	first, size := utf8.DecodeRuneInString(message)
	return string(unicode.ToUpper(first)) + message[size:] + "."
}
