package catalog

import (
	"iter"
	"strings"
)

// A segment is an index of some entries, which never changes.
type segment struct {
	rows   map[*Entry]int32 // the number of each entry
	first  []int32          // the first row of each entry
	owners []int32          // the entry of each row
	size   int32
	names  nameIndex
	words  wordIndex
}

func newSegment(entries []*Entry) *segment {
	s := &segment{rows: make(map[*Entry]int32, len(entries))}
	b := segmentBuilder{names: make(indexBuilder), words: make(indexBuilder)}
	for i, e := range entries {
		s.rows[e] = int32(i)
		s.first = append(s.first, b.row)
		b.add(e.text())
		for int32(len(s.owners)) < b.row {
			s.owners = append(s.owners, int32(i))
		}
	}
	s.size = b.row
	s.names, s.words = newNameIndex(b.names), wordIndex{b.words.index()}
	return s
}

func (s *segment) has(e *Entry) bool {
	_, ok := s.rows[e]
	return ok
}

// A segmentBuilder collects the words of entries.
type segmentBuilder struct {
	names, words indexBuilder
	row          int32
}

// add adds the rows of an entry.
func (b *segmentBuilder) add(t text) {
	for i, name := range t.names {
		b.addName(name, min(posting(i), otherName))
	}
	b.addProse(t.description, proseWord)
	b.addProse(t.further, furtherWord)
	b.addCodes(t.codes)
	b.row++
	for i := range t.submodules {
		sub := &t.submodules[i]
		b.addName(sub.name, ownName)
		b.addProse(sub.description, proseWord)
		b.addCodes(sub.codes)
		b.row++
	}
	for i := range t.pages {
		p := &t.pages[i]
		b.addCode(code{Named, p.Name(t.typ)})
		b.addProse(p.Title, proseWord)
		b.row++
	}
}

// addName adds a name, and its words, which may have a typo in a query.
func (b *segmentBuilder) addName(name string, kind posting) {
	name = fold(name)
	b.names.add(name, newPosting(b.row, kind))
	b.addProse(name, nameWord)
}

func (b *segmentBuilder) addProse(text string, kind posting) {
	eachToken(fold(text), func(_ int, token string, _ bool) { b.words.add(token, newPosting(b.row, kind)) })
}

func (b *segmentBuilder) addCodes(codes iter.Seq[code]) {
	for c := range codes {
		b.addCode(c)
	}
}

func (b *segmentBuilder) addCode(c code) {
	folded := fold(c.text)
	if c.kind == Requires {
		if len(folded) > maxQuery || strings.Count(folded, "/") > 2 {
			return // it is no source, and may have any number of ends
		}
		// It is found by all of its source, and by the end of it.
		for rest, more := folded, true; more; _, rest, more = strings.Cut(rest, "/") {
			b.words.add(rest, newPosting(b.row, codeWord))
		}
		b.words.add(fullSource(folded), newPosting(b.row, codeWord))
		return
	}
	eachToken(folded, func(_ int, token string, whole bool) {
		kind := furtherWord
		if whole {
			kind = codeWord
		}
		b.words.add(token, newPosting(b.row, kind))
	})
}
