package content_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

func TestTitles(t *testing.T) {
	for _, test := range []struct {
		rule, typ, file, front, name, title string
	}{
		{"a name of a file lacks the type of the provider", "aws", "resources/vpc.md", "", "aws_vpc", ""},
		{"or has it", "aws", "resources/aws_vpc.md", "", "aws_vpc", ""},
		{"what generators write says no more", "aws", "resources/vpc.md", "aws_vpc Resource - terraform-provider-aws", "aws_vpc", ""},
		{"nor what people wrote", "aws", "data-sources/vpc.md", "AWS: aws_vpc", "aws_vpc", ""},
		{"resources of another prefix", "google-beta", "resources/compute_instance.md", "google_compute_instance Resource - terraform-provider-google-beta", "google_compute_instance", "google_compute_instance"},
		{"resources of another prefix, with it in the name of the file", "google-beta", "resources/google_compute_instance.md", "google_compute_instance Resource - terraform-provider-google-beta", "google_compute_instance", "google_compute_instance"},
		{"the same by the heading of a generator", "google-beta", "data-sources/google_project.md", "google_project (Data Source)", "google_project", "google_project"},
		{"a heading of people that lacks the type of the provider", "aws", "resources/vpc_endpoint.md", "vpc_endpoint", "aws_vpc_endpoint", ""},
		{"a title of a generator for a name without parts", "aws", "resources/vpc.md", "vpc Resource - terraform-provider-aws", "aws_vpc", ""},
		{"a title in words", "aws", "resources/vpc.md", "A network", "aws_vpc", "A network"},
		{"a function has its own name", "aws", "functions/arn_parse.md", "arn_parse function - terraform-provider-aws", "arn_parse", ""},
		{"what generators write of a state store", "aws", "state-stores/aws_bucket.md", "aws_bucket State Store - terraform-provider-aws", "aws_bucket", "aws_bucket"},
		{"a guide with a dash in its title", "aws", "guides/v5.md", "Terraform AWS Provider - Version 5 Upgrade Guide", "v5", "Terraform AWS Provider - Version 5 Upgrade Guide"},
		{"a guide of a generator", "aws", "guides/v5.md", "AWS - Upgrading - terraform-provider-aws", "v5", "AWS - Upgrading"},
		{"a guide is known by its title", "aws", "guides/auth.md", "Authentication and more", "auth", "Authentication and more"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			text := "Text."
			if test.front != "" {
				text = "---\npage_title: \"" + test.front + "\"\n---\n"
			}
			files := indextest.New(t).Write("providers/docs/"+test.file, text).Write("providers/docs/index.md", "# It")
			tr, err := files.Open()
			if err != nil {
				t.Fatal(err)
			}
			found, err := content.FindDocs(t.Context(), tr.Providers, "docs")
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := found.ReadTitles(t.Context(), test.typ, nil)
			if err != nil {
				t.Fatal(err)
			}
			titles := encoded.All()
			if len(titles) != 1 || titles[0].Name(test.typ) != test.name || titles[0].Title != test.title {
				t.Errorf("got %q: %+v", encoded, titles)
			}
			if encoded[:len(encoded)-1].All() != nil && test.title != "" {
				t.Error("a part is taken for a whole")
			}
		})
	}
}

// Titles that another release has stored are never misread.
func TestTitlesOfOtherReleases(t *testing.T) {
	for _, test := range []struct {
		rule, stored string
		current      bool
		want         []content.DocTitle
	}{
		{"of this one, cut off", "\x04r\x03vpc\x00d\x03ami\x05An A", true, nil},
		{"of this one", "\x04r\x03vpc\x00d\x03ami\x05An AM", true, []content.DocTitle{{Category: content.DocResources, Slug: "vpc"}, {Category: content.DocDataSources, Slug: "ami", Title: "An AM"}}},
		{"of one that stored the place of the category", "\x01\x02\x03vpc\x00", false, nil},
		{"of one that cut off dashes", "\x02g\x02v5\x03AWS", false, nil},
		{"of one that had no title where a file has the whole name", "\x03r\x0ax_instance\x00", false, nil},
		{"of a newer one", "\x05r\x03vpc\x00", false, nil},
		{"of one that knows more categories", "\x04r\x03vpc\x00z\x03new\x00", true, nil},
		{"none", "", false, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			titles := content.Titles(test.stored)
			if got := titles.All(); titles.AreCurrent() != test.current || !slices.Equal(got, test.want) {
				t.Errorf("current %v: got %+v, want %+v", titles.AreCurrent(), got, test.want)
			}
		})
	}
}

// All pages of the largest providers have titles.
func TestTitlesOfManyPages(t *testing.T) {
	files := indextest.New(t)
	for i := range 3000 {
		files.Write(fmt.Sprintf("providers/docs/%s/page%04d.md", []string{"data-sources", "resources"}[i%2], i), "Text.")
	}
	tr, err := files.Open()
	if err != nil {
		t.Fatal(err)
	}
	found, err := content.FindDocs(t.Context(), tr.Providers, "docs")
	if err != nil {
		t.Fatal(err)
	}
	titles, err := found.ReadTitles(t.Context(), "demo", nil)
	if err != nil || len(titles.All()) != 3000 || titles.Find(content.DocResources, "page2999") < 0 {
		t.Errorf("there are %d titles, %v", len(titles.All()), err)
	}
}

// One title is found without decoding the others.
func TestOneTitle(t *testing.T) {
	stored := content.Titles{4}
	for i := range 500 {
		stored = append(stored, "r\x07"+fmt.Sprintf("page%03d", i)+"\x05Title"...)
	}
	want := content.DocTitle{Category: content.DocResources, Slug: "page450", Title: "Title"}
	var got content.DocTitle
	if n := testing.AllocsPerRun(10, func() { got = stored.Title(stored.Find(want.Category, want.Slug)) }); n > 4 || got != want {
		t.Errorf("got %+v with %v allocations", got, n)
	}
	for _, none := range []int{stored.Find(content.DocDataSources, "page450"), stored.Find(content.DocResources, "page"), content.Titles(nil).Find(content.DocResources, "page450")} {
		if none >= 0 || stored.Title(none) != (content.DocTitle{}) {
			t.Errorf("what is not there is found at %d", none)
		}
	}
}
