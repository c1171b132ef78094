package catalog

import (
	"slices"
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

// rows returns the number of an entry, and its rows: from, and those before to.
func (x *searchIndex) rows(e *Entry) (number, from, to int32, ok bool) {
	for _, s := range x.segments {
		if n, ok := s.rows[e]; ok {
			first, end := s.rowsOf(n)
			return number + n, from + first, from + end, true
		}
		number += int32(len(s.first))
		from += s.size
	}
	return 0, 0, 0, false
}

// A rowOwner is the entry of a row.
type rowOwner struct {
	number int32
	first  int32 // the row of the entry itself; the rows of its parts follow
	end    int32 // the row after these
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
	first, end := x.segments[at].rowsOf(n)
	return rowOwner{number + n, before + first, before + end}
}

// rank ranks rows for a word.
func (x *searchIndex) rank(w *word, k *ranker) {
	x.eachSegment(k, func(s *segment) {
		s.names.rank(w, k, 0)
		s.words.rank(w, k, 0)
		for i := range w.others {
			s.names.rank(&w.others[i], k, 1)
			s.words.rank(&w.others[i], k, 1)
		}
		if w.typo {
			s.words.rankTypos(w, k)
		}
	})
}

// rankSource ranks rows for the source of a provider.
func (x *searchIndex) rankSource(source string, k *ranker) {
	x.eachSegment(k, func(s *segment) { s.words.rankSource(source, k) })
}

// eachSegment calls rank with each segment, while a ranker ranks its rows.
func (x *searchIndex) eachSegment(k *ranker, rank func(*segment)) {
	k.base = 0
	for _, s := range x.segments {
		if k.ctx.Err() != nil {
			return
		}
		rank(s)
		k.base += s.size
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
