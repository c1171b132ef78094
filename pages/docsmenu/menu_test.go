package docsmenu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
)

// docsOf returns documentation with so many resources in each of the subcategories.
func docsOf(counts map[string]int) *content.Docs {
	d := &content.Docs{Pages: []content.DocPage{{Category: content.DocOverview}, {Category: content.DocGuides, Slug: "start", Title: "Getting started"}}}
	for i := range counts[""] {
		d.Pages = append(d.Pages, content.DocPage{Category: content.DocResources, Slug: fmt.Sprintf("thing_%04d", i)})
	}
	for _, subcategory := range sorted(counts) {
		for i := range counts[subcategory] {
			d.Pages = append(d.Pages, content.DocPage{Category: content.DocResources, Slug: fmt.Sprintf("%s_%04d", strings.ToLower(subcategory), i), Subcategory: subcategory})
		}
	}
	return d
}

func sorted(counts map[string]int) (names []string) {
	for name := range counts {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func urls() URLs {
	return URLs{
		Page: func(p *content.DocPage) string { return "/" + p.Slug },
		List: func(group string) string { return "/list?" + group },
	}
}

// links returns the texts of the links to pages, the current one with a star.
func links(m Menu) (all []string) {
	for _, g := range m.Groups {
		for _, s := range g.Sections {
			for _, l := range s.Links {
				if l.Current {
					l.Text = "* " + l.Text
				}
				all = append(all, l.Text)
			}
		}
	}
	return all
}

func TestMenu(t *testing.T) {
	services := map[string]int{}
	for i := range 250 {
		services[fmt.Sprintf("S%03d", i)] = 16
	}
	for _, test := range []struct {
		rule    string
		counts  map[string]int
		current int // the page that is shown
		group   string

		groups, links int
		open          []string
		all           string
	}{
		{rule: "a small one has all pages, unfolded", counts: map[string]int{"": 10, "A": 5}, current: 3, groups: 3, links: 16, open: []string{"Guides", "Resources", "A"}},
		{rule: "a larger one has all pages, folded but for the group of the page", counts: map[string]int{"": 50, "A": 50}, current: 100, groups: 3, links: 101, open: []string{"A"}},
		{rule: "one with too many pages for a page has those of the group of the page, and lists", counts: services, current: 2 + 16*7, groups: 200, links: 16, open: []string{"S007"}, all: "/list?"},
		{rule: "of a group with too many pages it has those near the page", counts: map[string]int{"": 4000}, current: 2000, groups: 2, links: maxNear, open: []string{"Resources"}, all: "/list?"},
		{rule: "a list opens its group", counts: map[string]int{"": 50, "A": 50}, current: -1, group: "A", groups: 3, links: 101, open: []string{"A"}},
		{rule: "a list of one of too many groups has no pages", counts: services, current: -1, group: "S249", groups: 200, links: 0, open: []string{"S249"}, all: "/list?"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			d := docsOf(test.counts)
			var current *content.DocPage
			if test.current >= 0 {
				current = &d.Pages[test.current]
			}
			m := New(d, "demo", current, test.group, urls())
			if m.Pages != len(d.Pages) || m.Overview.URL != "/" || m.All != test.all {
				t.Errorf("%d pages, overview %q, all at %q", m.Pages, m.Overview.URL, m.All)
			}
			var open []string
			for _, g := range m.Groups {
				if g.Open {
					open = append(open, g.Title)
				}
				if (g.List != "") != (test.all != "") {
					t.Errorf("the list of %s is at %q", g.Title, g.List)
				}
			}
			if !slices.Equal(open, test.open) {
				t.Errorf("open are %q", open)
			}
			got := links(m)
			if len(m.Groups) != test.groups || len(got) != test.links {
				t.Errorf("%d groups and %d links, want %d and %d", len(m.Groups), len(got), test.groups, test.links)
			}
			if current != nil && !slices.Contains(got, "* "+Label(current, "demo")) {
				t.Error("it does not lead to the page that is shown")
			}
		})
	}
}

func TestLabelsAreNamesOfConfigurations(t *testing.T) {
	for _, test := range []struct {
		rule, typ string
		page      content.DocPage
		want      string
	}{
		{"with the type of the provider, which the name of the file lacks", "demo", content.DocPage{Category: content.DocResources, Slug: "thing"}, "demo_thing"},
		{"with the type that the name of the file has", "demo", content.DocPage{Category: content.DocResources, Slug: "demo_thing"}, "demo_thing"},
		{"of a provider whose resources begin with another word", "demo-beta", content.DocPage{Category: content.DocResources, Slug: "thing", Title: "demo_thing Resource - terraform-provider-demo-beta"}, "demo_thing"},
		{"of such a provider whose files have the whole name", "demo-beta", content.DocPage{Category: content.DocDataSources, Slug: "demo_thing", Title: "demo_thing Data Source - terraform-provider-demo-beta"}, "demo_thing"},
		{"of a function", "demo", content.DocPage{Category: content.DocFunctions, Slug: "parse", Title: "parse function - demo"}, "parse"},
		{"of a guide by its title", "demo", content.DocPage{Category: content.DocGuides, Slug: "start", Title: "Getting started"}, "Getting started"},
		{"of a guide without a title", "demo", content.DocPage{Category: content.DocGuides, Slug: "start"}, "start"},
	} {
		if got := Label(&test.page, test.typ); got != test.want {
			t.Errorf("%s: %s, not %s", test.rule, got, test.want)
		}
	}
}

func TestFind(t *testing.T) {
	d := &content.Docs{Pages: []content.DocPage{
		{Category: content.DocOverview, Description: "All of the cloud"},
		{Category: content.DocGuides, Slug: "start", Title: "Getting started with buckets"},
		{Category: content.DocResources, Slug: "log", Description: "A log in a bucket"},
		{Category: content.DocResources, Slug: "bucket", Subcategory: "Storage"},
		{Category: content.DocDataSources, Slug: "bucket", Subcategory: "Storage"},
	}}
	for _, test := range []struct{ rule, group, words, want string }{
		{"without words all", "", "", "Overview, Getting started with buckets, demo_log, demo_bucket, demo_bucket"},
		{"of a group", "Storage", "", "demo_bucket, demo_bucket"},
		{"of what has no subcategory", "Resources", "", "demo_log"},
		{"by name first, then by description", "", "Bucket", "Getting started with buckets, demo_bucket, demo_bucket, demo_log"},
		{"all words", "", "log bucket", "demo_log"},
		{"in a group", "Resources", "bucket", "demo_log"},
		{"nothing", "", "elsewhere", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var got []string
			for _, p := range Find(d, "demo", test.group, test.words) {
				got = append(got, Label(p, "demo"))
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("%q", got)
			}
		})
	}
}
