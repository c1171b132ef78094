package catalog

import (
	"iter"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
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

// rowsOf returns the first row of an entry, and the row after its last one.
func (s *segment) rowsOf(number int32) (first, end int32) {
	if next := int(number) + 1; next < len(s.first) {
		return s.first[number], s.first[next]
	}
	return s.first[number], s.size
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
	b.addCodes(t.names[0], t.codes)
	if t.version != "" {
		b.addWhole(versionWord(t.version), codeWord)
	}
	b.addWhole(t.repository, ownCodeWord)
	b.row++
	for i := range t.submodules {
		sub := &t.submodules[i]
		b.addName(sub.name, ownName)
		b.addProse(sub.description, proseWord)
		b.addCodes(sub.name, sub.codes)
		b.row++
	}
	for i := range t.pages {
		p := &t.pages[i]
		b.addPage(p, t.typ)
		b.row++
	}
}

// addName adds a name, and its words, which may have a typo in a query.
func (b *segmentBuilder) addName(name string, kind posting) {
	name = fold(name)
	b.names.add(name, newPosting(b.row, kind))
	eachToken(name, func(_ int, token string, _ bool) {
		kindOfWord := ownNameWord
		switch {
		case kind == otherName:
			kindOfWord = otherNameWord
		case token == name:
			kindOfWord = wholeNameWord
		}
		b.words.add(token, newPosting(b.row, kindOfWord))
	})
}

// addWhole adds a word with all its characters.
func (b *segmentBuilder) addWhole(text string, kind posting) {
	if text != "" {
		b.words.add(cutToken(fold(text)), newPosting(b.row, kind))
	}
}

func (b *segmentBuilder) addProse(text string, kind posting) {
	eachToken(fold(text), func(_ int, token string, _ bool) { b.words.add(token, newPosting(b.row, kind)) })
}

// addCodes adds the codes of a module or submodule of that name.
func (b *segmentBuilder) addCodes(name string, codes iter.Seq[code]) {
	name = strings.ReplaceAll(fold(name), "-", "_")
	for c := range codes {
		b.addCode(name, c)
	}
}

// maxSource is the length of a source, in bytes, that is searched.
const maxSource = 300

func (b *segmentBuilder) addCode(name string, c code) {
	folded := fold(c.text)
	kind := codeWord
	switch {
	case c.kind == Requires:
		if len(folded) > maxSource || strings.Count(folded, "/") > 2 {
			return // it is no source, and may have any number of ends
		}
		// It is found by all of its source, and by the end of it.
		for rest, more := folded, true; more; _, rest, more = strings.Cut(rest, "/") {
			b.words.add(rest, newPosting(b.row, codeWord))
		}
		b.words.add(fullSource(folded), newPosting(b.row, codeWord))
		return
	case c.kind == Reads || c.kind == Opens:
		kind = readWord
	case isOwn(name, folded, c.kind):
		kind = ownCodeWord
	}
	b.addParts(folded, folded, kind)
}

// isOwn reports whether a module is about a code, by their names: the module s3-bucket is about
// aws_s3_bucket, the module ec2-instance about aws_instance, and the module vpc about its output vpc_id.
func isOwn(name, code string, kind ReasonKind) bool {
	if kind == Creates {
		_, code, _ = strings.Cut(code, "_") // the provider
	}
	return code != "" && (code == name || strings.HasPrefix(code, name+"_") && kind != Input || strings.HasSuffix(name, "_"+code))
}

// addPage adds the name of what a page documents, and its title. Many leave out the type of the
// provider, with which the name begins.
func (b *segmentBuilder) addPage(p *content.DocTitle, typ string) {
	kind := pageWord
	switch p.Category {
	case content.DocDataSources:
		kind = dataPageWord
	case content.DocEphemeralResources:
		kind = ephemeralPageWord
	}
	b.addParts(fold(p.Name(typ)), fold(p.Slug), kind)
	b.addProse(p.Title, proseWord)
}

// addParts adds a name in a configuration with its ends. One of these may be as good as the name.
func (b *segmentBuilder) addParts(name, end string, kind posting) {
	eachToken(name, func(_ int, token string, whole bool) {
		k := furtherWord
		if whole || token == end {
			k = kind
		}
		b.words.add(token, newPosting(b.row, k))
	})
}
