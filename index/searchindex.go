package index

import (
	"index/suffixarray"
	"slices"
	"strings"
	"unicode"
)

// A segment is a part of a searcher: an index of some entries. Searchers share them.
type segment struct {
	entries []*Entry
	names   nameIndex
	text    textIndex
}

func newSegment(entries []*Entry) *segment {
	var names, text indexBuilder
	var rows int32
	addText := func(t *searchText) {
		for word := range strings.FieldsFuncSeq(t.description, notInWord) {
			text.add(word, newPosting(rows, false))
		}
		for word := range strings.FieldsFuncSeq(t.words, notInWord) {
			text.add(word, newPosting(rows, true))
		}
	}
	for _, e := range entries {
		for i, name := range e.text.names {
			names.add(name, newPosting(rows, i > 0))
		}
		addText(&e.text.searchText)
		rows++
		for i := range e.text.submodules {
			sub := &e.text.submodules[i]
			names.add(sub.name, newPosting(rows, false))
			addText(&sub.searchText)
			rows++
		}
	}
	return &segment{entries, newNameIndex(&names), textIndex{text.index()}}
}

// A posting is a row of a segment in which a word is, and which of two things the
// word is there.
type posting uint32

func newPosting(row int32, second bool) posting {
	p := posting(row) << 1
	if second {
		p |= 1
	}
	return p
}

func (p posting) row() int { return int(p >> 1) }

// rank is one rank for what the word is first, and the next one for the second.
func (p posting) rank(first rank) rank { return first + rank(p&1) }

// An invertedIndex says in which rows words are.
type invertedIndex struct {
	words    []string // in order
	starts   []uint32 // where the postings of each word begin; one more than words
	postings []posting
}

// of returns the postings of a run of words.
func (x *invertedIndex) of(first, after int) []posting {
	return x.postings[x.starts[first]:x.starts[after]]
}

// An indexBuilder collects words of rows.
type indexBuilder struct {
	ids      map[string]uint32
	words    []string
	counts   []uint32
	wordIDs  []uint32 // in parallel with postings
	postings []posting
}

func (b *indexBuilder) add(word string, p posting) {
	id, ok := b.ids[word]
	if !ok {
		if b.ids == nil {
			b.ids = make(map[string]uint32)
		}
		id = uint32(len(b.words))
		b.ids[word] = id
		b.words, b.counts = append(b.words, word), append(b.counts, 0)
	}
	b.counts[id]++
	b.wordIDs, b.postings = append(b.wordIDs, id), append(b.postings, p)
}

// index orders the words, and the postings by word and row.
func (b *indexBuilder) index() invertedIndex {
	order := make([]uint32, len(b.words))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return strings.Compare(b.words[x], b.words[y]) })
	x := invertedIndex{
		words:    make([]string, len(b.words)),
		starts:   make([]uint32, len(b.words)+1),
		postings: make([]posting, len(b.postings)),
	}
	next := make([]uint32, len(b.words)) // by ID
	for i, id := range order {
		x.words[i] = b.words[id]
		next[id] = x.starts[i]
		x.starts[i+1] = x.starts[i] + b.counts[id]
	}
	for i, p := range b.postings {
		id := b.wordIDs[i]
		x.postings[next[id]] = p
		next[id]++
	}
	return x
}

// A nameIndex has the names of rows: those of providers and modules themselves, and
// the others in their addresses, which are second.
type nameIndex struct {
	invertedIndex
	text     []byte  // the names, with a NUL before and after each
	at       []int32 // which of the names each byte of text is of; the NUL is of the one after it
	suffixes *suffixarray.Index
}

func newNameIndex(b *indexBuilder) nameIndex {
	x := nameIndex{invertedIndex: b.index()}
	for i, name := range x.words {
		x.text = append(append(x.text, 0), name...)
		for len(x.at) < len(x.text) {
			x.at = append(x.at, int32(i))
		}
	}
	x.text = append(x.text, 0)
	x.suffixes = suffixarray.New(x.text)
	return x
}

// rank lowers the ranks of the rows with names in which w is found, where rows are
// the places of the segment's rows in ranks.
func (x *nameIndex) rank(w string, ranks []rank, rows []int32) {
	for _, at := range x.suffixes.Lookup([]byte(w), -1) {
		name := int(x.at[at])
		begins, ends := x.text[at-1] == 0, x.text[at+len(w)] == 0
		for _, p := range x.of(name, name+1) {
			found := inAddress
			switch {
			case begins && ends:
				found = p.rank(exactName)
			case begins:
				found = p.rank(prefixOfName)
			}
			lower(&ranks[rows[p.row()]], found)
		}
	}
}

// A textIndex has the words of descriptions, and those of READMEs and of the names of
// inputs and outputs, which are second.
type textIndex struct{ invertedIndex }

// rank lowers the ranks of the rows in which there is for each of parts a word that
// begins like it.
func (x *textIndex) rank(parts []string, ranks []rank, rows []int32) {
	switch len(parts) {
	case 0:
		return
	case 1:
		for _, p := range x.beginning(parts[0]) {
			lower(&ranks[rows[p.row()]], p.rank(inDescription))
		}
		return
	}
	worst := make([]rank, len(rows)) // of the parts
	best := make([]rank, len(rows))  // of a part
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
		lower(&ranks[rows[i]], r)
	}
}

// beginning returns the postings of all words that begin like w.
func (x *textIndex) beginning(w string) []posting {
	first, _ := slices.BinarySearch(x.words, w)
	count, _ := slices.BinarySearchFunc(x.words[first:], w, func(word, w string) int {
		if strings.HasPrefix(word, w) {
			return -1
		}
		return 1
	})
	return x.of(first, first+count)
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

// notInWord reports what separates words: everything that is neither a letter nor a
// digit, so that inputs are found by each word of their names.
func notInWord(r rune) bool {
	if r < 0x80 {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z')
	}
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
}
