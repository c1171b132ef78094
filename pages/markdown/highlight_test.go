package markdown

import (
	"slices"
	"strings"
	"testing"
)

func TestTerraformIsHighlighted(t *testing.T) {
	for _, c := range []struct{ rule, code, want string }{
		{"blocks, attributes and strings", "module \"a\" {\n  source = \"x\"\n}", `k(module) s("a") { na(source) = s("x") }`},
		{"numbers and constants", "a = [1, -2.5, true, null]", `na(a) = [ m(1) , - m(2.5) , kc(true) , kc(null) ]`},
		{"functions", "a = upper(b.upper)", `na(a) = nf(upper) (b.upper)`},
		{"names that are only like functions", "a = my_list.list", `na(a) = my_list.list`},
		{"interpolation", `a = "b${var.c}d"`, `na(a) = s("b) si(${) var.c si(}) s(d")`},
		{"an expression for all", "a = [for x in y : x if x != \"\"]", `na(a) = [ k(for) x k(in) y : x k(if) x != s("") ]`},
		{"attributes on one line", "a = { b = 1, c : 2 }", `na(a) = { na(b) = m(1) , na(c) : m(2) }`},
		{"comments", "# a\na = 1 // b", "c1(# a) na(a) = m(1) c1(// b)"},
		{"a heredoc", "a = <<-EOT\n  b\nEOT\n", "na(a) = s(<<-EOT b EOT)"},
		{"what is not complete", `a = "b`, `na(a) = s("b)`},
		{"what is none", "$ terraform init ~> ¿", "$ terraform init ~> ¿"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got []string
			for class, text := range tokens("tf", c.code) {
				text = strings.Join(strings.Fields(text), " ")
				if class != "" {
					text = class + "(" + text + ")"
				}
				got = append(got, text)
			}
			if g, w := strings.Fields(strings.Join(got, " ")), strings.Fields(c.want); !slices.Equal(g, w) {
				t.Errorf("%q is not %q", strings.Join(g, " "), strings.Join(w, " "))
			}
		})
	}
}

// Chroma's expressions could be busy with the other code for minutes.
func TestOnlySomeCodeIsHighlighted(t *testing.T) {
	const line = "a: 1\n"
	for _, c := range []struct {
		rule, language, code string
		want                 bool
	}{
		{"a few lines", "yaml", line, true},
		{"any case of the name", "YAML", line, true},
		{"a long line", "yaml", line + strings.Repeat("a", maxHighlightedLine+1), false},
		{"too much", "yaml", strings.Repeat(line, maxHighlighted/len(line)+1), false},
		{"another language", "makefile", line, false},
		{"no language", "", line, false},
		{"any amount of Terraform's", "hcl", strings.Repeat("a = 1\n", maxHighlighted), true},
	} {
		var b strings.Builder
		Highlight(&b, c.language, c.code)
		if got := strings.Contains(b.String(), "<span"); got != c.want {
			t.Errorf("%s: that it is highlighted is %v", c.rule, got)
		}
	}
	block := "```yaml\n" + strings.Repeat(line, 1000) + "```\n"
	if spans := strings.Count(string(readmeOf(strings.Repeat(block, 10)).HTML), "<span"); spans < 3000 || spans > 9000 {
		t.Errorf("of ten blocks of code there are %d spans", spans)
	}
}

// In every language, highlighting neither loses nor adds code.
func FuzzHighlight(f *testing.F) {
	for language := range languages {
		f.Add(language, "a = \"b${c}\" # d\n\"\"\" ' /* <a b='c'>\n- d: {e}\n+x\n$ ls\n")
	}
	f.Add("tf", "\ufeffa = 1\r\n\x80<<A\n${")
	f.Fuzz(func(t *testing.T, language, code string) {
		code, _ = limited(code)
		var b strings.Builder
		for _, text := range tokens(language, code) {
			b.WriteString(text)
		}
		if b.String() != code {
			t.Errorf("%q in %s becomes %q", code, language, b.String())
		}
	})
}

// Without a bound these quotes take half a minute.
func TestCodeThatKeepsALexerBusyIsWrittenAsItIs(t *testing.T) {
	code := strings.Repeat("'", maxHighlighted)
	var got strings.Builder
	for class, text := range tokens("yaml", code) {
		if got.WriteString(text); class == "" && len(text) == len(code) {
			break
		}
	}
	if got.String() != code {
		t.Errorf("%d characters of %d are there", got.Len(), len(code))
	}
}
