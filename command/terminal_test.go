package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

func TestProgressBar(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := began.Add(10 * time.Second)
	var out strings.Builder
	bar := &progressBar{out: &out, now: func() time.Time { return now }}

	bar.show(index.Progress{Done: 5, Total: 10, DoneBytes: 50_000_000, TotalBytes: 100_000_000, Began: began})
	if want := "\r[###############...............] 5 of 10, 5.0 MB/s, 10s left"; out.String() != want {
		t.Errorf("it draws %q", out.String())
	}
	drawn := out.Len()
	bar.show(index.Progress{Done: 6, Total: 10, DoneBytes: 60_000_000, TotalBytes: 100_000_000, Began: began})
	if out.Len() != drawn {
		t.Error("it is drawn again at once")
	}
	bar.show(index.Progress{Done: 10, Total: 10, DoneBytes: 100_000_000, TotalBytes: 100_000_000, Began: began})
	if !strings.Contains(out.String()[drawn:], "[##############################] 10 of 10") {
		t.Error("its end is not drawn")
	}
	bar.clear()
	if !strings.HasSuffix(out.String(), "\r"+strings.Repeat(" ", bar.width)+"\r") && !strings.HasSuffix(out.String(), " \r") {
		t.Errorf("it leaves %q", out.String())
	}
}

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
		if got := sentence(test.message); got != test.want {
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
		for piece := range strings.SplitAfterSeq(test.line+"\nrest", " ") {
			fmt.Fprint(w, piece)
		}
		w.flush()
		if out.String() != test.want+"\nrest" {
			t.Errorf("%s: %q", test.rule, out.String())
		}
	}
}

func TestNoProgressBarInAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	bar := newProgressBar(f)
	bar.show(index.Progress{Done: 1, Total: 1})
	bar.clear()
	if info, _ := f.Stat(); info.Size() != 0 {
		t.Error("it is drawn")
	}
}
