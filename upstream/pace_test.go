package upstream

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	for _, test := range []struct {
		rule  string
		bytes int // of each read
		every time.Duration
		slow  bool
	}{
		{"just enough", minRate, time.Second, false},
		{"too little", minRate - 1, time.Second, true},
		{"enough, in lumps", 9 * minRate, 9 * time.Second, false},
		{"one byte at a time", 1, 9 * time.Second, true},
	} {
		var p pace
		slow := false
		var took time.Duration
		for ; took < 10*time.Minute && !slow; took += test.every {
			slow = p.tooSlow(test.bytes, test.every)
		}
		if slow != test.slow || slow && took > rateOf+test.every {
			t.Errorf("%s: slow is %v after %v", test.rule, slow, took)
		}
	}
	var p pace // what came fast before does not count for long
	p.tooSlow(1<<30, rateOf)
	if !p.tooSlow(1, rateOf) {
		t.Error("a fast beginning makes up for what trickles behind it")
	}
}
