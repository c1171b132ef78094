package catalog

import (
	"slices"
	"strings"
	"sync"
)

// A searchIndex knows the words of entries, of modules or of providers. It consists of
// segments: new and changed entries become a new segment, so that not everything is indexed
// again.
type searchIndex struct {
	segments []*segment // the oldest and largest first
	size     int32      // rows of all segments
	entries  int32      // of all segments, with those that are gone
}

// newSearchIndex returns an index of entries. before is an earlier index, which may be nil.
// Its segments are used again, except for a segment that has lost half of its entries, or
// that has no more entries left than all newer segments together. So there are few segments,
// and large ones are seldom made again.
func newSearchIndex(entries []*Entry, before *searchIndex) *searchIndex {
	var segments []*segment
	if before != nil {
		segments = before.segments
	}
	left := make([][]*Entry, len(segments)) // of the entries of each segment
	var added []*Entry                      // the entries of the new segment
	for _, e := range entries {
		if i := slices.IndexFunc(segments, func(s *segment) bool { return s.has(e) }); i >= 0 {
			left[i] = append(left[i], e)
		} else {
			added = append(added, e)
		}
	}
	x := new(searchIndex)
	newer := len(added)
	for i, s := range slices.Backward(segments) {
		if len(left[i]) > max(newer, len(s.rows)/2) {
			x.segments = append(x.segments, s)
		} else {
			added = append(added, left[i]...)
		}
		newer += len(left[i])
	}
	slices.Reverse(x.segments)
	if len(added) > 0 {
		x.segments = append(x.segments, newSegment(added))
	}
	for _, s := range x.segments {
		x.size += s.size
		x.entries += int32(len(s.first))
	}
	return x
}

// number returns the number of an entry.
func (x *searchIndex) number(e *Entry) (number int32, ok bool) {
	for _, s := range x.segments {
		if n, ok := s.rows[e]; ok {
			return number + n, true
		}
		number += int32(len(s.first))
	}
	return 0, false
}

// A rowOwner is the entry of a row.
type rowOwner struct {
	number int32
	first  int32 // the row of the entry itself; those of its parts follow
}

// owner returns the entry of a row.
func (x *searchIndex) owner(row int32) rowOwner {
	var number, before int32
	at := 0
	for row >= before+x.segments[at].size {
		before += x.segments[at].size
		number += int32(len(x.segments[at].first))
		at++
	}
	n := x.segments[at].owners[row-before]
	return rowOwner{number + n, before + x.segments[at].first[n]}
}

// rank ranks all rows for a word.
func (x *searchIndex) rank(w *word, r *ranking) {
	base := 0
	for _, s := range x.segments {
		s.names.rank(w.text, r, base, 0)
		s.words.rank(w.parts, r, base, 0)
		for i := range w.others {
			s.names.rank(w.others[i].text, r, base, 1)
			s.words.rank(w.others[i].parts, r, base, 1)
		}
		if w.typo {
			s.words.rankTypos(w.text, r, base)
		}
		base += int(s.size)
	}
}

// rankSource ranks all rows for the source of a provider.
func (x *searchIndex) rankSource(source string, r *ranking) {
	base := 0
	for _, s := range x.segments {
		s.words.rankExact(source, r, base, exactCode)
		base += int(s.size)
	}
}

// A lastIndex has the index that was searched last. A catalog shares it with the catalogs of
// earlier and later snapshots.
type lastIndex struct {
	mutex sync.Mutex
	index *searchIndex
}

// update makes the index of entries.
func (l *lastIndex) update(entries []*Entry) *searchIndex {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.index = newSearchIndex(entries, l.index)
	return l.index
}

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
		b.addName(name, min(posting(i), secondKind))
	}
	b.addProse(t.description, firstKind)
	b.addProse(t.further, thirdKind)
	b.addCodes(t.codes)
	b.row++
	for i := range t.submodules {
		sub := &t.submodules[i]
		b.addName(sub.name, firstKind)
		b.addProse(sub.description, firstKind)
		b.addCodes(sub.codes)
		b.row++
	}
	for i := range t.pages {
		p := &t.pages[i]
		b.addCodes([]code{{Named, p.Name(t.typ)}})
		b.addProse(p.Title, firstKind)
		b.row++
	}
}

// addName adds a name, and its words, which may have a typo in a query.
func (b *segmentBuilder) addName(name string, kind posting) {
	name = fold(name)
	b.names.add(name, newPosting(b.row, kind))
	b.addProse(name, firstKind)
}

func (b *segmentBuilder) addProse(text string, kind posting) {
	eachToken(fold(text), func(_ int, token string, _ bool) { b.words.add(token, newPosting(b.row, kind)) })
}

func (b *segmentBuilder) addCodes(codes []code) {
	for _, c := range codes {
		folded := fold(c.text)
		if c.kind == Requires {
			for rest, more := folded, true; more; _, rest, more = strings.Cut(rest, "/") {
				b.words.add(rest, newPosting(b.row, secondKind))
			}
			continue
		}
		eachToken(folded, func(_ int, token string, whole bool) {
			kind := thirdKind
			if whole {
				kind = secondKind
			}
			b.words.add(token, newPosting(b.row, kind))
		})
	}
}
