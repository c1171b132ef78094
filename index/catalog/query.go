package catalog

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// Bounds of a query, beyond which nothing is looked for. What a search costs grows with the
// number of parts. A message of a client is longer than the words that are taken from it.
const (
	maxQuery      = 4 << 10 // bytes
	maxTyped      = 300     // bytes of what people type; the rest has been pasted
	maxQueryWords = 8
	maxQueryParts = 16
)

// punctuation is around words that come from a text, and in no name.
const punctuation = ",;:!?*()[]{}<>\"'`"

// A Query has the words of a search, which all must be found. The zero Query has none.
type Query struct {
	words   []word
	phrases []phrase
	source  string // the source of a provider that modules may require; may be empty
	most    bool   // see Relax

	// Named is set if the query is an address, a source or a URL.
	Named *Reference

	// Extract is what is looked for of a longer text, such as a message of a client; empty if all
	// of the text is.
	Extract string

	// IsHash is set if the query is a hash of a package, which a search does not find.
	IsHash bool
}

// A word is a word of a query, folded and not empty.
type word struct {
	text     string
	parts    []string // see partsOf
	whole    bool     // it must end where a word of the text ends
	separate bool     // each part must end there
	others   []word   // words in its place that are as good but for one rank
	typo     bool     // words that differ in one character are found, too
	optional bool     // what lacks it is found, too, behind what has it
	kind     entryKind
	page     posting // the kind of pages that are meant first; zero: none
}

// newWord returns a word with that many parts at most.
func newWord(text string, maxParts int) word {
	text = cutToken(text)
	parts := partsOf(text)
	return word{text: text, parts: parts[:min(len(parts), maxParts)]}
}

// A name is a word of a query as it was written.
type name struct {
	text     string
	optional bool
	page     posting
}

func namesOf(texts ...string) (names []name) {
	for _, text := range texts {
		names = append(names, name{text: text})
	}
	return names
}

// ParseQuery reads a query as people and tools write it, or paste it: words, an address, the
// source of a module or provider as configuration has it, the URL of a page, or a message with
// one of them. Quotes that tools put around a query are not part of it (checklist 112). own are
// hostnames of the registry, which say nothing about what is looked for.
func ParseQuery(text string, own ...svchost.Hostname) Query {
	isCut := len(text) > maxTyped
	text = text[:min(len(text), maxQuery)]
	var q Query
	parts := 0
	for _, name := range withoutStopWords(q.read(strings.TrimSpace(strings.ToValidUTF8(text, "")), own)) {
		folded := fold(strings.ToLower(name.text))
		isKnown := func(w word) bool { return w.text == folded }
		if folded == "" || slices.ContainsFunc(q.words, isKnown) {
			continue
		}
		if len(q.words) == maxQueryWords || parts == maxQueryParts {
			isCut = true
			break
		}
		w := newWord(folded, maxQueryParts-parts)
		parts += len(w.parts)
		w.kind = kindsByWord[folded]
		w.optional = name.optional || w.kind != anyKind
		w.page = name.page
		w.others = othersOf(&w)
		q.words = append(q.words, w)
	}
	q.words = withoutSymbols(q.words)
	if !slices.ContainsFunc(q.words, func(w word) bool { return !w.optional }) {
		for i := range q.words {
			q.words[i].optional = false
		}
	}
	q.phrases = phrasesOf(q.words)
	if isCut && q.Extract == "" {
		q.Extract = q.text()
	}
	return q
}

// text returns what is looked for.
func (q *Query) text() string {
	if q.Named != nil {
		return q.Named.Address.String()
	}
	texts := make([]string, len(q.words))
	for i := range q.words {
		texts[i] = q.words[i].text
	}
	return strings.Join(texts, " ")
}

// read returns the names to look for in a text.
func (q *Query) read(text string, own []svchost.Hostname) []name {
	q.IsHash = hash.MatchString(text)
	p := readPasted(text)
	if len(p.types) == 0 { // a resource may have an argument source
		text = withoutBlock(text)
		text = unquoted(assignment.ReplaceAllString(unquoted(text), ""))
		text = withoutVersions(instanceKey.ReplaceAllString(text, ""))
		if names, ok := q.readReference(text, own); ok {
			return namesOf(names...)
		}
		for _, reference := range p.references {
			if names, ok := q.readReference(reference, own); ok {
				q.extract(text, reference)
				return namesOf(names...)
			}
		}
	}
	if names := p.names(); len(names) > 0 {
		q.extract(text, required(names))
		return names
	}
	var names []name
	for _, field := range strings.FieldsFunc(text, func(r rune) bool {
		return r == '/' || unicode.IsSpace(r) || unicode.IsControl(r)
	}) {
		names = append(names, withoutAddress(cmp.Or(strings.Trim(field, punctuation), field))...)
	}
	return names
}

// extract says what is looked for of a text, if the text is so long that its reader may wonder.
func (q *Query) extract(text, found string) {
	if len(strings.Fields(text)) > maxQueryWords/2 {
		q.Extract = found
	}
}

// required returns the names that must be found.
func required(names []name) string {
	var texts []string
	for _, n := range names {
		if !n.optional {
			texts = append(texts, n.text)
		}
	}
	return strings.Join(texts, " ")
}

