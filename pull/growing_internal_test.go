package pull

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Followers get what has been written of a package, but neither its last bytes nor the end of a
// zip, wherever the writes divide it.
func TestHowMuchFollowersGet(t *testing.T) {
	const size = 1 << 20
	for _, test := range []struct {
		rule   string
		writes []string
		until  int64
	}{
		{"all that was written", []string{strings.Repeat("x", 1000), "more"}, 1004},
		{"nothing of the last bytes", []string{strings.Repeat("x", size-heldBack), "more"}, size - heldBack},
		{"nothing from the end of a zip on", []string{"0123PK\x05\x06", "more"}, 4},
		{"nothing from the first of two ends on", []string{"01PK\x05\x06 PK\x05\x06"}, 2},
		{"nothing from an end at the beginning on", []string{"PK\x05\x06"}, 0},
		{"nothing from an end that is divided after a byte on", []string{"0123P", "K\x05\x06more"}, 4},
		{"nothing from an end that is divided after two bytes on", []string{"0123PK", "\x05\x06", "more"}, 4},
		{"nothing from an end that is divided after three bytes on", []string{"0123PK\x05", "\x06"}, 4},
		{"nothing from an end of single bytes on", strings.Split("0123PK\x05\x06more", ""), 4},
		{"bytes that begin like an end", []string{"0123PK\x05", "PK", "\x05more"}, 14},
		{"nothing that may be the beginning of an end", []string{"0123PK\x05"}, 4},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := &growing{size: size}
			for _, w := range test.writes {
				g.grow([]byte(w))
			}
			if until := g.from(0).until; until != test.until {
				t.Errorf("they get %d bytes of %q", until, test.writes)
			}
		})
	}
}

// Clients of a fill that begins again wait for the attempt under way, and do not get the one
// that has failed.
func TestClientsOfAFillThatBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flight.Group[string, *Filled]
		failed, again := &Filled{growing: new(growing)}, &Filled{growing: new(growing)}
		next := make(chan struct{})
		under := f.Join(t.Context(), "key", func(under *flight.Flight[*Filled]) (*Filled, error) {
			under.Offer(failed)
			failed.growing.end(nil, tree.ErrReplaced)
			<-next
			under.Offer(again)
			<-next
			return nil, tree.ErrReplaced
		})
		var got *Filled
		go func() { got, _ = followed(t.Context(), under) }()
		time.Sleep(followAfter)
		synctest.Wait()
		if got != nil {
			t.Error("a client has got the attempt that has failed")
		}
		next <- struct{}{}
		synctest.Wait()
		if got != again {
			t.Error("a client waits for the end of the attempt under way")
		}
		close(next)
	})
}
