package index

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
)

// A folder that cannot be read while another one is about to be tried again is tried again with it.
func TestNoRetryIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := New(Options{})
		defer x.Close()
		x.changes.Take() // everything, at first
		x.scanning.Lock()
		x.scanAgain(changes.Only([]string{"providers/acme/one"}))
		x.scanAgain(changes.Only([]string{"providers/acme/other"}))
		x.scanning.Unlock()
		time.Sleep(firstRetry)
		synctest.Wait()
		again, _, _ := x.changes.Take()
		if got := slices.Sorted(maps.Keys(again)); !slices.Equal(got, []string{"providers/acme/one", "providers/acme/other"}) {
			t.Errorf("scanned again are %q", got)
		}
	})
}

// However often files are found to be too young, one scan of them follows, at the earliest time that
// was asked for, and none after the index has been closed.
func TestOneScanFollowsOfFilesThatRest(t *testing.T) {
	const folder = "providers/acme/one"
	for _, test := range []struct {
		rule  string
		rests []time.Duration
		close bool
		scans []time.Duration // when they follow
	}{
		{"one", []time.Duration{young}, false, []time.Duration{young}},
		{"an earlier one", []time.Duration{report.CopyRest, young}, false, []time.Duration{young}},
		{"a later one", []time.Duration{young, report.CopyRest}, false, []time.Duration{young}},
		{"one in between", []time.Duration{report.CopyRest, young, 2 * young}, false, []time.Duration{young}},
		{"a closed index", []time.Duration{report.CopyRest, young}, true, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := New(Options{})
				defer x.Close()
				x.changes.Take() // everything, at first
				x.scanning.Lock()
				x.scanner.last = &Snapshot{young: []string{folder}}
				for _, rest := range test.rests {
					x.scanYoungLater(rest)
				}
				x.scanning.Unlock()
				if test.close {
					x.Close()
				}
				const step = 50 * time.Millisecond
				var scans []time.Duration
				for passed := step; passed < 3*report.CopyRest; passed += step {
					time.Sleep(step)
					synctest.Wait()
					if again, _, _ := x.changes.Take(); again[folder] {
						scans = append(scans, passed)
					}
				}
				if !slices.Equal(scans, test.scans) {
					t.Errorf("scans follow after %v", scans)
				}
			})
		})
	}
}
