package catalog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// searchAllRows is search with each row as a candidate.
func (s *Searcher) searchAllRows(ctx context.Context, q Query) (entries, pages []result) {
	x := s.borrow()
	defer s.giveBack(x)
	x.ctx = ctx
	var words []ranking
	for i := range q.words {
		words = append(words, newRanking(s.index.size))
		x.lacking = append(x.lacking[:i], lacksWord)
		switch w := &q.words[i]; {
		case w.optional && w.kind == s.kind:
			x.lacking[i] = 0
			continue
		case w.optional:
			x.lacking[i] = int16(missing)
		}
		x.to = &words[i]
		s.index.rank(&q.words[i], &x.ranker)
	}
	for i := range q.phrases {
		s.rankPhrase(&q.phrases[i], words, x)
	}
	best := make(map[int32]int16)
	for row := range s.index.size {
		if !s.visible.has(row) || !x.hasWord(words, row) {
			continue
		}
		owner := s.index.owner(row)
		place, sum := s.places[owner.number], int16(0)
		for i := range words {
			if found := min(words[i].ranks[row], words[i].ranks[owner.first]); found != notFound {
				sum += int16(found)
			} else {
				sum += x.lacking[i]
			}
		}
		if int(sum)/lacksWord > q.allowed() {
			continue
		}
		if row != owner.first && !s.entries[place].Address.IsModule() {
			x.pages = append(x.pages, newResult(sum, place, row-owner.first))
			continue
		}
		if row != owner.first {
			sum += int16(submodulePenalty)
		}
		if before, ok := best[place]; !ok || sum < before {
			best[place] = sum
		}
	}
	for place, sum := range best {
		x.entries = append(x.entries, newResult(sum, place, 0))
	}
	if q.most {
		x.leaveOutWorse()
	}
	x.lacking = nil
	return slices.Sorted(slices.Values(x.entries)), slices.Sorted(slices.Values(x.pages))
}

func TestCandidatesAreAllResults(t *testing.T) {
	c := &Catalog{Modules: manyEntries(300), last: new(lastIndexes)}
	for i := range 60 {
		e := &Entry{Address: address.Address{Namespace: fmt.Sprintf("team%02d", i%5), Name: fmt.Sprintf("aws%d", i)}}
		e.pages = manyPages(i%20, i)
		c.Providers = append(c.Providers, e)
	}
	c.index()
	searchers := []*Searcher{c.ModuleSearcher(c.Modules), c.ModuleSearcher(c.Modules[:50]), c.ProviderSearcher(c.Providers), c.ProviderSearcher(c.Providers[:9])}
	random := rand.New(rand.NewPCG(11, 12))
	vocabulary := append([]string{"aws", "team01", "network", "a", "s3", "nothing-like-this", "provider", "module", "bucket", "policy", "team02", "modules"}, topics...)
	for range 300 {
		var list []string
		for range 1 + random.IntN(6) {
			list = append(list, vocabulary[random.IntN(len(vocabulary))])
		}
		text := strings.Join(list, " ")
		q := ParseQuery(text)
		for how, q := range map[string]Query{"exact": q, "loose": q.Loosen(), "relaxed": q.Loosen().Relax()} {
			for i, s := range searchers {
				wantEntries, wantPages := s.searchAllRows(t.Context(), q)
				entries, pages, err := s.Search(t.Context(), q, 0)
				if err != nil || !slices.Equal(entries.found, wantEntries) || !slices.Equal(pages.found, wantPages) {
					t.Fatalf("%s search for %q, searcher %d: %d entries and %d pages, %v; want %d and %d", how, text, i, entries.Len(), pages.Len(), err, len(wantEntries), len(wantPages))
				}
			}
		}
	}
}
