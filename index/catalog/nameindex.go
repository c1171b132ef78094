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
	places := x.find(w.text)
	if len(places) > x.len()/2 { // such as the places of one letter: reading all names in order is faster
		for number := range x.len() {
			if at := strings.Index(x.word(number), w.text); at >= 0 {
				x.rankName(number, at, w, k, penalty)
			}
		}
		return
	}
	for _, place := range places {
		number := int(x.numbers[place])
		start := int(x.ends[number]) + number + 1
		if at := int(place) - start; strings.Index(x.word(number), w.text) == at { // it counts once in a name
			x.rankName(number, at, w, k, penalty)
		}
	}
}

// rankName ranks the rows with a name in which a word is first at a place.
func (x *nameIndex) rankName(number, at int, w *word, k *ranker, penalty rank) {
	rest := x.word(number)[at+len(w.text):]
	found := ranksWithin
	switch {
	case at == 0 && rest == "":
		found = ranksOfNames
	case w.whole && (at != 0 || !endsWord(rest)):
		return // the words of the name are in the index of words, too
	case at == 0 && endsWord(rest):
		found = ranksOfFirst
	case at == 0:
		found = ranksOfStart
	}
	k.rank(x.postingsOf(number), found.behind(penalty))
}
