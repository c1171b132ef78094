package catalog

import (
	"context"
	"math"
)

// A rank says how well an entry matches a word; the best rank is the lowest.
type rank uint8

const (
	exactName rank = iota
	exactOther
	startOfName // the first words of a name
	ownCode     // the code of a module that is about it: see isOwn
	exactPage   // the name of what a page documents
	prefixOfName
	prefixOfOther
	wordOfName
	exactCode // the name of an input, a type of resources, a required provider
	inAddress
	prefixOfCode
	inDescription
	inText
	typoInText
	missing       // of a word that need not be found
	notFound rank = math.MaxUint8
)

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

func (r *ranking) lower(row int32, found rank) {
	best := &r.ranks[row]
	if *best == notFound {
		r.rows = append(r.rows, row)
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

// A rowSet is a set of rows of an index.
type rowSet []uint64

func newRowSet(rows int32) rowSet { return make(rowSet, (rows+63)/64) }

func (s rowSet) add(row int32) { s[row/64] |= 1 << (row % 64) }

func (s rowSet) has(row int32) bool { return s[row/64]&(1<<(row%64)) != 0 }

// ranks are the ranks of the kinds of words.
type ranks [1 << kindBits]rank

// behind returns the ranks of what is found in place of a word.
func (r ranks) behind(penalty rank) ranks {
	for i := range r {
		r[i] = min(r[i]+penalty, inText)
	}
	return r
}

// A ranker ranks the rows that one audience may see. What is hidden costs it no more than
// the look at one bit.
type ranker struct {
	ctx     context.Context
	visible rowSet
	base    int32 // the first row of the segment
	to      *ranking

	worst, best ranking // of the parts of a word so far, and of the next one

	// The postings it has looked at, and how many of them were visible.
	postings, ranked int
}

// rank ranks the rows of postings.
func (k *ranker) rank(postings []posting, found ranks) {
	k.postings += len(postings)
	for _, p := range postings {
		if row := k.base + p.row(); k.visible.has(row) {
			k.ranked++
			k.to.lower(row, found[p.kind()])
		}
	}
}

// rankFirst is rank for the first part of a word.
func (k *ranker) rankFirst(postings []posting, found ranks) {
	to := k.to
	k.to = &k.worst
	k.rank(postings, found)
	k.to = to
}

// rankNext is rank for a further part of a word: only rows that have the parts so far count.
// For these, the worst part counts.
func (k *ranker) rankNext(postings []posting, found ranks) {
	k.postings += len(postings)
	for _, p := range postings {
		row := k.base + p.row()
		if before := k.worst.ranks[row]; before != notFound { // hidden rows have no rank
			k.ranked++
			k.best.lower(row, max(before, found[p.kind()]))
		}
	}
}

// endPart ends a further part.
func (k *ranker) endPart() {
	k.worst.clear()
	k.worst, k.best = k.best, k.worst
}

// endParts ends a word of several parts.
func (k *ranker) endParts() {
	for _, row := range k.worst.rows {
		k.to.lower(row, k.worst.ranks[row])
	}
	k.worst.clear()
}
