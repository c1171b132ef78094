package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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
	bar.Clear()
	if !strings.HasSuffix(out.String(), "\r"+strings.Repeat(" ", bar.width)+"\r") && !strings.HasSuffix(out.String(), " \r") {
		t.Errorf("it leaves %q", out.String())
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
	bar.Clear()
	if info, _ := f.Stat(); info.Size() != 0 {
		t.Error("it is drawn")
	}
}

// The line of a progress bar fits the terminal: one that is broken cannot be drawn again.
func TestProgressFits(t *testing.T) {
	for _, test := range []struct{ rule, text, want string }{
		{"a short text", "1 of 2", "[###############...............] 1 of 2"},
		{"a long text has a shorter bar", strings.Repeat("x", 60), "[########........] " + strings.Repeat("x", 60)},
		{"one that fills the line has none", strings.Repeat("x", 75), strings.Repeat("x", 75)},
	} {
		if got := Bar(1, 2, test.text); got != test.want || utf8.RuneCountInString(got) >= Width {
			t.Errorf("%s: %q", test.rule, got)
		}
	}
}
