package catalog

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// A Run is a part of a text. It is marked if a search has found it.
type Run struct {
	Text   string
	Marked bool
}

// A finding says which words of a query have been found.
type finding struct {
	query  *Query
	found  []bool
	source bool // the provider
}

func (q *Query) newFinding() finding { return finding{query: q, found: make([]bool, len(q.words))} }

func (f finding) clone() finding {
	f.found = slices.Clone(f.found)
	return f
}

// all reports whether all words have been found that a result must have.
func (f finding) all() bool {
	lacking := 0
	for i, found := range f.found {
		if !found && !f.query.words[i].optional {
			lacking++
		}
	}
	return lacking <= f.query.allowed() && f.any()
}

func (f finding) any() bool { return f.source || slices.Contains(f.found, true) }

// with returns what two findings have found together.
func (f finding) with(other finding) finding {
	f = f.clone()
	for i, found := range other.found {
		f.found[i] = f.found[i] || found
	}
	return f
}

// A where says where in a text a word may be.
type where bool

const (
	atWords  where = false // at the beginning of a word
	anywhere where = true
)

// look finds words in a text.
func (f *finding) look(text string, at where) { f.spans(text, at) }

// mark finds words in a text, and returns the text with marks.
func (f *finding) mark(text string, at where) []Run { return runsOf(text, f.spans(text, at)) }

// markPath is mark for the path of a submodule. All are in modules, so that this word finds
// none.
func (f *finding) markPath(s *submoduleText) []Run {
	runs := f.mark(s.name, anywhere)
	if folder := strings.TrimSuffix(s.path, s.name); folder != "" {
		runs = append([]Run{{folder, false}}, runs...)
	}
	return runs
}

// A span is a part of a text.
type span struct{ from, to int }

// spans finds words in a text, and returns where they are, in order.
func (f *finding) spans(text string, at where) (all []span) {
	if text == "" {
		return nil
	}
	folded, from := foldAt(text)
	for i := range f.query.words {
		found := findWord(&f.query.words[i], folded, at)
		f.found[i] = f.found[i] || len(found) > 0
		all = append(all, found...)
	}
	for i := range f.query.phrases {
		all = append(all, f.phrase(&f.query.phrases[i], folded, at)...)
	}
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	joined := all[:0]
	for _, s := range all {
		s = span{from.origin(s.from), from.origin(s.to)}
		if n := len(joined); n > 0 && s.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// phrase finds the words of a phrase in a folded text, where it stands for them.
func (f *finding) phrase(p *phrase, folded string, at where) (all []span) {
	for _, forms := range [][]word{p.names, p.codes} {
		for i := range forms {
			all = append(all, occurrences(forms[i].text, forms[i].whole, folded, at)...)
		}
	}
	for i := p.from; i < p.to && len(all) > 0; i++ {
		f.found[i] = true
	}
	return all
}

// findWord returns where a word is in a folded text: the word itself, else a word in its
// place.
func findWord(w *word, folded string, at where) []span {
	if found := findText(w, folded, at); found != nil {
		return found
	}
	for i := range w.others {
		if found := findText(&w.others[i], folded, at); found != nil {
			return found
		}
	}
	if !w.typo || strings.IndexByte(folded, w.text[0]) < 0 {
		return nil
	}
	var found []span
	eachToken(folded, func(at int, token string, _ bool) {
		if len(found) < maxOccurrences && token[0] == w.text[0] && w.isTypoOf(token) {
			found = append(found, span{at, at + len(token)})
		}
	})
	return found
}

func findText(w *word, folded string, at where) (found []span) {
	if found = occurrences(w.text, w.whole, folded, at); found != nil || len(w.parts) < 2 {
		return found
	}
	for i, part := range w.parts {
		one := occurrences(part, w.whole && i == len(w.parts)-1, folded, at)
		if one == nil {
			return nil
		}
		found = append(found, one...)
	}
	return found
}

// maxOccurrences is how often a word is marked in a text.
const maxOccurrences = 10

// occurrences returns where a text is in another. With whole, a word has to begin and end there.
func occurrences(needle string, whole bool, folded string, at where) (found []span) {
	if needle == "" {
		return nil
	}
	if whole {
		at = atWords
	}
	for start := 0; len(found) < maxOccurrences; {
		i := strings.Index(folded[start:], needle)
		if i < 0 {
			return found
		}
		i += start
		if (at == anywhere || beginsWord(folded, i)) && (!whole || endsWord(folded[i+len(needle):])) {
			found = append(found, span{i, i + len(needle)})
			start = i + len(needle)
			continue
		}
		_, size := utf8.DecodeRuneInString(folded[i:])
		start = i + size
	}
	return found
}

// beginsWord reports whether a word begins at a place in a text, or a part of a name.
func beginsWord(s string, i int) bool {
	if i == 0 {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i:])
	return !isInWord(before) || before == '_' || moduledoc.IsSpaceless(before) || moduledoc.IsSpaceless(after)
}

func runsOf(text string, marks []span) (runs []Run) {
	at := 0
	for _, m := range marks {
		if m.from > at {
			runs = append(runs, Run{text[at:m.from], false})
		}
		runs = append(runs, Run{text[m.from:m.to], true})
		at = m.to
	}
	if at < len(text) {
		runs = append(runs, Run{text[at:], false})
	}
	return runs
}
