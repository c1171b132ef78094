package markdown

import (
	"strings"
	"testing"
)

func TestDirectionOfTexts(t *testing.T) {
	for _, test := range []struct{ rule, source, want string }{
		{"a text from left to right has none", "# A\n\ntext\n", `<p>text</p>`},
		{"of a text with other letters each block has its own", "text\n\nשלום\n", `<p dir="auto">text</p>|<p dir="auto">שלום</p>`},
		{"a list has one direction", "- وحدة\n- text\n", `<ul dir="auto">|<li>text</li>`},
		{"a callout has that of its blocks", "> [!NOTE]\n> وحدة\n", `<p dir="auto">وحدة</p>`},
		{"an author may say otherwise", "<p dir=\"rtl\">text</p>\n\nשלום\n", `<p dir="rtl">text</p>`},
		{"there are no other directions", "<p dir=\"up\">text</p>\n", `<p>text</p>`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got := string(Text{Source: test.source, Prefix: "readme-"}.Render().HTML)
			for want := range strings.SplitSeq(test.want, "|") {
				if !strings.Contains(got, want) {
					t.Errorf("there is no %s in\n%s", want, got)
				}
			}
		})
	}
}
