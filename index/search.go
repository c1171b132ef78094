package index

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// Bounds of a query: what is beyond them is not looked for.
const (
	maxQuery      = 256 // bytes
	maxQueryWords = 8
)

// A Query is what is searched for: words, which all must be found. The zero Query has
// none.
type Query struct {
	words []string // in lower case, without control characters; none is empty
}

// ParseQuery reads a query as people and tools write it. Tools put it in quotes, which
// are not part of it (checklist 112). An address is a query too: its names are words.
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

// A rank says how well a word is found in an entry; the best is the lowest.
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

// A Searcher finds entries by words. It never changes. What it takes for a search
// depends on its own entries only, so that a searcher of what somebody may see tells
// nothing of anything else.
type Searcher struct {
	entries  []*Entry
	rows     []row
	segments []placedSegment
	scratch  sync.Pool // of *scratch
}

// A placedSegment is a segment as a part of a searcher: the rows of the searcher that
// are those of the segment. A row of the segment that is none of the searcher's, as
// its entry has been replaced, is one beyond them.
type placedSegment struct {
	*segment
	rows []int32
}

// A row is what is found: an entry, or a submodule of it. The rows of an entry's
// submodules follow its own.
type row struct {
	entry     int32 // its place in entries
	submodule int32 // its place in the entry's submodules; -1: the entry itself
	own       int32 // the row of the entry itself
}

// NewSearcher returns a searcher of entries, which finds those that match equally in
// this order. before, which may be nil, is an earlier one for the same readers: what
// of it has not changed is not made again.
func NewSearcher(entries []*Entry, before *Searcher) *Searcher {
	s := &Searcher{entries: entries}
	own := make(map[*Entry]int32, len(entries)) // their rows
	for i, e := range entries {
		row := row{int32(i), -1, int32(len(s.rows))}
		own[e] = row.own
		for ; int(row.submodule) < len(e.text.submodules); row.submodule++ {
			s.rows = append(s.rows, row)
		}
	}
	fresh := s.keep(before, own)
	if len(fresh) > 0 {
		s.place(newSegment(fresh), own)
	}
	return s
}

// Len is how many entries it has.
func (s *Searcher) Len() int { return len(s.entries) }

// keep takes over segments of an earlier searcher, and returns the entries that are in
// none of them. A segment is given up if half of it has been replaced, or if it is not
// larger than all that are smaller together: so there are few, and large ones are
// seldom made again.
func (s *Searcher) keep(before *Searcher, own map[*Entry]int32) (fresh []*Entry) {
	var known []*segment
	if before != nil {
		for _, p := range before.segments {
			known = append(known, p.segment)
		}
	}
	live := make(map[*segment]int, len(known)) // how many of their entries are wanted
	others := len(own)
	for _, segment := range known {
		for _, e := range segment.entries {
			if _, ok := own[e]; ok {
				live[segment]++
				others--
			}
		}
	}
	slices.SortFunc(known, func(a, b *segment) int { return cmp.Compare(live[a], live[b]) })
	kept := make(map[*Entry]bool)
	for _, segment := range known {
		if live[segment] <= max(others, len(segment.entries)/2) {
			others += live[segment]
			continue
		}
		s.place(segment, own)
		for _, e := range segment.entries {
			kept[e] = true
		}
	}
	for _, e := range s.entries {
		if !kept[e] {
			fresh = append(fresh, e)
		}
	}
	return fresh
}

// place adds a segment.
func (s *Searcher) place(segment *segment, own map[*Entry]int32) {
	p := placedSegment{segment: segment}
	for _, e := range segment.entries {
		first, ok := own[e]
		for i := range 1 + int32(len(e.text.submodules)) {
			if ok {
				p.rows = append(p.rows, first+i)
			} else {
				p.rows = append(p.rows, int32(len(s.rows)))
			}
		}
	}
	s.segments = append(s.segments, p)
}

// A scratch is what a search needs for each row. It is used again, since the garbage
// of many searches would cost as much as they do.
type scratch struct {
	sums   []int16 // of the words' ranks; negative: one of them is not found
	itself []bool  // a word is found in the row's own names or text
	ranks  []rank  // of one word, and one more for rows of segments that are none
}

