package address

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain quotes a string that would not look the same in a sentence.
func Plain(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}
