package catalog

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	svchost "github.com/hashicorp/terraform-svchost"
)

// Bounds of a query, beyond which nothing is looked for. What a search costs grows with the
// number of parts.
const (
	maxQuery      = 300 // bytes
	maxQueryWords = 8
	maxQueryParts = 16
)

// punctuation is around words that come from a text, and in no name.
const punctuation = ",;:!?*()[]{}<>\"'`"

// A Query has the words of a search, which all must be found. The zero Query has none.
type Query struct {
	words  []word
	source string // the source of a provider that modules may require; may be empty

	// Named is set if the query is an address, a source or a URL.
	Named *Reference
}

// A word is a word of a query, folded and not empty.
type word struct {
	text   string
	parts  []string // see partsOf
	whole  bool     // it must end where a word of the text ends
	others []word   // words in its place that are as good but for one rank
	typo   bool     // words that differ in one character are found, too
}

// newWord returns a word with that many parts at most.
func newWord(text string, maxParts int) word {
	text = cutToken(text)
	parts := partsOf(text)
	return word{text: text, parts: parts[:min(len(parts), maxParts)]}
}

// assignment is the beginning of a line of configuration.
var assignment = regexp.MustCompile(`^(?i:source)\s*=\s*`)

// sourced is the source in several lines of configuration, such as those of a block.
var sourced = regexp.MustCompile(`(?s)^(?:.*[\s{])?source\s*=\s*"([^"]+)"`)

// declared is the first line of a resource, with its type.
var declared = regexp.MustCompile(`(?s)^(?:resource|data|ephemeral)\s+"([\w-]+)"(?:\s+"[^"]*")?\s*(?:\{.*)?$`)

// typed is the type of resources in the address of a resource, as configurations and clients write
// it, with the calls of modules that it is in.
var typed = regexp.MustCompile(`^(?:module\.[\w-]+\.)*(?:(?:data|ephemeral|resource)\.(\w+)(?:\..*)?|([a-z]\w*_\w*)\.[\w-]+(?:\..*)?)$`)

// providerFunction is the name of a function in a call of it.
var providerFunction = regexp.MustCompile(`^provider::[\w-]+::(\w+)(?:\(.*)?$`)

// instanceKey is the key of one instance of a resource or module.
var instanceKey = regexp.MustCompile(`\b\[(?:\d+|"[^"]*")\]`)

// withoutAddress returns the type in the address of a resource, the name of the function in a
// call, and other words as they are.
func withoutAddress(word string) string {
	for _, form := range []*regexp.Regexp{typed, providerFunction} {
		if match := form.FindStringSubmatch(word); match != nil {
			return strings.Join(match[1:], "") // one of them, the others are empty
		}
	}
	return word
}

// ParseQuery reads a query as people and tools write it, or paste it: words, an address, the
// source of a module or provider as configuration has it, or the URL of a page. Quotes that
// tools put around a query are not part of it (checklist 112). own are hostnames of the
// registry, which say nothing about what is looked for.
func ParseQuery(text string, own ...svchost.Hostname) Query {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	text = withoutBlock(strings.TrimSpace(strings.ToValidUTF8(text, "")))
	text = unquoted(assignment.ReplaceAllString(unquoted(text), ""))
	text = instanceKey.ReplaceAllString(text, "")
	text = withoutTitle(text)
	var q Query
	names, isReference := q.readReference(text, own)
	if !isReference {
		names = strings.FieldsFunc(text, func(r rune) bool {
			return r == '/' || unicode.IsSpace(r) || unicode.IsControl(r)
		})
		for i := range names {
			names[i] = withoutAddress(cmp.Or(strings.Trim(names[i], punctuation), names[i]))
		}
	}
	parts := 0
	for _, name := range names {
		folded := fold(strings.ToLower(name))
		isKnown := func(w word) bool { return w.text == folded }
		if folded == "" || len(q.words) == maxQueryWords || parts == maxQueryParts || slices.ContainsFunc(q.words, isKnown) {
			continue
		}
		w := newWord(folded, maxQueryParts-parts)
		parts += len(w.parts)
		for _, text := range inOtherNumber(folded) {
			other := newWord(text, len(w.parts))
			other.whole = true
			w.others = append(w.others, other)
		}
		w.others = append(w.others, hyphenated(w)...)
		q.words = append(q.words, w)
	}
	q.words = withoutSymbols(q.words)
	return q
}

// hyphenated returns the names that a word and the words in its place may be: configurations call a
// module key_vault whose name is key-vault. Only names are found by them.
func hyphenated(w word) (names []word) {
	for _, form := range append([]word{w}, w.others...) {
		if strings.Contains(form.text, "_") {
			names = append(names, word{text: strings.ReplaceAll(form.text, "_", "-"), whole: form.whole})
		}
	}
	return names
}

// withoutBlock returns the source in lines of configuration, the type in the first line of a
// resource, and other texts as they are.
func withoutBlock(text string) string {
	for _, form := range []*regexp.Regexp{declared, sourced} { // a resource may have an argument source
		if match := form.FindStringSubmatch(text); match != nil {
			return match[1]
		}
	}
	return text
}

// withoutSymbols leaves out symbols between other words, as in "vpc & peering": texts need not have
// them.
func withoutSymbols(words []word) []word {
	return without(words, func(w word) bool { return len(w.parts) == 0 })
}

// without returns the words that are not of a kind, in memory of their own; all words if each is.
func without(words []word, isOfKind func(word) bool) []word {
	if left := slices.DeleteFunc(slices.Clone(words), isOfKind); len(left) > 0 {
		return left
	}
	return slices.Clone(words)
}

// withoutTitle returns the address in the title of a page, which has a version after it. Browsers show
// what it is a part of, and the name of the registry, between dots.
func withoutTitle(text string) string {
	for part := range strings.SplitSeq(text, " · ") {
		words := strings.Fields(part)
		if len(words) == 2 && strings.Contains(words[0], "/") && isVersion(words[1]) {
			return words[0]
		}
	}
	return text
}

// isText reports whether a text may have come from a keyboard.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }

func unquoted(s string) string {
	for _, quote := range []string{"'", `"`} {
		if rest, ok := strings.CutPrefix(s, quote); ok {
			return strings.TrimSpace(strings.TrimSuffix(rest, quote))
		}
	}
	return s
}

// Loosen returns a query that finds similar words, too: without an ending, and with one
// character that is not the same. Versions are left out, since only the latest ones are searched.
// It does not depend on what there is to be found.
func (q Query) Loosen() Query {
	q.words = without(q.words, func(w word) bool { return strings.Contains(w.text, ".") && isVersion(w.text) })
	for i := range q.words {
		w := &q.words[i]
		w.others = slices.Clone(w.others)
		for _, other := range withoutEnding(w.text) {
			w.others = append(w.others, newWord(other, len(w.parts)))
		}
		w.typo = len(w.text) >= leastTypo && len(w.parts) == 1
	}
	return q
}

// leastTypo is the length of a word that may have a typo. Short words would be others.
const leastTypo = 4

// IsEmpty reports whether the query has no words.
func (q Query) IsEmpty() bool { return len(q.words) == 0 }

// String returns what the query looks for. Queries that look for the same are equal.
func (q Query) String() string {
	var b strings.Builder
	for _, w := range q.words {
		b.WriteString(w.text + " ")
	}
	b.WriteString("\x00" + q.source)
	if q.Named != nil {
		b.WriteString("\x00" + q.Named.String())
	}
	return b.String()
}
