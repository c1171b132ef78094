package changes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
)

func TestFilesThatDiffer(t *testing.T) {
	files := func(list string) *content.Files {
		f := &content.Files{}
		for file := range strings.FieldsSeq(list) {
			path, sum, _ := strings.Cut(file, "=")
			l := content.ListedFile{Path: path}
			copy(l.Sum[:], sum)
			f.List = append(f.List, l)
		}
		return f
	}
	for _, test := range []struct{ rule, from, to, want string }{
		{"one that is the same is left out", "a=1", "a=1", "[]"},
		{"another content", "a=1 b=1", "a=1 b=2", "[{changed b}]"},
		{"by path, whatever became of them", "a=1 c=1 d=1", "b=1 c=2 d=1 e=1", "[{removed a} {added b} {changed c} {added e}]"},
		{"all of a first version", "", "a=1 b=1", "[{added a} {added b}]"},
	} {
		if got := fmt.Sprint(Files(files(test.from), files(test.to))); got != test.want {
			t.Errorf("%s: got %s, not %s", test.rule, got, test.want)
		}
	}
}

func TestLinesThatDiffer(t *testing.T) {
	many := ""
	for i := range 20 {
		many += fmt.Sprintf("same%d\n", i)
	}
	for _, test := range []struct{ rule, from, to, want string }{
		{"a changed line", "a\nb\nc\n", "a\nB\nc\n", "@0,0 \" \"1,1a -2,0b +0,2B \" \"3,3c"},
		{"a new file", "", "a\nb\n", "@0,0 +0,1a +0,2b"},
		{"a removed file", "a\n", "", "@0,0 -1,0a"},
		{"no line break at the end", "a", "a\nb", "@0,0 -1,0a +0,1a +0,2b"},
		{"line breaks of Windows are none", "a\r\nb\r\n", "a\nb\n", ""},
		{"the same", "a\n", "a\n", ""},
		{"differences far apart have a gap between them", "x\n" + many + "y\n", "X\n" + many + "Y\n", `@0,0 -1,0x +0,1X " "2,2same0 " "3,3same1 " "4,4same2 @0,0 " "19,19same17 " "20,20same18 " "21,21same19 -22,0y +0,22Y`},
		{"lines that begin like a comparison", "--- a\n+++ b\n@@ x\n", "--- a\n@@ x\n", "@0,0 \" \"1,1--- a -2,0+++ b \" \"3,2@@ x"},
	} {
		var got []string
		for _, l := range Lines(test.from, test.to) {
			got = append(got, fmt.Sprintf("%c%d,%d%s", l.Sign, l.Old, l.New, l.Text))
		}
		joined := strings.Join(got, " ")
		want := strings.ReplaceAll(test.want, `" "`, " ")
		if joined != want {
			t.Errorf("%s: got\n%s\nnot\n%s", test.rule, joined, want)
		}
	}
}

// From the lines of a comparison both texts can be had again, and numbers count up.
func FuzzLines(f *testing.F) {
	f.Add("a\nb\nc", "a\nc\nd\n")
	f.Add("", "x")
	f.Add("\\ No newline at end of file\n", "\\ no\n\n\n")
	f.Fuzz(func(t *testing.T, from, to string) {
		lines := Lines(from, to)
		texts := [2][]string{strings.Split(withoutReturns(from), "\n"), strings.Split(withoutReturns(to), "\n")}
		for _, l := range lines {
			for i, n := range []int{l.Old, l.New} {
				if n > 0 && (n > len(texts[i]) || texts[i][n-1] != l.Text) {
					t.Fatalf("line %d of %q is not %q", n, texts[i], l.Text)
				}
			}
		}
		if len(lines) == 0 && withoutReturns(from) != withoutReturns(to) {
			t.Errorf("%q and %q have no difference", from, to)
		}
	})
}
