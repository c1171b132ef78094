package catalog

import (
	"context"
	"math"
	"slices"
	"sync"
)

// submodulePenalty ranks a module that only its submodule matches behind modules that match
// as well.
const submodulePenalty = inAddress

// A Searcher finds entries that one audience may see, out of the index of the whole
// catalog. No answer and no order depends on other entries. Of what is hidden, a search looks
// at one bit for each entry, submodule and page that has one of the words, which takes about a
// nanosecond. A Searcher never changes.
type Searcher struct {
	entries []*Entry
	index   *searchIndex
	places  []int32 // by the number in the index, the place among entries; negative: not among them
	visible rowSet
	kind    entryKind
	scratch sync.Pool // of *scratch

	// PagesUnread reports that the documentation of some of the providers has not been read yet.
	PagesUnread bool
}

// ModuleSearcher returns a searcher of these modules of the catalog. Entries that match
// equally are found in this order.
func (c *Catalog) ModuleSearcher(entries []*Entry) *Searcher {
	return newSearcher(entries, c.moduleIndex(), moduleKind)
}

// ProviderSearcher returns a searcher of these providers.
func (c *Catalog) ProviderSearcher(entries []*Entry) *Searcher {
	return newSearcher(entries, c.providerIndex(), providerKind)
}

func newSearcher(entries []*Entry, x *searchIndex, kind entryKind) *Searcher {
	s := &Searcher{entries: entries, index: x, places: make([]int32, x.entries), visible: newRowSet(x.size), kind: kind}
	for i := range s.places {
		s.places[i] = -1
	}
	for i, e := range entries {
		s.PagesUnread = s.PagesUnread || e.pagesUnread
		if number, from, to, ok := x.rows(e); ok { // not an entry of another catalog
			s.places[number] = int32(i)
			for row := from; row < to; row++ {
				s.visible.add(row)
			}
		}
	}
	return s
}

// A scratch has what a search needs for each row of the index. It is used again, since the
// garbage of many searches would cost as much as the searches.
type scratch struct {
	ranker
	words   []ranking
	source  ranking
	phrase  ranking
	lacking []int16    // by word, what is added to the sum of a row that lacks it
	allowed int        // how many words a result may lack
	order   []int      // the words, the rarest first
	wholes  []rowOwner // entries with parts that have one of the rarest words
	sums    []int16    // by place: the best sum so far; negative: not found
	found   []int32    // places with a sum
	seen    rowSet
	entries []result
	pages   []result
}

func (s *Searcher) borrow() *scratch {
	x, _ := s.scratch.Get().(*scratch)
	if x == nil {
		x = &scratch{sums: make([]int16, len(s.entries)), seen: newRowSet(s.index.size), source: newRanking(s.index.size), phrase: newRanking(s.index.size)}
		x.visible, x.worst, x.best = s.visible, newRanking(s.index.size), newRanking(s.index.size)
		for i := range x.sums {
			x.sums[i] = -1
		}
	}
	return x
}

// giveBack clears what a search has used.
func (s *Searcher) giveBack(x *scratch) {
	for i := range x.words {
		x.words[i].clear()
	}
	x.source.clear()
	clear(x.seen)
	x.ctx = nil
	for _, place := range x.found {
		x.sums[place] = -1
	}
	x.found, x.entries, x.pages, x.wholes = x.found[:0], x.entries[:0], x.pages[:0], x.wholes[:0]
	s.scratch.Put(x)
}

// Search finds all entries that match all words, by themselves or by a submodule, the best
// first, in the order of ranks: the sum over all words counts. It also finds the pages of
// documentation of providers that match by words of their own and words of their provider. An empty
// query finds all entries, and no page.
// Of entries and of pages it returns so many at most; 0: all. The only error is the end of ctx.
func (s *Searcher) Search(ctx context.Context, q Query, most int) (entries, pages Results, err error) {
	x := s.borrow()
	defer s.giveBack(x)
	x.ctx = ctx
	if err := s.search(q, x); err != nil {
		return Results{}, Results{}, err
	}
	return bestOf(x.entries, most), bestOf(x.pages, most), nil
}

// search collects the results in the scratch.
func (s *Searcher) search(q Query, x *scratch) error {
	if q.IsEmpty() {
		for i := range s.entries {
			x.entries = append(x.entries, newResult(0, int32(i), 0))
		}
		return nil
	}
	words, canMatch := s.rankWords(&q, x)
	if err := x.ctx.Err(); err != nil || !canMatch {
		return err
	}
	x.order = x.order[:0]
	for i := range words {
		x.order = append(x.order, i)
	}
	slices.SortFunc(x.order, func(a, b int) int { return len(words[a].rows) - len(words[b].rows) })
	s.lookAtCandidates(&q, words, x)
	for _, place := range x.found {
		sum := x.sums[place]
		if s.entries[place].Deprecated != nil {
			sum++ // behind what is as good
		}
		x.entries = append(x.entries, newResult(sum, place, 0))
	}
	if q.most {
		x.leaveOutWorse()
	}
	return nil
}

