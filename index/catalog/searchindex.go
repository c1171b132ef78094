package catalog

import (
	"index/suffixarray"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// A searchIndex knows the words of entries. It consists of segments: new and changed entries
// become a new segment, so that not everything is indexed again.
type searchIndex struct {
	segments []*segment // the oldest and largest first
	size     int32      // rows of all segments
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
	}
	return x
}

// row returns the row of an entry. The rows of its submodules follow it.
func (x *searchIndex) row(e *Entry) (row int32, ok bool) {
	for _, s := range x.segments {
		if r, ok := s.rows[e]; ok {
			return row + r, true
		}
		row += s.size
	}
	return 0, false
}

// rank sets the ranks of all rows for a word.
func (x *searchIndex) rank(w string, ranks []rank) {
	fill(ranks, notFound)
	parts := strings.FieldsFunc(w, notInWord) // of nat_gateway: both must be in a text
	for _, s := range x.segments {
		s.names.rank(w, ranks[:s.size])
		s.words.rank(parts, ranks[:s.size])
		ranks = ranks[s.size:]
	}
}

// A lastIndex has the index of the catalog that was searched last. A catalog shares it with
// the catalogs of earlier and later snapshots.
type lastIndex struct {
	mutex sync.Mutex
	index *searchIndex
}

// update makes the index of a catalog.
func (l *lastIndex) update(c *Catalog) *searchIndex {
	entries := slices.Concat(c.Modules, c.Providers)
	for _, e := range c.merged {
		if e != nil {
			entries = append(entries, e)
		}
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.index = newSearchIndex(entries, l.index)
	return l.index
}

// A segment is an index of some entries, which never changes.
type segment struct {
	rows  map[*Entry]int32
	size  int32 // rows of the entries and their submodules
	names nameIndex
	words wordIndex
}

func newSegment(entries []*Entry) *segment {
	s := &segment{rows: make(map[*Entry]int32, len(entries))}
	names, words := make(indexBuilder), make(indexBuilder)
	addProse := func(t *prose) {
		for word := range strings.FieldsFuncSeq(t.description, notInWord) {
			words.add(word, newPosting(s.size, false))
		}
		for word := range strings.FieldsFuncSeq(t.further, notInWord) {
			words.add(word, newPosting(s.size, true))
		}
	}
	for _, e := range entries {
		s.rows[e] = s.size
		for i, name := range e.terms.names {
			names.add(name, newPosting(s.size, i > 0))
		}
		addProse(&e.terms.prose)
		s.size++
		for i := range e.terms.submodules {
			sub := &e.terms.submodules[i]
			names.add(sub.name, newPosting(s.size, false))
			addProse(&sub.prose)
			s.size++
		}
	}
	s.names, s.words = newNameIndex(names), wordIndex{words.index()}
	return s
}

func (s *segment) has(e *Entry) bool {
	_, ok := s.rows[e]
	return ok
}

// A posting is a row of a segment that has a word, and which of two kinds of words it is
// there.
type posting uint32

func newPosting(row int32, second bool) posting {
	p := posting(row) << 1
	if second {
		p |= 1
	}
	return p
}

func (p posting) row() int { return int(p >> 1) }

// rank returns a rank for the first kind, and the rank after it for the second kind.
func (p posting) rank(first rank) rank { return first + rank(p&1) }

// An invertedIndex says which rows have a word.
type invertedIndex struct {
	words    []string // in order
	starts   []uint32 // where the postings of each word begin, and the end
	postings []posting
}

// run returns the postings of a run of words.
func (x *invertedIndex) run(first, after int) []posting {
	return x.postings[x.starts[first]:x.starts[after]]
}

// An indexBuilder collects the postings of words, in the order of their rows.
type indexBuilder map[string][]posting

func (b indexBuilder) add(word string, p posting) { b[word] = append(b[word], p) }

func (b indexBuilder) index() invertedIndex {
	x := invertedIndex{words: slices.Sorted(maps.Keys(b)), starts: make([]uint32, 1, len(b)+1)}
	for _, word := range x.words {
		x.postings = append(x.postings, b[word]...)
		x.starts = append(x.starts, uint32(len(x.postings)))
	}
	x.postings = slices.Clip(x.postings)
	return x
}

// A nameIndex has the names of rows. The names of providers and modules themselves are the
// first kind, the other names in their addresses the second.
type nameIndex struct {
	invertedIndex
	joined   []byte  // the names, with a NUL before and after each
	numbers  []int32 // for each byte of joined, the number of its name; a NUL belongs to the next name
	suffixes *suffixarray.Index
}

func newNameIndex(b indexBuilder) nameIndex {
	x := nameIndex{invertedIndex: b.index()}
	for i, name := range x.words {
		x.joined = append(append(x.joined, 0), name...)
		for len(x.numbers) < len(x.joined) {
			x.numbers = append(x.numbers, int32(i))
		}
	}
	x.joined = append(x.joined, 0)
	x.suffixes = suffixarray.New(x.joined)
	return x
}

// rank lowers the ranks of the rows with names that have w.
func (x *nameIndex) rank(w string, ranks []rank) {
	for _, i := range x.suffixes.Lookup([]byte(w), -1) {
		name := int(x.numbers[i])
		begins, ends := x.joined[i-1] == 0, x.joined[i+len(w)] == 0
		for _, p := range x.run(name, name+1) {
			found := inAddress
			switch {
			case begins && ends:
				found = p.rank(exactName)
			case begins:
				found = p.rank(prefixOfName)
			}
			lower(&ranks[p.row()], found)
		}
	}
}

// A wordIndex has the words of descriptions, which are the first kind, and the words of
// READMEs and of the names of inputs and outputs.
type wordIndex struct{ invertedIndex }

// rank lowers the ranks of the rows that have, for each of parts, a word that begins with
// it.
func (x *wordIndex) rank(parts []string, ranks []rank) {
	switch len(parts) {
	case 0:
		return
	case 1:
		for _, p := range x.beginning(parts[0]) {
			lower(&ranks[p.row()], p.rank(inDescription))
		}
		return
	}
	worst := make([]rank, len(ranks)) // of the parts
	best := make([]rank, len(ranks))  // of a part
	for _, part := range parts {
		fill(best, notFound)
		for _, p := range x.beginning(part) {
			lower(&best[p.row()], p.rank(inDescription))
		}
		for i := range worst {
			worst[i] = max(worst[i], best[i])
		}
	}
	for i, r := range worst {
		lower(&ranks[i], r)
	}
}

// beginning returns the postings of all words that begin with w.
func (x *wordIndex) beginning(w string) []posting {
	first, _ := slices.BinarySearch(x.words, w)
	count, _ := slices.BinarySearchFunc(x.words[first:], w, func(word, w string) int {
		if strings.HasPrefix(word, w) {
			return -1
		}
		return 1
	})
	return x.run(first, first+count)
}

func lower(best *rank, r rank) {
	if r < *best {
		*best = r
	}
}

func fill(ranks []rank, r rank) {
	for i := range ranks {
		ranks[i] = r
	}
}

// notInWord reports whether a character separates words: everything that is neither a letter
// nor a digit, so that inputs are found by each word of their names.
func notInWord(r rune) bool {
	if r < 0x80 {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z')
	}
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
}
