package catalog

import (
	"math"
	"strings"
	"sync"
	"unicode"
)

// Bounds of a query, beyond which nothing is looked for.
const (
	maxQuery      = 256 // bytes
	maxQueryWords = 8
)

// A Query has the words of a search, which all must be found. The zero Query has none.
type Query struct {
	words []string // in lower case, not empty, without control characters
}

// ParseQuery reads a query as people and tools write it. Quotes that tools put around a
// query are not part of it (checklist 112). An address is a query too: its names are words.
func ParseQuery(query string) Query {
	query = strings.TrimSpace(query)
	if len(query) > maxQuery {
		query = query[:maxQuery]
	}
	query = strings.ToValidUTF8(query, "")
	for _, quote := range []string{"'", `"`} {
		if unquoted, ok := strings.CutPrefix(query, quote); ok {
			query = strings.TrimSuffix(unquoted, quote)
			break
		}
	}
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool {
		return r == '/' || unicode.IsSpace(r) || unicode.IsControl(r)
	})
	return Query{words[:min(len(words), maxQueryWords)]}
}

// Empty reports whether the query has no words.
func (q Query) Empty() bool { return len(q.words) == 0 }

// A rank says how well an entry matches a word; the best rank is the lowest.
type rank uint8

const (
	exactName rank = iota
	exactOther
	prefixOfName
	prefixOfOther
	inAddress
	inDescription
	inText
	notFound rank = math.MaxUint8
)

// submodulePenalty ranks a submodule behind modules that match as well.
const submodulePenalty = inAddress

// maxSum is the highest sum of ranks of a query that is found.
const maxSum = maxQueryWords*int(inText) + int(submodulePenalty)

// A Searcher finds entries that one audience may see, out of the index of the whole
// catalog. No answer and no order depends on other entries. The time of a search does: by a
// few nanoseconds for each entry of the catalog that has one of the words. A Searcher never
// changes.
type Searcher struct {
	entries []*Entry
	rows    []row
	index   *searchIndex
	scratch sync.Pool // of *scratch
}

// A row is a possible result: an entry, or a submodule. The rows of the submodules of an
// entry follow the row of the entry.
type row struct {
	entry     int32 // its place in entries
	submodule int32 // its place among the submodules of the entry; -1: the entry itself
	indexed   int32 // its row in the index
}

// behind returns how many rows before a row, and before its row in the index, the row of
// the entry itself is.
func (r row) behind() int { return int(r.submodule) + 1 }

// Searcher returns a searcher of these entries of the catalog. Entries that match equally
// are found in this order.
func (c *Catalog) Searcher(entries []*Entry) *Searcher {
	s := &Searcher{entries: entries, index: c.searchIndex()}
	for i, e := range entries {
		first, ok := s.index.row(e)
		if !ok {
			continue // an entry of another catalog
		}
		for submodule := range len(e.terms.submodules) + 1 {
			s.rows = append(s.rows, row{int32(i), int32(submodule) - 1, first + int32(submodule)})
		}
	}
	return s
}

// A scratch has what a search needs for each row. It is used again, since the garbage of
// many searches would cost as much as the searches.
type scratch struct {
	sums   []int16 // of the ranks of the words; negative: a word is not found
	itself []bool  // a word is found in the names or the text of the row itself
	ranks  []rank  // of one word, by the row in the index
}

func (s *Searcher) borrow() *scratch {
	x, _ := s.scratch.Get().(*scratch)
	if x == nil {
		return &scratch{make([]int16, len(s.rows)), make([]bool, len(s.rows)), make([]rank, s.index.size)}
	}
	clear(x.sums)
	clear(x.itself)
	return x
}

// Search finds all rows that match all words, the best first: by exact name, then by the
// beginning of a name, by a part of a name, by the words of the description, and by the
// words of the README and of the names of inputs and outputs. Modules come before their
// submodules. An empty query finds all entries.
func (s *Searcher) Search(q Query) Results {
	x := s.borrow()
	defer s.scratch.Put(x)
	for _, w := range q.words {
		s.index.rank(w, x.ranks)
		if !s.add(x) {
			return Results{searcher: s}
		}
	}
	for i, r := range s.rows {
		entry := i - r.behind()
		switch {
		case r.submodule < 0 || x.sums[i] < 0:
		case !x.itself[i]:
			x.sums[i] = -1 // a submodule is found by something of its own
		default:
			// It comes after its module, which is as good as it.
			x.sums[i] += int16(submodulePenalty)
			x.sums[entry] = min(x.sums[entry], x.sums[i])
		}
	}
	return Results{s, bySum(x.sums)}
}

// add adds the ranks of a word to the sums, and reports whether any row has all words so
// far. What is found in an entry itself is found in its submodules.
func (s *Searcher) add(x *scratch) (found bool) {
	for i := range s.rows {
		if x.sums[i] < 0 {
			continue
		}
		r := &s.rows[i]
		best := x.ranks[r.indexed]
		x.itself[i] = x.itself[i] || best != notFound
		if best = min(best, x.ranks[int(r.indexed)-r.behind()]); best == notFound {
			x.sums[i] = -1
			continue
		}
		x.sums[i] += int16(best)
		found = true
	}
	return found
}

// bySum returns the rows whose sums are not negative, the lowest first.
func bySum(sums []int16) []int32 {
	var counts [maxSum + 2]int32
	for _, sum := range sums {
		if sum >= 0 {
			counts[sum+1]++
		}
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	rows := make([]int32, counts[len(counts)-1])
	for i, sum := range sums {
		if sum >= 0 {
			rows[counts[sum]] = int32(i)
			counts[sum]++
		}
	}
	return rows
}

// Results are the results of a search, the best first.
type Results struct {
	searcher *Searcher
	rows     []int32
}

// A Match is a result of a search: an entry or a submodule.
type Match struct {
	// Entry is the place of the entry among the entries of the searcher.
	Entry int

	// Submodule is the path of the submodule in the module, such as "modules/subnets". It is
	// empty for the entry itself.
	Submodule string
}

// Len returns the number of results.
func (r Results) Len() int { return len(r.rows) }

// At returns one result.
func (r Results) At(i int) Match {
	row := r.searcher.rows[r.rows[i]]
	m := Match{Entry: int(row.entry)}
	if row.submodule >= 0 {
		m.Submodule = r.searcher.entries[row.entry].terms.submodules[row.submodule].path
	}
	return m
}