// hash is a hash of a package, as lock files and lists of checksums have it.
var hash = regexp.MustCompile(`^(?:"?(?:h1:[\w+/]{43}=|zh:[0-9a-f]{64})"?,?|[0-9a-f]{64})$`)

// othersOf returns words in the place of a word.
func othersOf(w *word) (others []word) {
	add := func(whole bool, texts ...string) {
		for _, text := range texts {
			other := newWord(text, max(len(w.parts), 2))
			other.whole = whole
			other.separate = whole && len(other.parts) > 1
			others = append(others, other)
		}
	}
	numbers := inOtherNumber(w.text)
	for _, text := range numbers {
		other := newWord(text, len(w.parts))
		other.whole = true
		others = append(others, other)
	}
	for _, text := range append([]string{w.text}, numbers...) {
		add(true, sameAs(text)...)
	}
	add(true, nameOfRepository(w.text)...)
	if versionLike.MatchString(w.text) {
		text := versionWord(w.text)
		others = append(others, word{text: text, parts: []string{text}})
	}
	return append(others, hyphenated(w, others)...)
}

// hyphenated returns the names that a word and the words in its place may be: configurations call a
// module key_vault whose name is key-vault. Only names are found by them.
func hyphenated(w *word, others []word) (names []word) {
	for _, form := range append([]word{*w}, others...) {
		if strings.Contains(form.text, "_") {
			names = append(names, word{text: strings.ReplaceAll(form.text, "_", "-"), whole: form.whole})
		}
	}
	return names
}

// withoutBlock returns the source in lines of configuration, and other texts as they are.
func withoutBlock(text string) string {
	if match := sourced.FindStringSubmatch(text); match != nil {
		return match[1]
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

// withoutVersions returns the address in a text that has only versions and constraints, a platform or
// hashes beside it. So have the titles of pages. Browsers show what a page is a part of, and the name
// of the registry, between dots.
func withoutVersions(text string) string {
	if !strings.Contains(text, "/") && !strings.Contains(text, providerPrefix) {
		return text
	}
	for part := range strings.SplitSeq(text, " · ") {
		fields := strings.Fields(part)
		named := slices.DeleteFunc(slices.Clone(fields), besideName.MatchString)
		if len(named) == 1 && len(named) < len(fields) && (strings.Contains(named[0], "/") || strings.HasPrefix(named[0], providerPrefix)) {
			return named[0]
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

// Loosen returns a query that finds similar words, too: without an ending, with one character
// that is not the same, in two words, and with umlauts that were written as two letters. Versions are
// left out, since only the latest ones are searched. It does not depend on what there is to be found.
func (q Query) Loosen() Query {
	q.words = without(q.words, func(w word) bool { return versionLike.MatchString(w.text) })
	var loose []word
	few := len(q.words) <= maxFewInTwo
	for _, w := range q.words {
		for _, part := range looseParts(w, few) {
			if len(loose) < 2*maxQueryWords {
				loose = append(loose, part)
			}
		}
	}
	q.words, q.phrases = loose, phrasesOf(loose)
	return q
}

// maxFewInTwo is how many words a query has at most that are looked for as two words each.
const maxFewInTwo = 3

// looseParts returns the words for which a word is looked for if nothing has it. A word with a hyphen
// may have a typo in each of its parts.
func looseParts(w word, few bool) []word {
	if len(w.parts) > 1 && !moduledoc.IsSpaceless([]rune(w.parts[0])[0]) {
		var all []word
		for _, part := range w.parts {
			all = append(all, looseParts(word{text: part, parts: []string{part}, optional: w.optional}, few)...)
		}
		return all
	}
	w.others = slices.Clone(w.others)
	for _, other := range withoutEnding(w.text) {
		w.others = append(w.others, newWord(other, len(w.parts)))
	}
	if other := umlauts.Replace(w.text); other != w.text {
		w.others = append(w.others, word{text: other, parts: []string{other}, whole: true})
	}
	if few {
		w.others = append(w.others, inTwo(w.text)...)
	}
	w.typo = len(w.text) >= leastTypo && len(w.parts) == 1
	return []word{w}
}

// umlauts are written as two letters where a keyboard has none of them. Texts are without them.
var umlauts = strings.NewReplacer("ae", "a", "oe", "o", "ue", "u")

// Relax returns a query that finds what has most of the words: as many as anything has, and at least
// half of them.
func (q Query) Relax() Query {
	q.words = slices.Clone(q.words)
	for i := range q.words {
		q.words[i].optional = q.words[i].optional && q.words[i].kind != anyKind
	}
	q.most = true
	return q
}

// allowed is how many words a result may lack.
func (q *Query) allowed() int {
	if !q.most {
		return 0
	}
	return q.required() / 2
}

// required is how many words are not optional.
func (q *Query) required() (n int) {
	for i := range q.words {
		if !q.words[i].optional {
			n++
		}
	}
	return n
}

// versionLike is a version, or the beginning of one.
var versionLike = regexp.MustCompile(`^v?\d+(?:\.\d+)+(?:[-+].*)?$`)

// versionWord is the word of a version in an index, which no other number begins.
func versionWord(version string) string { return "v" + strings.TrimPrefix(version, "v") }

// leastTypo is the length of a word that may have a typo. Short words would be others. In a word of
// that length, only two characters in the wrong order are a typo.
const leastTypo = 3

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
