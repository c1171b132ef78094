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
	proseWord   posting = iota // of a description or a title
	codeWord                   // a whole name of an input, a type of resources and the like
	furtherWord                // a part of such a name, a word of a README
	nameWord                   // of a name
)

// kindBits are the bits of a posting for its kind.
const kindBits = 2

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

// beginning returns where the words are that begin with a text.
func (x *invertedIndex) beginning(text string) (from, to int) {
	from = x.search(text)
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
	ranksOfWords     = ranks{nameWord: inDescription, proseWord: inDescription, codeWord: exactCode, furtherWord: inText}
	ranksOfBeginning = ranks{nameWord: inDescription, proseWord: inDescription, codeWord: prefixOfCode, furtherWord: inText}
	ranksOfTypos     = ranks{nameWord: inText, proseWord: typoInText, codeWord: typoInText, furtherWord: typoInText}
	ranksOfSources   = ranks{codeWord: exactCode}
)

// rank ranks the rows that have, for each part of a word, a word that begins with it. The
// sources of providers are words with all their characters.
func (x *wordIndex) rank(w *word, k *ranker, penalty rank) {
	if len(w.parts) == 1 {
		x.rankBeginning(w.parts[0], w.whole, k, penalty, k.rank)
		return
	}
	x.rankBeginning(w.text, w.whole, k, penalty, k.rank)
	for i, part := range w.parts {
		whole := w.whole && i == len(w.parts)-1
		if i == 0 {
			x.rankBeginning(part, whole, k, penalty, k.rankFirst)
			continue
		}
		x.rankBeginning(part, whole, k, penalty, k.rankNext)
		k.endPart()
	}
	k.endParts()
}

// rankBeginning calls rank for the rows that have a word that begins with a text. With whole,
// a word has to end there, or a part of a name.
func (x *wordIndex) rankBeginning(text string, whole bool, k *ranker, penalty rank, rank func([]posting, ranks)) {
	if text == "" || k.ctx.Err() != nil {
		return
	}
	from, to := x.beginning(text)
	if from < to && x.word(from) == text {
		rank(x.postingsOf(from), ranksOfWords.behind(penalty))
		from++
	}
	if whole {
		from, to = x.beginning(text + "_")
	}
	rank(x.postings[x.starts[from]:x.starts[to]], ranksOfBeginning.behind(penalty))
}

// rankSource ranks the rows that have the source of a provider.
func (x *wordIndex) rankSource(source string, k *ranker) {
	if i := x.search(source); i < x.len() && x.word(i) == source {
		k.rank(x.postingsOf(i), ranksOfSources)
	}
}

// rankTypos ranks the rows that have a word that differs from w in one character, which is
// not the first.
func (x *wordIndex) rankTypos(w string, k *ranker) {
	from, to := x.beginning(w[:1])
	for i := from; i < to && k.ctx.Err() == nil; i++ {
		if more := int(x.ends[i+1]-x.ends[i]) - len(w); more >= -1 && more <= 1 && isTypo(x.word(i), w) {
			k.rank(x.postingsOf(i), ranksOfTypos)
		}
	}
}
