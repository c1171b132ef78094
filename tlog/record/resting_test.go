package record

import (
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

func TestWhenAFolderHasRested(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	leaf := tlog.Leaf{Event: tlog.Offered, Address: address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, Version: "1.0.0", Hashes: []string{"h1:A"}, Pack: packRule}
	for _, test := range []struct {
		rule    string
		pack    int
		changed time.Duration // before it is seen first; zero: not known
		seen    time.Duration // how long before
		rested  bool
	}{
		{"an archive need not rest", 0, 0, 0, true},
		{"a folder that is seen for the first time", packRule, 0, 0, false},
		{"a folder that has been seen for less than a minute", packRule, 0, 59 * time.Second, false},
		{"a folder that has been seen for a minute", packRule, 0, time.Minute, true},
		{"a folder that was renamed into place a minute after its last change", packRule, time.Minute, 0, true},
		{"a folder that was renamed into place at once", packRule, time.Second, 0, false},
		{"a folder of which a clock says that it changes later", packRule, -time.Hour, 0, false},
		{"such a folder, a minute later", packRule, -time.Hour, time.Minute, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			l := leaf
			l.Pack = test.pack
			var changes map[packed]time.Time
			first := now.Add(-test.seen)
			if test.changed != 0 {
				changes = map[packed]time.Time{{l.Address, l.Version, l.Platform}: first.Add(-test.changed)}
			}
			var r resting
			for at := first; at.Before(now); at = at.Add(time.Second) {
				r = r.next(at)
				r.split([]tlog.Leaf{l}, changes)
			}
			ready, rests := r.next(now).split([]tlog.Leaf{l}, changes)
			if (len(ready) == 1) != test.rested || rests == test.rested {
				t.Errorf("%d leaves are ready, and that others rest is %v", len(ready), rests)
			}
		})
	}
}
