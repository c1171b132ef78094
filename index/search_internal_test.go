package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// manyEntries are those of a large registry: with READMEs of a hundred words, twenty
// inputs, and a submodule for every second one.
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
		entries[i].text = newEntryText(entries[i], &s)
	}
	return entries
}

var largeQueries = []string{"aws", "network aws", "a", "net", "vpc aws network", "team07/network", "nothing-like-this", "aaa0", "abc", "b"}

func BenchmarkSearch(b *testing.B) {
	s := NewSearcher(manyEntries(10_000), nil)
	for _, query := range largeQueries {
		q := ParseQuery(query)
		b.Run(strings.ReplaceAll(query, " ", "+"), func(b *testing.B) {
			b.ReportAllocs()
			found := 0
			for b.Loop() {
				found = s.Search(q).Len()
			}
			b.ReportMetric(float64(found), "found")
		})
	}
}

func BenchmarkNewSearcher(b *testing.B) {
	entries := manyEntries(10_000)
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			NewSearcher(entries, nil)
		}
	})
	b.Run("after one entry has changed", func(b *testing.B) {
		b.ReportAllocs()
		s := NewSearcher(entries, nil)
		for i := 0; b.Loop(); i++ {
			changed := *entries[i%len(entries)]
			entries = slices.Clone(entries)
			entries[i%len(entries)] = &changed
			s = NewSearcher(entries, s)
		}
		b.ReportMetric(float64(len(s.segments)), "segments")
	})
}
