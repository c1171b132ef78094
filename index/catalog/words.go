package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// Searches compare words in a folded form: in lower case, without accents, and with Latin
// letters that have no accent but look like another one as people type them. Text in scripts
// that put no spaces between words is compared by its characters.

// isPlain reports whether a text is folded already.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || 'A' <= s[i] && s[i] <= 'Z' {
			return false
		}
	}
	return true
}

// fold returns the folded form of a text.
func fold(s string) string {
	if isPlain(s) {
		return s
	}
	b := make([]byte, 0, len(s))
	for _, r := range s {
		b = appendFolded(b, r)
	}
	return string(b)
}

// offsets say where in a text each byte of its folded form comes from. The first bytes are at their
// own places; rest is for the bytes from the first character on that is not ASCII, with the length of
// the text at its end, and nil if there is none.
type offsets struct {
	ascii int
	rest  []int32
}

func (o offsets) origin(i int) int {
	if o.rest == nil || i < o.ascii {
		return i
	}
	return int(o.rest[i-o.ascii])
}

// foldAt is fold, and returns also where the bytes come from.
func foldAt(s string) (folded string, from offsets) {
	from.ascii = strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
	if from.ascii < 0 {
		return strings.ToLower(s), from
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(strings.ToLower(s[:from.ascii]))
	from.rest = make([]int32, 0, len(s)-from.ascii+1)
	var one [utf8.UTFMax]byte
	for i, r := range s[from.ascii:] {
		b.Write(appendFolded(one[:0], r))
		for from.ascii+len(from.rest) < b.Len() {
			from.rest = append(from.rest, int32(from.ascii+i))
		}
	}
	from.rest = append(from.rest, int32(len(s)))
	return b.String(), from
}

// likeOthers are letters that decompose into nothing, but are typed as others.
var likeOthers = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d", 'ð': "d", 'þ': "th", 'ı': "i", 'ħ': "h",
}

func appendFolded(b []byte, r rune) []byte {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(b, byte(r))
	}
	r = unicode.ToLower(r)
	if other, ok := likeOthers[r]; ok {
		return append(b, other...)
	}
	if isAccent(r) {
		return b
	}
	if '\u2010' <= r && r <= '\u2027' { // dashes, quotation marks and the ellipsis, which are common and in no word
		return utf8.AppendRune(b, r)
	}
	start := len(b)
	for _, part := range norm.NFKD.String(string(r)) {
		switch {
		case isAccent(part):
		case unicode.IsMark(part), unicode.In(part, unicode.Hangul): // it is another letter without them
			return utf8.AppendRune(b[:start], r)
		default:
			b = utf8.AppendRune(b, unicode.ToLower(part))
		}
	}
	return b
}

// isAccent reports whether a character only modifies the letter before it. Marks of other
// blocks are parts of letters.
func isAccent(r rune) bool { return r >= 0x300 && r <= 0x36f }

// isInWord reports whether a character is part of a word. Names of inputs and resources are
// words with underscores.
func isInWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || r == '_'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// eachRun calls visit with the words of a folded text, and where they begin. A run of
// characters without spaces is a word, and spaceless.
func eachRun(s string, visit func(at int, word string, spaceless bool)) {
	start, kind := 0, 0 // of the run before i: 0 none, 1 word, 2 spaceless
	end := func(i int) {
		at, word := start, s[start:i]
		if kind == 1 {
			word = strings.TrimLeft(word, "_")
			at = i - len(word)
			word = strings.TrimRight(word, "_")
		}
		if kind != 0 && word != "" {
			visit(at, word, kind == 2)
		}
	}
	for i, r := range s {
		now := 0
		switch {
		case !isInWord(r):
		case r >= utf8.RuneSelf && moduledoc.IsSpaceless(r):
			now = 2
		default:
			now = 1
		}
		if now != kind {
			end(i)
			start, kind = i, now
		}
	}
	end(len(s))
}

// Bounds of what an index has of one word, which texts of others may have made up.
const (
	maxToken = 128 // bytes
	maxEnds  = 16
)

// cutToken cuts off what is beyond the bound.
func cutToken(s string) string {
	if len(s) <= maxToken {
		return s
	}
	at := maxToken
	for !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at]
}

// eachToken calls visit with what an index has of a folded text: the beginning of each word,
// and of its ends after an underscore, so that nat_gateway_count is found by gateway too. Of
// characters without spaces it has all pairs, and the last character. whole reports whether
// the token is a whole word.
func eachToken(s string, visit func(at int, token string, whole bool)) {
	eachRun(s, func(start int, word string, spaceless bool) {
		if spaceless {
			eachPair(word, true, func(pair string) { visit(start, pair, true) })
			return
		}
		visit(start, cutToken(word), true)
		rest := word
		for range maxEnds {
			i := strings.IndexByte(rest, '_')
			if i < 0 {
				return
			}
			if rest = strings.TrimLeft(rest[i:], "_"); rest != "" {
				visit(start+len(word)-len(rest), cutToken(rest), false)
			}
		}
	})
}

// eachPair calls visit with all pairs of characters, and with the last character if last is
// set or there is no other.
func eachPair(word string, last bool, visit func(pair string)) {
	for i := 0; i < len(word); {
		_, size := utf8.DecodeRuneInString(word[i:])
		_, next := utf8.DecodeRuneInString(word[i+size:])
		if next > 0 || last || i == 0 {
			visit(word[i : i+size+next])
		}
		i += size
	}
}

// partsOf returns the tokens of a word of a query. A text must have them all.
func partsOf(word string) (parts []string) {
	eachRun(word, func(_ int, run string, spaceless bool) {
		if spaceless {
			eachPair(run, false, func(pair string) { parts = append(parts, pair) })
			return
		}
		parts = append(parts, run)
	})
	return parts
}

// endsWord reports whether what follows in a text is not part of a word, or of another part of
// a name.
func endsWord(rest string) bool {
	after, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || after == '_' || !isInWord(after)
}

// inOtherNumber returns what a word may be without an English plural, or the plural of a word
// that is not its beginning.
func inOtherNumber(word string) (others []string) {
	add := func(ending, replacement string, least int) {
		if stem, ok := strings.CutSuffix(word, ending); ok && len(stem) >= least {
			others = append(others, stem+replacement)
		}
	}
	switch {
	case strings.HasSuffix(word, "ss"), strings.HasSuffix(word, "us"):
	case strings.HasSuffix(word, "ies"):
		add("ies", "y", 2)
	case strings.HasSuffix(word, "y"):
		if before := strings.TrimSuffix(word, "y"); before != "" && !strings.ContainsRune("aeiou", rune(before[len(before)-1])) {
			add("y", "ies", 2)
		}
	default:
		add("es", "", 3)
		add("s", "", 3)
	}
	return others
}

// withoutEnding returns what a word may be without a simple ending of a verb.
func withoutEnding(word string) (others []string) {
	for _, ending := range []string{"ing", "ed", "er", "ion"} {
		if stem, ok := strings.CutSuffix(word, ending); ok && len(stem) >= 4 {
			others = append(others, stem)
		}
	}
	return others
}

// isTypoOf reports whether a text has a word with a typo.
func (w *word) isTypoOf(token string) bool {
	if len(w.text) == leastTypo {
		return len(token) == leastTypo && isTypo(token, w.text) && token[1] == w.text[2] && token[2] == w.text[1]
	}
	return isTypo(token, w.text)
}

// isTypo reports whether one character more, less or other, or two in the wrong order, make
// one word out of another.
func isTypo(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
