package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// manyEntries returns the modules of a large registry: with READMEs of a hundred words,
// twenty inputs, and a submodule in every second module.
func manyEntries(count int) []*Entry {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(of int) string {
		// Few words are frequent, most are rare.
		n := int(float64(of) * random.Float64() * random.Float64() * random.Float64())
		return fmt.Sprintf("%c%c%c%x", 'a'+n%26, 'a'+n/26%26, 'a'+n*7%26, n)
	}
	words := func(count, of int, separator string) string {
		list := make([]string, count)
		for i := range list {
			list[i] = word(of)
		}
		return strings.Join(list, separator)
	}
	entries := make([]*Entry, count)
	for i := range entries {
		s := moduledoc.Summary{Description: words(15, 20_000, " "), Words: words(120, 100_000, " ")}
		for range 20 {
			s.Inputs = append(s.Inputs, words(3, 2_000, "_"))
		}
		if i%2 == 0 {
			s.Submodules = []moduledoc.SubmoduleSummary{{Path: "modules/" + word(1000), Description: words(10, 20_000, " "), Inputs: s.Inputs[:5]}}
		}
		entries[i] = &Entry{
			Address:     address.Address{Namespace: fmt.Sprintf("team%02d", i%50), Name: fmt.Sprintf("%s-network-%d", word(500), i), System: []string{"aws", "azurerm", "google"}[i%3]},
			Description: s.Description,
		}
		entries[i].terms = newTerms(entries[i], &s)
	}
	return entries
}

// After any changes an index has few segments, and at least half of the entries in each are
// still there.
func TestSearchIndexStaysSmall(t *testing.T) {
	entries := manyEntries(500)
	x := newSearchIndex(entries, nil)
	random := rand.New(rand.NewPCG(5, 6))
	for round := range 200 {
		if round == 100 {
			entries = entries[:20]
		}
		entries = slices.Clone(entries)
		for range 1 + random.IntN(5) {
			changed := *entries[random.IntN(len(entries))]
			entries[random.IntN(len(entries))] = &changed
		}
		x = newSearchIndex(entries, x)
		there := make(map[*Entry]bool)
		for _, e := range entries {
			there[e] = true
		}
		for i, s := range x.segments {
			left := 0
			for e := range s.rows {
				if there[e] {
					left++
				}
			}
			if 2*left < len(s.rows) {
				t.Fatalf("round %d: only %d of %d entries of segment %d are still there", round, left, len(s.rows), i)
			}
		}
		if len(x.segments) > 10 {
			t.Fatalf("round %d: there are %d segments for %d entries", round, len(x.segments), len(entries))
		}
	}
}

// largeCatalog has 20,000 modules and 4,000 providers.
func largeCatalog() *Catalog {
	c := &Catalog{Modules: manyEntries(20_000), lastIndex: new(lastIndex)}
	for i := range 4000 {
		e := &Entry{Address: address.Address{Hostname: "registry.terraform.io", Namespace: fmt.Sprintf("team%02d", i%50), Name: fmt.Sprintf("aws%d", i)}}
		e.terms = newTerms(e, new(moduledoc.Summary))
		c.Providers = append(c.Providers, e)
	}
	c.searchIndex = sync.OnceValue(func() *searchIndex { return c.lastIndex.update(c) })
	return c
}

// Each query is also searched by someone who sees a tenth of the modules.
func BenchmarkSearch(b *testing.B) {
	c := largeCatalog()
	all, some := c.Searcher(c.Modules), c.Searcher(c.Modules[:len(c.Modules)/10])
	for _, query := range []string{"aws", "network aws", "a", "net", "vpc aws network", "team07/network", "nothing-like-this", "aaa0", "abc", "b"} {
		q := ParseQuery(query)
		for name, s := range map[string]*Searcher{"all": all, "some": some} {
			b.Run(strings.ReplaceAll(query, " ", "+")+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				found := 0
				for b.Loop() {
					found = s.Search(q).Len()
				}
				b.ReportMetric(float64(found), "found")
			})
		}
	}
}

// The goal is a p99 of 10 ms.
func BenchmarkSearchP99(b *testing.B) {
	c := largeCatalog()
	s := c.Searcher(c.Modules)
	random := rand.New(rand.NewPCG(3, 4))
	var took []time.Duration
	for b.Loop() {
		var words []string
		for range 1 + random.IntN(3) {
			t := c.Modules[random.IntN(len(c.Modules))].terms
			list := strings.Fields(t.description + " " + t.further)
			words = append(words, list[random.IntN(len(list))])
		}
		q := ParseQuery(strings.Join(words, " "))
		began := time.Now()
		s.Search(q)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

func BenchmarkSearchIndex(b *testing.B) {
	entries := manyEntries(10_000)
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			newSearchIndex(entries, nil)
		}
	})
	b.Run("after one entry has changed", func(b *testing.B) {
		b.ReportAllocs()
		x := newSearchIndex(entries, nil)
		for i := 0; b.Loop(); i++ {
			changed := *entries[i%len(entries)]
			entries = slices.Clone(entries)
			entries[i%len(entries)] = &changed
			x = newSearchIndex(entries, x)
		}
		b.ReportMetric(float64(len(x.segments)), "segments")
	})
	b.Run("a searcher", func(b *testing.B) {
		b.ReportAllocs()
		c := largeCatalog()
		c.searchIndex()
		for b.Loop() {
			c.Searcher(c.Modules)
		}
	})
}
