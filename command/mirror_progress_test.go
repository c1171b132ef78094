package command

import (
	"testing"
	"time"
)

// The bar has how much there is, and how long it takes, as far as that is known.
func TestMirrorProgress(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &mirroring{began: began}
	at := func(seconds int, done int64, want string) {
		t.Helper()
		if got := m.progress(began.Add(time.Duration(seconds)*time.Second), done, 3); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
	one, two, three := &coming{m: m}, &coming{m: m}, &coming{m: m}
	at(1, 0, "[..............................] 0 of 3, 0 B, 0 B/s")
	one.heard(0, 30_000_000)
	one.heard(10_000_000, 30_000_000)
	at(1, 0, "[..............................] 0 of 3, 10 MB of about 90 MB, 10 MB/s, 8s left")
	two.ended() // it was there
	at(2, 1, "[##########....................] 1 of 3, 10 MB of about 45 MB, 5.0 MB/s, 7s left")
	three.heard(0, 50_000_000)
	one.heard(30_000_000, 30_000_000)
	one.ended()
	at(3, 2, "[####################..........] 2 of 3, 30 MB of 80 MB, 10 MB/s, 5s left")
	three.heard(50_000_000, 50_000_000)
	three.ended()
	at(8, 3, "[##############################] 3 of 3, 80 MB of 80 MB, 10 MB/s, 0s left")
}
