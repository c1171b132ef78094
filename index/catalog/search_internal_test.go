package catalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
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
		entries[i].summary = func() moduledoc.Summary { return s }
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

// searchFor searches, and returns how often it has looked at a row that has a word, and how many
// of these rows it has ranked.
func searchFor(t *testing.T, ctx context.Context, s *Searcher, query string) (postings, ranked int, err error) {
	t.Helper()
	for _, q := range []Query{ParseQuery(query), ParseQuery(query).Loosen()} {
		x := s.borrow()
		x.ctx = ctx
		searchErr := s.search(q, x)
		err = errors.Join(err, searchErr)
		postings, ranked = postings+x.postings, ranked+x.ranked
	}
	return postings, ranked, err
}

// No query costs more than a number of looks for the letter that most words begin with, however
// it is made up.
func TestWorkOfASearchIsBounded(t *testing.T) {
	c := &Catalog{Modules: manyEntries(300), last: new(lastIndexes)}
	c.index()
	s := c.ModuleSearcher(c.Modules)
	once, _, _ := searchFor(t, t.Context(), s, "a")
	letters := func(separator string) (query string) {
		for i := range maxQuery {
			query += string('a'+rune(i%26)) + separator
		}
		return query
	}
	for _, test := range []struct{ rule, query string }{
		{"many parts", letters("-")},
		{"the same part many times", strings.Repeat("a.", 150)},
		{"many words", letters(" ")},
		{"plurals", strings.Repeat("teams-", 40) + "teams"},
		{"many names", letters("/")},
		{"characters without spaces", strings.Repeat("東京", 50)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if looked, _, err := searchFor(t, t.Context(), s, test.query); err != nil || looked > 16*once {
				t.Errorf("it has looked at %d postings, and at %d for a letter, %v", looked, once, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if looked, _, err := searchFor(t, ctx, s, letters("-")); !errors.Is(err, context.Canceled) || looked > 0 {
		t.Errorf("when nobody waits any more it has looked at %d postings, %v", looked, err)
	}
}

// The tokens of a text are together a small multiple of the text, whatever its author has
// written.
func TestTokensAreBounded(t *testing.T) {
	for _, test := range []struct{ rule, text string }{
		{"many ends of a name", strings.Repeat("a_", 8<<10)},
		{"many names with many ends", strings.Repeat(strings.Repeat("a_", 60)+" ", 130)},
		{"a long word", strings.Repeat("a", 16<<10)},
		{"a long word of letters of several bytes", strings.Repeat("ä", 8<<10)},
		{"characters without spaces", strings.Repeat("東", 5<<10)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			size := 0
			eachToken(test.text, func(_ int, token string, _ bool) {
				size += len(token)
				if len(token) > 128 || !utf8.ValidString(token) {
					t.Fatalf("a token has %d bytes: %q", len(token), token)
				}
			})
			if size > 16*len(test.text) {
				t.Errorf("the tokens of %d bytes have %d", len(test.text), size)
			}
		})
	}
}

// Hidden entries are not ranked: a search does the same as where there are none.
func TestWhatIsHiddenIsNotRanked(t *testing.T) {
	entries := manyEntries(400)
	both, visible := &Catalog{Modules: entries, last: new(lastIndexes)}, &Catalog{Modules: entries[:40], last: new(lastIndexes)}
	both.index()
	visible.index()
	among, alone := both.ModuleSearcher(entries[:40]), visible.ModuleSearcher(entries[:40])
	for _, query := range []string{"aws", "team07", "network", "a", "team-network-aws", "aaa0 b", "teams/network", "hashicorp/aws"} {
		_, got, _ := searchFor(t, t.Context(), among, query)
		_, want, _ := searchFor(t, t.Context(), alone, query)
		if got != want {
			t.Errorf("%q ranks %d rows, and %d where there is nothing else", query, got, want)
		}
	}
	if _, got, _ := searchFor(t, t.Context(), both.ModuleSearcher(nil), "aws"); got != 0 {
		t.Errorf("%d rows are ranked for somebody who sees none", got)
	}
}

// largeCatalog has 20,000 modules, and 4,000 providers with 60 pages of documentation each.
func largeCatalog() *Catalog {
	c := &Catalog{Modules: manyEntries(20_000), last: new(lastIndexes)}
	for i := range 4000 {
		e := &Entry{Address: address.Address{Hostname: "registry.terraform.io", Namespace: fmt.Sprintf("team%02d", i%50), Name: fmt.Sprintf("aws%d", i)}}
		e.pages = manyPages(60, i)
		c.Providers = append(c.Providers, e)
	}
	c.index()
	return c
}

// manyPages returns encoded titles of that many pages.
func manyPages(count, seed int) content.Titles {
	random := rand.New(rand.NewPCG(7, uint64(seed)))
	b := content.Titles{4}
	for i := range count {
		slug := fmt.Sprintf("%s_%s_%d", topics[random.IntN(len(topics))], topics[random.IntN(len(topics))], i)
		title := ""
		if i%10 == 0 {
			title = "How to use " + topics[random.IntN(len(topics))]
		}
		b = append(b, "rd"[i%2], byte(len(slug)))
		b = append(append(b, slug...), byte(len(title)))
		b = append(b, title...)
	}
	return b
}

var topics = []string{"network", "bucket", "policy", "cluster", "instance", "group", "role", "record", "queue", "topic", "rule", "table", "function", "user", "key", "secret", "disk", "image", "route", "gateway"}

// Each query is also searched by someone who sees a tenth of the modules.
func BenchmarkSearch(b *testing.B) {
	c := largeCatalog()
	all, some := c.ModuleSearcher(c.Modules), c.ModuleSearcher(c.Modules[:len(c.Modules)/10])
	for _, query := range []string{"aws", "network aws", "a", "net", "vpc aws network", "team07/network", "nothing-like-this", "aaa0", "abc", "b"} {
		q := ParseQuery(query)
		for name, s := range map[string]*Searcher{"all": all, "some": some} {
			b.Run(strings.ReplaceAll(query, " ", "+")+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				found := 0
				for b.Loop() {
					entries, _, _ := s.Search(b.Context(), q, 0)
					found = entries.Len()
				}
				b.ReportMetric(float64(found), "found")
			})
		}
	}
}

// The goal is a p99 of 10 ms.
func BenchmarkSearchP99(b *testing.B) {
	c := largeCatalog()
	s, pages := c.ModuleSearcher(c.Modules), c.ProviderSearcher(c.Providers)
	random := rand.New(rand.NewPCG(3, 4))
	var took []time.Duration
	for b.Loop() {
		var words []string
		for range 1 + random.IntN(3) {
			t := c.Modules[random.IntN(len(c.Modules))].text()
			list := strings.Fields(t.description + " " + t.further + " " + topics[random.IntN(len(topics))])
			words = append(words, list[random.IntN(len(list))])
		}
		q := ParseQuery(strings.Join(words, " "))
		began := time.Now()
		modules, _, _ := s.Search(b.Context(), q, 0)
		providers, titles, _ := pages.Search(b.Context(), q, 0)
		if modules.Len()+providers.Len()+titles.Len() == 0 {
			loose := q.Loosen().Relax()
			s.Search(b.Context(), loose, 0)
			pages.Search(b.Context(), loose, 0)
		}
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
		c.moduleIndex()
		for b.Loop() {
			c.ModuleSearcher(c.Modules)
		}
	})
}

// The memory of an index, without the entries that it is made of.
func BenchmarkSearchIndexHeap(b *testing.B) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	c := largeCatalog()
	for name, entries := range map[string][]*Entry{"modules": c.Modules, "providers": c.Providers} {
		b.Run(name, func(b *testing.B) {
			var x *searchIndex
			before := heap()
			for b.Loop() {
				x = newSearchIndex(entries, nil)
			}
			b.ReportMetric(float64(heap()-before)/float64(len(entries)), "heap-B/entry")
			b.ReportMetric(float64(heap()-before)/float64(x.size), "heap-B/row")
			runtime.KeepAlive(x)
		})
	}
	runtime.KeepAlive(c)
}

