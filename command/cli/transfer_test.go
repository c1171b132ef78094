package cli

import (
	"strings"
	"testing"
	"time"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// The bar shows the expected size and duration as far as they are known. It leaves the last
// column of a terminal free.
func TestTransferOfUnknownSize(t *testing.T) {
	p := &Transfer{progressBar: &progressBar{}}
	p.Begin(3, 0)
	p.began = began
	after := func(seconds int, want string) {
		t.Helper()
		if got := p.text(began.Add(time.Duration(seconds)*time.Second), p.done.Load()); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
	one, two, three := p.File(0), p.File(0), p.File(0)
	after(1, "[..............................] 0 of 3, 0 B, 0 B/s")
	one.Update(0, 30_000_000)
	one.Update(10_000_000, 30_000_000)
	after(1, "[..............................] 0 of 3, 10 MB of about 90 MB, 10 MB/s, 8s left")
	two.End() // it was there
	after(2, "[#########....................] 1 of 3, 10 MB of about 45 MB, 5.0 MB/s, 7s left")
	three.Update(0, 50_000_000)
	one.Update(30_000_000, 30_000_000)
	one.End()
	after(3, "[####################..........] 2 of 3, 30 MB of 80 MB, 10 MB/s, 5s left")
	three.Update(50_000_000, 50_000_000)
	three.End()
	after(8, "[##############################] 3 of 3, 80 MB of 80 MB, 10 MB/s, 0s left")
}

// The progress ends with all bytes, whether they had to be sent or not.
func TestTransferOfKnownSize(t *testing.T) {
	var shown strings.Builder
	p := &Transfer{progressBar: &progressBar{out: &shown, now: func() time.Time { return began.Add(time.Second) }}}
	p.Begin(2, 4_000_000)
	p.began = began
	first := p.File(3_000_000)
	first.Add(2_000_000)
	first.Add(-2_000_000) // another attempt
	first.End()
	p.File(1_000_000).End()
	lines := strings.Split(shown.String(), "\r")
	if got, want := strings.TrimSpace(lines[len(lines)-1]), "["+strings.Repeat("#", 30)+"] 2 of 2, 4.0 MB of 4.0 MB, 4.0 MB/s"; got != want {
		t.Errorf("it ends with %q", got)
	}
}
