package moduledoc

import (
	"fmt"
	"strings"
	"testing"
)

// Every input, output and resource says in which file and on which line it begins: of what
// an override changes, where it is declared.
func TestPositions(t *testing.T) {
	c := collect(t, files(
		"main.tf", "# first\n\nresource \"a_b\" \"r\" {\n}\n\ndata \"a_c\" \"d\" {}\nvariable \"v\" {}\n",
		"main_override.tf", "variable \"v\" { default = 1 }\n",
		"outputs.tf.json", "{\n  \"output\": {\n    \"second\": {\n      \"value\": 1\n    },\n    \"third\":\n      {}\n  },\n  \"resource\": {\"a_b\": {\n\"j\": {}}}\n}",
		"windows.tf", "\uFEFF# x\r\n\r\nvariable \"w\" {\r\n}\r\n",
		"modules/sub/main.tf", "\n\noutput \"o\" {}\n"), Collector{})
	p := c.Package("")
	var got []string
	note := func(name string, at Position) { got = append(got, fmt.Sprintf("%s %s:%d", name, at.File, at.Line)) }
	for _, m := range []*Module{&p.Root, p.Module("modules/sub")} {
		for _, v := range m.Variables {
			note(v.Name, v.At)
		}
		for _, o := range m.Outputs {
			note(o.Name, o.At)
		}
		for _, r := range m.Resources {
			note(r.Name, r.At)
		}
	}
	want := "v main.tf:7, w windows.tf:3, second outputs.tf.json:3, third outputs.tf.json:7, r main.tf:3, j outputs.tf.json:10, d main.tf:6, o modules/sub/main.tf:3"
	if joined := strings.Join(got, ", "); joined != want {
		t.Errorf("got %s\nnot %s", joined, want)
	}
}

// However a line counter is asked, its numbers are right.
func TestLinesAreCountedOn(t *testing.T) {
	l := lineCounter{text: []byte("a\nbc\n\nd")}
	for _, at := range []int{0, 7, 2, 2, 4, 5, 6, 1, 100, -1} {
		want := 1 + strings.Count("a\nbc\n\nd"[:max(0, min(at, 7))], "\n")
		if got := l.lineAt(at); got != want {
			t.Errorf("byte %d is on line %d, not %d", at, got, want)
		}
	}
}
