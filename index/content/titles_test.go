package content_test

import (
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
		{"a title in words", "aws", "resources/vpc.md", "A network", "aws_vpc", "A network"},
		{"a function has its own name", "aws", "functions/arn_parse.md", "arn_parse function - terraform-provider-aws", "arn_parse", ""},
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
			if content.Titles("\x00other").All() != nil {
				t.Error("another format is read")
			}
		})
	}
}
