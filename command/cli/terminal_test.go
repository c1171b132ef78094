package cli

import (
	"fmt"
	"strings"
	"testing"
)

func TestSentence(t *testing.T) {
	for _, test := range []struct{ rule, message, want string }{
		{"a word", "it is empty", "It is empty."},
		{"a word before a colon", "refused: it is empty", "Refused: it is empty."},
		{"a file", "terraform-provider-demo_1.2.0_linux_amd64.zip is empty", "terraform-provider-demo_1.2.0_linux_amd64.zip is empty."},
		{"a file and what it lacks", "registry.hcl: line 1 is wrong", "registry.hcl: line 1 is wrong."},
		{"a path", "modules/vpc is empty", "modules/vpc is empty."},
		{"a command", "`check` says why", "`check` says why."},
		{"a flag", "--root is required", "--root is required."},
		{"a question", "there is no x: did you mean y?", "There is no x: did you mean y?"},
		{"a sentence of one word", "gone", "Gone."},
	} {
		if got := Sentence(test.message); got != test.want {
			t.Errorf("%s: %q, want %q", test.rule, got, test.want)
		}
	}
}

// Reports and errors fit the terminal, but for paths.
func TestFit(t *testing.T) {
	long := strings.Repeat("x", 79)
	for _, test := range []struct{ rule, line, want string }{
		{"a line that fits", "a b", "a b"},
		{"a path", "  " + long + "x", "  " + long + "x"},
		{"a line that does not fit", "a " + long, "a\n    " + long},
		{"one that is indented", "  a " + long, "  a\n      " + long},
		{"a command in it", "a: `" + long + " b` c", "a:\n    `" + long + " b`\n    c"},
	} {
		var out strings.Builder
		w := &fittedWriter{out: &out}
		for piece := range strings.SplitAfterSeq(test.line+"\n", " ") {
			fmt.Fprint(w, piece)
		}
		if out.String() != test.want+"\n" {
			t.Errorf("%s: %q", test.rule, out.String())
		}
	}
}
