package catalog

import (
	"index/suffixarray"
	"strings"
)

// A nameIndex has the names of rows.
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

var (
	ranksOfNames = ranks{ownName: exactName, otherName: exactOther}
	ranksOfStart = ranks{ownName: prefixOfName, otherName: prefixOfOther}
	ranksWithin  = ranks{ownName: inAddress, otherName: inAddress}
)

// rank ranks the rows with names that have a word.
func (x *nameIndex) rank(w *word, k *ranker, penalty rank) {
	if strings.IndexByte(w.text, 0) >= 0 {
		return // it would join two names
	}
	for _, at := range x.suffixes.Lookup([]byte(w.text), -1) {
		number := int(x.numbers[at])
		name := x.word(number)
		start := int(x.ends[number]) + number + 1
		rest := name[at-start+len(w.text):]
		found := ranksWithin
		switch {
		case strings.Index(name, w.text) != at-start:
			continue // it counts once in a name
		case at == start && rest == "":
			found = ranksOfNames
		case w.whole && (at != start || !endsWord(rest)):
			continue // the words of the name are in the index of words, too
		case at == start:
			found = ranksOfStart
		}
		k.rank(x.of(number), found.behind(penalty))
	}
}