// rankWords ranks rows for each word. canMatch is false if no row can have enough of the words; then the
// rankings are not complete.
func (s *Searcher) rankWords(q *Query, x *scratch) (words []ranking, canMatch bool) {
	for len(x.words) < len(q.words) {
		x.words = append(x.words, newRanking(s.index.size))
	}
	words = x.words[:len(q.words)]
	for i := range q.phrases {
		s.rankPhrase(&q.phrases[i], words, x)
	}
	if q.source != "" {
		x.to = &x.source
		s.index.rankSource(q.source, &x.ranker)
	}
	x.lacking = x.lacking[:0]
	x.allowed = q.allowed()
	nowhere := 0
	for i := range words {
		w := &q.words[i]
		switch {
		case w.optional && w.kind == s.kind: // all are of the kind
			x.lacking = append(x.lacking, 0)
			continue
		case w.optional:
			x.lacking = append(x.lacking, int16(missing))
		default:
			x.lacking = append(x.lacking, lacksWord)
		}
		x.to = &words[i]
		s.index.rank(w, &x.ranker)
		if !w.optional && len(words[i].rows) == 0 {
			nowhere++
		}
		if nowhere > x.allowed && len(x.source.rows) == 0 {
			return words, false
		}
	}
	return words, true
}

// bestOf returns the best results, in order, and so many at most; 0: all.
func bestOf(found []result, most int) Results {
	if most == 0 || len(found) <= most {
		best := slices.Clone(found)
		slices.Sort(best)
		return Results{best}
	}
	best := make([]result, 0, most+1)
	for _, r := range found {
		if len(best) == most && r > best[most-1] {
			continue
		}
		at, _ := slices.BinarySearch(best, r)
		best = slices.Insert(best, at, r)
		best = best[:min(len(best), most)]
	}
	return Results{best}
}

// areNames reports whether all words are the names of a provider: the provider itself is
// meant, not all its pages.
func areNames(words []ranking, whole int32) bool {
	for i := range words {
		if words[i].ranks[whole] > exactOther {
			return false
		}
	}
	return true
}

// lacksWord is added to the sum of what lacks a word, so that all that has more words is better.
const lacksWord = 1000

// most is the worst sum of a result.
func (x *scratch) most() int16 { return int16(x.allowed+1)*lacksWord - 1 }

// sum sums up the ranks of the words for a row. What is found in an entry itself is found in its
// submodules and pages.
func (x *scratch) sum(words []ranking, row, whole int32) (sum int16) {
	for i := range words {
		i := x.order[i]
		if best := min(words[i].ranks[row], words[i].ranks[whole]); best != notFound {
			sum += int16(best)
		} else if sum += x.lacking[i]; sum > x.most() {
			break
		}
	}
	if r := x.source.ranks[row]; r != notFound {
		sum = min(sum, int16(r))
	}
	return sum
}

// rankPhrase ranks rows for words that are one name there. Together they are as good as the name.
func (s *Searcher) rankPhrase(p *phrase, words []ranking, x *scratch) {
	x.to = &x.phrase
	s.index.rankPhrase(p, &x.ranker)
	for _, row := range x.phrase.rows {
		rest, left := x.phrase.ranks[row], rank(p.to-p.from)
		for i := p.from; i < p.to; i++ {
			share := (rest + left - 1) / left
			words[i].lower(row, share)
			rest, left = rest-share, left-1
		}
	}
	x.phrase.clear()
}

// leaveOutWorse leaves out what lacks more words than other results do.
func (x *scratch) leaveOutWorse() {
	least := Results{x.entries}.lacking(Results{x.pages}.lacking(maxQueryWords * 2))
	isWorse := func(r result) bool { return r.lacking() > least }
	x.entries, x.pages = slices.DeleteFunc(x.entries, isWorse), slices.DeleteFunc(x.pages, isWorse)
}

// Results are the results of a search, the best first.
type Results struct{ found []result }

// A result is a sum of ranks, the place of an entry, and the row of a part of the entry, in
// one number, so that results are ordered by it.
type result uint64

func newResult(sum int16, place, part int32) result {
	return result(sum)<<48 | result(place)<<20 | result(part)
}

// OneResult returns the only result: an entry by its place, or a page of its documentation; -1: none.
func OneResult(entry, page int) Results {
	return Results{[]result{newResult(0, int32(entry), int32(page+1))}}
}

func (r result) lacking() int { return int(r>>48) / lacksWord }

// lacking returns how many words the results lack that lack the fewest; at most so many.
func (r Results) lacking(most int) int {
	for _, one := range r.found {
		most = min(most, one.lacking())
	}
	return most
}

// Best says how good the first result is: of the results of several searches for a query, the lowest
// is the best.
func (r Results) Best() int {
	if len(r.found) == 0 {
		return math.MaxInt
	}
	return int(r.found[0] >> 48)
}

// Lacking returns how many words of the query the first result lacks.
func (r Results) Lacking() int { return r.lacking(maxQueryWords * 2) }

// Len returns the number of results.
func (r Results) Len() int { return len(r.found) }

// Item returns the place of a result among the entries of the searcher, and the number of a
// page among the titles of the provider's documentation.
func (r Results) Item(i int) (entry, page int) {
	found := r.found[i]
	return int(found >> 20 & (1<<28 - 1)), int(found&(1<<20-1)) - 1
}
