package moduledoc

import (
	"strings"
	"unicode"
)

// isProse reports whether a paragraph is text, and not only badges, a line of links, a
// table, or the marker of a generated part.
func isProse(s string) bool {
	if strings.HasPrefix(s, "|") || strings.HasPrefix(s, "[!") || strings.HasPrefix(s, "[[") {
		return false
	}
	letters, spaceless := 0, 0
	for _, r := range s {
		if unicode.IsLetter(r) {
			letters++
		}
		if IsSpaceless(r) {
			spaceless++
		}
	}
	if !strings.Contains(s, " ") && 2*spaceless < letters {
		return false // names of languages between links are no text
	}
	return letters >= 10 && 2*letters > len([]rune(s))
}

// CutAtWord shortens a text to at most limit bytes: after a word, unless that would leave less than
// half of them, as in a text whose script puts no spaces between words.
func CutAtWord(s string, limit int) string {
	const ellipsis = "…"
	if len(s) <= limit {
		return s
	}
	s = s[:limit-len(ellipsis)]
	if end := strings.LastIndexByte(s, ' '); end > len(s)/2 {
		s = s[:end]
	}
	s = strings.ToValidUTF8(s, "") // without a part of a character
	return strings.TrimRight(s, " ,;:.–-、。，；：") + ellipsis
}

// IsSpaceless reports whether a character belongs to a script that puts no spaces between
// words, or that writes endings together with them.
func IsSpaceless(r rune) bool {
	return r >= 0xe00 && (r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}
