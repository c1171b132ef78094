package catalog

import (
	"maps"
	"slices"
	"sort"
	"strings"
)

// A posting is a row of a segment with a word, and the kind of the word there.
type posting uint32

// The kinds of names.
const (
	ownName   posting = iota // of a provider, module or submodule itself
	otherName                // another name in its address
)

// The kinds of words.
const (
	proseWord         posting = iota // of a description or a title
	codeWord                         // a whole name of an input, a type of resources and the like
	ownCodeWord                      // such a name in a module that is about it
	readWord                         // a whole type of data sources: many modules read the same ones
	furtherWord                      // a part of such a name, a word of a README
	wholeNameWord                    // the name of a provider, module or submodule itself
	ownNameWord                      // a part of it
	otherNameWord                    // of another name in the address
	pageWord                         // a whole name of what a page documents
	dataPageWord                     // of a data source
	ephemeralPageWord                // of an ephemeral resource
)

// kindBits are the bits of a posting for its kind.
const kindBits = 4

func newPosting(row int32, kind posting) posting { return posting(row)<<kindBits | kind }

func (p posting) row() int32 { return int32(p >> kindBits) }

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

// postingsOf returns the postings of a word.
func (x *invertedIndex) postingsOf(i int) []posting { return x.postings[x.starts[i]:x.starts[i+1]] }

// prefixRange returns where the words are that begin with a text.
func (x *invertedIndex) prefixRange(text string) (from, to int) {
	from = x.search(text)
	if from == x.len() || !strings.HasPrefix(x.word(from), text) {
		return from, from
	}
	return from, from + sort.Search(x.len()-from, func(i int) bool { return !strings.HasPrefix(x.word(from+i), text) })
}

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

// A wordIndex has the words of all texts.
type wordIndex struct{ invertedIndex }

var (
	ranksOfWords = ranks{
		wholeNameWord: exactName, ownNameWord: wordOfName, otherNameWord: inAddress, ownCodeWord: ownCode, codeWord: exactCode, readWord: inAddress,
		pageWord: exactPage, dataPageWord: exactPage + 1, ephemeralPageWord: exactPage + 1, proseWord: inDescription, furtherWord: inText,
	}
	ranksOfBeginning = ranks{
		wholeNameWord: inAddress, ownNameWord: inAddress, otherNameWord: inAddress, ownCodeWord: prefixOfCode, codeWord: prefixOfCode, readWord: prefixOfCode,
		pageWord: prefixOfCode, dataPageWord: prefixOfCode, ephemeralPageWord: prefixOfCode, proseWord: inDescription, furtherWord: inText,
	}
	ranksOfTypos = ranks{
		wholeNameWord: inAddress, ownNameWord: inDescription, otherNameWord: inText, ownCodeWord: inText, codeWord: typoInText, readWord: typoInText,
		pageWord: inText, dataPageWord: inText, ephemeralPageWord: inText, proseWord: typoInText, furtherWord: typoInText,
	}
	ranksOfSources = ranks{codeWord: exactCode}
)

// rank ranks the rows that have, for each part of a word, a word that begins with it. The
// sources of providers are words with all their characters.
func (x *wordIndex) rank(w *word, k *ranker, penalty rank) {
	words, beginning := ranksOfWords, ranksOfBeginning
	if w.page != 0 {
		words[w.page] = exactName
	}
	words, beginning = words.behind(penalty), beginning.behind(penalty)
	rankBeginning := func(text string, whole bool, rank func([]posting, ranks)) {
		if text != "" && k.ctx.Err() == nil {
			x.rankBeginning(text, whole, words, beginning, rank)
		}
	}
	if len(w.parts) == 1 {
		rankBeginning(w.parts[0], w.whole, k.rank)
		return
	}
	rankBeginning(w.text, w.whole, k.rank)
	for i, part := range w.parts {
		whole := w.whole && (w.separate || i == len(w.parts)-1)
		if i == 0 {
			rankBeginning(part, whole, k.rankFirst)
			continue
		}
		rankBeginning(part, whole, k.rankNext)
		k.endPart()
	}
	k.endParts()
}

// rankBeginning calls rank for the rows that have a word that begins with a text. With whole, a word has
// to end there, or a part of a name.
func (x *wordIndex) rankBeginning(text string, whole bool, words, beginning ranks, rank func([]posting, ranks)) {
	from, to := x.prefixRange(text)
	if from < to && x.word(from) == text {
		rank(x.postingsOf(from), words)
		from++
	}
	if whole {
		from, to = x.prefixRange(text + "_")
	}
	rank(x.postings[x.starts[from]:x.starts[to]], beginning)
}

// rankSource ranks the rows that have the source of a provider.
func (x *wordIndex) rankSource(source string, k *ranker) {
	if i := x.search(source); i < x.len() && x.word(i) == source {
		k.rank(x.postingsOf(i), ranksOfSources)
	}
}

// rankTypos ranks the rows that have a word that differs from w in one character, which is
// not the first.
func (x *wordIndex) rankTypos(w *word, k *ranker) {
	from, to := x.prefixRange(w.text[:1])
	for i := from; i < to && k.ctx.Err() == nil; i++ {
		if more := int(x.ends[i+1]-x.ends[i]) - len(w.text); more >= -1 && more <= 1 && w.isTypoOf(x.word(i)) {
			k.rank(x.postingsOf(i), ranksOfTypos)
		}
	}
}
