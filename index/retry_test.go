package index

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
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
