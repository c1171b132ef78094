package catalog

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// A nameIndex has the names of rows.
type nameIndex struct {
	invertedIndex
	joined   string  // the names, with a NUL before and after each
	numbers  []int32 // for each byte of joined, the number of its name; a NUL belongs to the next name
	suffixes []int32 // where the rests of names begin in joined, in the order of the rests
}

func newNameIndex(b indexBuilder) nameIndex {
	x := nameIndex{invertedIndex: b.index()}
	var joined strings.Builder
	for i := range x.len() {
		joined.WriteByte(0)
		joined.WriteString(x.word(i))
		for len(x.numbers) < joined.Len() {
			x.numbers = append(x.numbers, int32(i))
		}
	}
	joined.WriteByte(0)
	x.joined = joined.String()
	x.suffixes = orderSuffixes(x.joined)
	return x
}

// orderSuffixes returns where the rests of names begin, in their order. The package suffixarray would
// return the places of a word in new memory: for a frequent word, most of what a search takes.
func orderSuffixes(joined string) []int32 {
	type suffix struct {
		first uint64 // its first eight bytes: few differ later
		at    int32
	}
	var all []suffix
	for at := range len(joined) {
		if joined[at] != 0 {
			s := suffix{at: int32(at)}
			for i := range 8 {
				s.first <<= 8
				if at+i < len(joined) {
					s.first |= uint64(joined[at+i])
				}
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b suffix) int {
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
		return strings.Compare(joined[a.at:], joined[b.at:])
	})
	places := make([]int32, len(all))
	for i, s := range all {
		places[i] = s.at
	}
	return places
}

// find returns where a text is in the joined names.
func (x *nameIndex) find(text string) []int32 {
	rest := func(i int) string { at := int(x.suffixes[i]); return x.joined[at:min(at+len(text), len(x.joined))] }
	from := sort.Search(len(x.suffixes), func(i int) bool { return rest(i) >= text })
	if from == len(x.suffixes) || rest(from) != text {
		return nil
	}
	return x.suffixes[from : from+sort.Search(len(x.suffixes)-from, func(i int) bool { return rest(from+i) > text })]
}

var (
	ranksOfNames = ranks{ownName: exactName, otherName: exactOther}
	ranksOfFirst = ranks{ownName: startOfName, otherName: prefixOfOther}
	ranksOfStart = ranks{ownName: prefixOfName, otherName: prefixOfOther}
	ranksWithin  = ranks{ownName: inAddress, otherName: inAddress}
)

// rank ranks the rows with names that have a word.
func (x *nameIndex) rank(w *word, k *ranker, penalty rank) {
	if w.text == "" || strings.IndexByte(w.text, 0) >= 0 {
		return // a NUL would join two names
	}
	for _, place := range x.find(w.text) {
		at := int(place)
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
		case at == start && endsWord(rest):
			found = ranksOfFirst
		case at == start:
			found = ranksOfStart
		}
		k.rank(x.postingsOf(number), found.behind(penalty))
	}
}
