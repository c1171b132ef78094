package content

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Front matter is read as far as it can be, whatever a parser of YAML says of it.
func TestFrontMatter(t *testing.T) {
	for _, test := range []struct {
		rule, page string
		want       frontMatter
		text       string
	}{
		{"three fields", "---\npage_title: A b\nsubcategory: C\ndescription: D e.\n---\ntext", frontMatter{"A b", "C", "D e."}, "text"},
		{"double quotes", "---\npage_title: \"A \\\"b\\\" \\\\ c: d # e\" # f\n---\n", frontMatter{title: `A "b" \ c: d # e`}, ""},
		{"single quotes", "---\npage_title: 'A ''b'' \\n c'\n---\n", frontMatter{title: `A 'b' \n c`}, ""},
		{"a literal block", "---\ndescription: |-\n  A\n  b: c\n\n  d\nsubcategory: E\n---\n", frontMatter{description: "A b: c d", subcategory: "E"}, ""},
		{"a folded block", "---\ndescription: >\n  A\n  b\n---\n", frontMatter{description: "A b"}, ""},
		{"a block with a tab", "---\ndescription: |\n\tA\n---\n", frontMatter{description: "A"}, ""},
		{"a text over several lines", "---\ndescription: A\n  b\n  c\n---\n", frontMatter{description: "A b c"}, ""},
		{"quotes over several lines", "---\ndescription: \"A\n  b\"\n---\n", frontMatter{description: "A b"}, ""},
		{"a colon that YAML refuses", "---\npage_title: AWS: aws_thing: x\n---\n", frontMatter{title: "AWS: aws_thing: x"}, ""},
		{"quotes that are not closed", "---\npage_title: \"A\nsubcategory: B\n---\n", frontMatter{title: "A", subcategory: "B"}, ""},
		{"a comment", "---\n# page_title: A\nsubcategory: B # c\n---\n", frontMatter{subcategory: "B"}, ""},
		{"other fields", "---\nlayout: aws\nsidebar_current: \"x\"\nlist:\n  - page_title: A\n---\n", frontMatter{}, ""},
		{"an empty field", "---\nsubcategory:\npage_title: \"\"\n---\n", frontMatter{}, ""},
		{"the last of a field given twice", "---\npage_title: A\npage_title: B\n---\n", frontMatter{title: "B"}, ""},
		{"dots at the end", "---\npage_title: A\n...\ntext", frontMatter{title: "A"}, "text"},
		{"a byte order mark and Windows line ends", "\ufeff---\r\npage_title: A\r\n---\r\ntext\r\n", frontMatter{title: "A"}, "text\n"},
		{"none", "# A\n---\npage_title: B\n---\n", frontMatter{}, "# A\n---\npage_title: B\n---\n"},
		{"none, since it does not end", "---\npage_title: A\n", frontMatter{}, "---\npage_title: A\n"},
		{"an empty page", "", frontMatter{}, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if front, text := splitFrontMatter(test.page); front != test.want || text != test.text {
				t.Errorf("it is %+v and %q", front, text)
			}
		})
	}
}

// A long text is cut after a word, and a text without words at a character.
func TestLongFrontMatterIsCut(t *testing.T) {
	for _, test := range []struct{ rule, description, begins string }{
		{"after a word", strings.Repeat("word ", 200), "word word"},
		{"at a character, in a script without spaces", "AWS " + strings.Repeat("リソース", 100), "AWS リソース"},
	} {
		front, _ := splitFrontMatter("---\ndescription: " + test.description + "\n---\n")
		if d := front.description; len(d) > maxDocDescription || len(d) < maxDocDescription/2 || !strings.HasPrefix(d, test.begins) || !strings.HasSuffix(d, "…") || !utf8.ValidString(d) {
			t.Errorf("%s: it is %q", test.rule, d)
		}
	}
}

func FuzzFrontMatter(f *testing.F) {
	f.Add("---\npage_title: \"A\\\ndescription: |\n\n \n\n---\n")
	f.Add("---\n:\n'\n---\r\n\xff")
	f.Fuzz(func(t *testing.T, page string) {
		front, text := splitFrontMatter(page)
		for _, s := range []string{front.title, front.subcategory, front.description} {
			if len(s) > maxDocDescription || !utf8.ValidString(s) || strings.ContainsAny(s, "\r\n") {
				t.Errorf("%q is %q", page, s)
			}
		}
		if len(text) > len(page) {
			t.Errorf("%q has the text %q", page, text)
		}
	})
}
