package versionlist

import (
	"testing"
	"time"
)

// Clocks of instances differ a little. A clock that is hours ahead is wrong, and its dates are, too.
func TestWhichRecordIsNewer(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, test := range []struct {
		rule          string
		record, other time.Duration // after now
		want          bool
	}{
		{"the later one", -time.Minute, -time.Hour, true},
		{"not the earlier one", -time.Hour, -time.Minute, false},
		{"not one of the same time", 0, 0, false},
		{"one by a clock that is a little ahead", time.Minute, 0, true},
		{"not one of the future", 2 * time.Hour, -time.Hour, false},
		{"any, if the other one is of the future", -time.Hour, 2 * time.Hour, true},
		{"none of two of the future", 3 * time.Hour, 2 * time.Hour, false},
	} {
		r, other := &Record{Fetched: now.Add(test.record)}, &Record{Fetched: now.Add(test.other)}
		if got := r.NewerThan(other, now); got != test.want {
			t.Errorf("%s: %t", test.rule, got)
		}
	}
}