// The names of a module may be all words of a source. It was found since it requires that provider, too.
func TestARequiredProviderIsAReasonBesideNames(t *testing.T) {
	e := &Entry{Address: address.Address{Namespace: "hashicorp", Name: "vpc", System: "aws"}, summary: func() moduledoc.Summary {
		return moduledoc.Summary{Uses: moduledoc.Uses{Providers: []moduledoc.Use{{Source: "hashicorp/aws"}}}}
	}}
	for query, want := range map[string]int{"hashicorp/aws": 1, "hashicorp aws": 0} {
		if x := ParseQuery(query).Explain(e); len(x.Reasons) != want {
			t.Errorf("%s: %v", query, x.Reasons)
		}
	}
}

func TestFoldedTextsSayWhereTheyComeFrom(t *testing.T) {
	for _, s := range []string{"", "VPC", "Zürich", "a VPC…", "ÄB c", "Straße 1", "e\u0301a", "東京 VPC", "ガ x", "½ x™", "“A” – b‧c", "\xffA"} {
		var want []byte
		var from []int
		for i, r := range s {
			want = appendFolded(want, r)
			for len(from) < len(want) {
				from = append(from, i)
			}
		}
		from = append(from, len(s))
		folded, offsets := foldAt(s)
		if folded != string(want) || folded != fold(s) {
			t.Errorf("%q is %q and %q, want %q", s, folded, fold(s), want)
			continue
		}
		for i, at := range from {
			if offsets.origin(i) != at {
				t.Errorf("%q: byte %d of %q comes from %d, want %d", s, i, folded, offsets.origin(i), at)
			}
		}
	}
}

func TestTheManualHasAllAbbreviations(t *testing.T) {
	manual, err := os.ReadFile("../../docs/pages.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range abbreviations {
		for _, word := range group {
			if !strings.Contains(string(manual), "`"+word+"`") {
				t.Errorf("%s is missing", word)
			}
		}
	}
}
