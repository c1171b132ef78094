package catalog

import (
	"index/suffixarray"
	"maps"
	"slices"
	"sort"
	"strings"
)

// A posting is a row of a segment that has a word, and of which kind the word is there.
type posting uint32

// The kinds of words: of a name index the first two, of a word index all.
const (
	firstKind  posting = iota // the name itself; a word of the description
	secondKind                // another name of the address; a whole name of an input, a type of resources and the like
	thirdKind                 // a part of such a name, a word of the README
	kindBits   = 2
)

func newPosting(row int32, kind posting) posting { return posting(row)<<kindBits | kind }

func (p posting) row() int { return int(p >> kindBits) }

func (p posting) kind() posting { return p & (1<<kindBits - 1) }

// An invertedIndex says which rows have a word.
type invertedIndex struct {
	text     string   // all words, in order
	ends     []uint32 // where the words begin in text, and the end
	starts   []uint32 // where the postings of each word begin, and the end
	postings []posting
}

func (x *invertedIndex) len() int { return len(x.ends) - 1 }

func (x *invertedIndex) word(i int) string { return x.text[x.ends[i]:x.ends[i+1]] }

// of returns the postings of a word.
func (x *invertedIndex) of(i int) []posting { return x.postings[x.starts[i]:x.starts[i+1]] }

// search returns the place of the first word that is not before w.
func (x *invertedIndex) search(w string) int {
	return sort.Search(x.len(), func(i int) bool { return x.word(i) >= w })
}

// An indexBuilder collects the postings of words, in the order of their rows.
type indexBuilder map[string][]posting

// add adds a posting, unless the word has it already.
func (b indexBuilder) add(word string, p posting) {
	known := b[word]
	for i := len(known) - 1; i >= 0 && known[i].row() == p.row(); i-- {
		if known[i] == p {
			return
		}
	}
	b[word] = append(known, p)
}

func (b indexBuilder) index() invertedIndex {
	words := slices.Sorted(maps.Keys(b))
	size, count := 0, 0
	for _, word := range words {
		size += len(word)
		count += len(b[word])
	}
	var text strings.Builder
	text.Grow(size)
	x := invertedIndex{ends: make([]uint32, 1, len(words)+1), starts: make([]uint32, 1, len(words)+1), postings: make([]posting, 0, count)}
	for _, word := range words {
		text.WriteString(word)
		x.ends = append(x.ends, uint32(text.Len()))
		x.postings = append(x.postings, b[word]...)
		x.starts = append(x.starts, uint32(len(x.postings)))
	}
	x.text = text.String()
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
	for i := range x.len() {
		x.joined = append(append(x.joined, 0), x.word(i)...)
		for len(x.numbers) < len(x.joined) {
			x.numbers = append(x.numbers, int32(i))
		}
	}
	x.joined = append(x.joined, 0)
	x.suffixes = suffixarray.New(x.joined)
	return x
}

// rank ranks the rows with names that have w. The first row of the index is base.
func (x *nameIndex) rank(w string, r *ranking, base int, penalty rank) {
	if strings.IndexByte(w, 0) >= 0 {
		return // it would join two names
	}
	for _, i := range x.suffixes.Lookup([]byte(w), -1) {
		name := int(x.numbers[i])
		begins, ends := x.joined[i-1] == 0, x.joined[i+len(w)] == 0
		for _, p := range x.of(name) {
			found := inAddress
			switch {
			case begins && ends:
				found = exactName + rank(p.kind())
			case begins:
				found = prefixOfName + rank(p.kind())
			}
			r.lower(base+p.row(), found+penalty)
		}
	}
}

// A wordIndex has the words of all texts.
type wordIndex struct{ invertedIndex }

// rank ranks the rows that have, for each of parts, a word that begins with it.
func (x *wordIndex) rank(parts []string, r *ranking, base int, penalty rank) {
	switch len(parts) {
	case 0:
		return
	case 1:
		x.rankPart(parts[0], penalty, func(row int, found rank) { r.lower(base+row, found) })
		return
	}
	worst := make(map[int]rank) // of the parts so far
	for i, part := range parts {
		best := make(map[int]rank)
		x.rankPart(part, penalty, func(row int, found rank) {
			before, ok := worst[row]
			if !ok && i > 0 {
				return
			}
			if known, ok := best[row]; !ok || found < known {
				best[row] = max(found, before)
			}
		})
		worst = best
	}
	for row, found := range worst {
		r.lower(base+row, found)
	}
}

func (x *wordIndex) rankPart(part string, penalty rank, lower func(row int, found rank)) {
	for i := x.search(part); i < x.len() && strings.HasPrefix(x.word(i), part); i++ {
		kinds := [...]rank{inDescription, prefixOfCode, inText}
		if x.ends[i+1]-x.ends[i] == uint32(len(part)) {
			kinds[secondKind] = exactCode
		}
		for _, p := range x.of(i) {
			lower(p.row(), min(kinds[p.kind()]+penalty, inText))
		}
	}
}

// rankExact ranks the rows that have exactly that word.
func (x *wordIndex) rankExact(w string, r *ranking, base int, found rank) {
	if i := x.search(w); i < x.len() && x.word(i) == w {
		for _, p := range x.of(i) {
			r.lower(base+p.row(), found)
		}
	}
}

// rankTypos ranks the rows that have a word that differs from w in one character, which is
// not the first.
func (x *wordIndex) rankTypos(w string, r *ranking, base int) {
	for i := x.search(w[:1]); i < x.len(); i++ {
		start, end := x.ends[i], x.ends[i+1]
		if x.text[start] != w[0] {
			return
		}
		if more := int(end-start) - len(w); more < -1 || more > 1 || !isTypo(x.text[start:end], w) {
			continue
		}
		for _, p := range x.of(i) {
			r.lower(base+p.row(), inText)
		}
	}
}

// A ranking has the ranks of a word: few rows have it.
type ranking struct {
	ranks []rank // by row
	rows  []int32
}

func newRanking(rows int32) ranking {
	r := ranking{ranks: make([]rank, rows)}
	for i := range r.ranks {
		r.ranks[i] = notFound
	}
	return r
}

func (r *ranking) lower(row int, found rank) {
	best := &r.ranks[row]
	if *best == notFound {
		r.rows = append(r.rows, int32(row))
	}
	*best = min(*best, found)
}

// clear prepares the ranking for the next word.
func (r *ranking) clear() {
	for _, row := range r.rows {
		r.ranks[row] = notFound
	}
	r.rows = r.rows[:0]
}