func (s *Searcher) borrow() *scratch {
	x, _ := s.scratch.Get().(*scratch)
	if x == nil {
		x = &scratch{make([]int16, len(s.rows)), make([]bool, len(s.rows)), make([]rank, len(s.rows)+1)}
	}
	clear(x.sums)
	clear(x.itself)
	return x
}

// Search finds everything in which all words are found, the best first: by exact
// name, then by the beginning of a name, by a part of one, by the words of the
// description, and by those of the README and of the names of inputs and outputs.
// Modules come before their submodules. An empty query finds all entries.
func (s *Searcher) Search(q Query) Results {
	x := s.borrow()
	defer s.scratch.Put(x)
	sums, itself, ranks := x.sums, x.itself, x.ranks
	for _, w := range q.words {
		fill(ranks, notFound)
		parts := strings.FieldsFunc(w, notInWord) // of nat_gateway: both must be in a text
		for _, segment := range s.segments {
			segment.names.rank(w, ranks, segment.rows)
			segment.text.rank(parts, ranks, segment.rows)
		}
		some := false
		for i, best := range ranks[:len(sums)] {
			if sums[i] < 0 {
				continue
			}
			itself[i] = itself[i] || best != notFound
			if best = min(best, ranks[s.rows[i].own]); best == notFound {
				sums[i] = -1
				continue
			}
			sums[i] += int16(best)
			some = true
		}
		if !some {
			return Results{searcher: s}
		}
	}
	for i := range sums {
		own := s.rows[i].own
		switch {
		case s.rows[i].submodule < 0 || sums[i] < 0:
		case !itself[i]:
			sums[i] = -1 // a submodule is found by something of its own
		default:
			// It comes after its module, which is as good as it.
			sums[i] += int16(submodulePenalty)
			sums[own] = min(sums[own], sums[i])
		}
	}
	return Results{s, bySum(sums)}
}

// bySum returns the rows with sums that are not negative, the lowest first.
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

// Results are what a search finds, the best first.
type Results struct {
	searcher *Searcher
	rows     []int32
}

// A Match is an entry that a search finds, or a submodule of it.
type Match struct {
	// Entry is the number of the entry among those of the searcher.
	Entry int

	// Submodule is its path in the module, "modules/subnets"; empty for the entry
	// itself.
	Submodule string
}

// Len is how many there are.
func (r Results) Len() int { return len(r.rows) }

// At returns one of them.
func (r Results) At(i int) Match {
	row := r.searcher.rows[r.rows[i]]
	m := Match{Entry: int(row.entry)}
	if row.submodule >= 0 {
		m.Submodule = r.searcher.entries[row.entry].text.submodules[row.submodule].path
	}
	return m
}

// An entryText is what a search reads of an entry, in lower case.
type entryText struct {
	names []string // the first is that of the provider or module itself
	searchText
	submodules []submoduleText
}

// A searchText is text of which the words count.
type searchText struct {
	description string
	words       string // of the README, and names of inputs and outputs
}

type submoduleText struct {
	path, name string
	searchText
}

func newEntryText(e *Entry, s *moduledoc.Summary) entryText {
	a := e.Address
	t := entryText{searchText: searchText{
		description: strings.ToLower(e.Description + " " + e.Owner),
		words:       s.Words + " " + strings.ToLower(strings.Join(s.Inputs, " ")+" "+strings.Join(s.Outputs, " ")),
	}}
	for _, name := range []string{a.Name, a.Namespace, a.System, string(a.Hostname)} {
		if name != "" {
			t.names = append(t.names, strings.ToLower(name))
		}
	}
	for _, sub := range s.Submodules {
		t.submodules = append(t.submodules, submoduleText{
			path: sub.Path, name: strings.ToLower(strings.TrimPrefix(sub.Path, "modules/")),
			searchText: searchText{strings.ToLower(sub.Description), strings.ToLower(strings.Join(sub.Inputs, " "))},
		})
	}
	return t
}
