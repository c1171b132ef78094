package access

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"
)

func (i *linkInstance) sealer() *Sealer { return &Sealer{Keys: i.keys.Keys, Reload: i.keys.Reload} }

func (i *linkInstance) seal(t *testing.T, purpose, text string) string {
	t.Helper()
	sealed, err := i.sealer().Seal(purpose, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// changed returns a sealed text with another byte at i; from the end if i is negative.
func changed(t *testing.T, sealed string, i int) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if i < 0 {
		i += len(raw)
	}
	raw[i] ^= 1
	return base64.RawURLEncoding.EncodeToString(raw)
}

func TestSealer(t *testing.T) {
	var store, elsewhere sharedStore
	one, other, stranger := newLinkInstance(t, &store), newLinkInstance(t, &store), newLinkInstance(t, &elsewhere)
	for _, i := range []*linkInstance{one, other, stranger} {
		i.mustLoad(t)
	}
	sealed := one.seal(t, "session", "alice")
	if strings.Contains(sealed, "alice") || sealed == one.seal(t, "session", "alice") {
		t.Errorf("it can be read or recognised: %s", sealed)
	}
	for _, test := range []struct {
		rule            string
		by              *linkInstance
		purpose, sealed string
		want            error
	}{
		{"by the one that sealed it", one, "session", sealed, nil},
		{"by another instance", other, "session", sealed, nil},
		{"for another purpose", one, "login", sealed, ErrNotSealed},
		{"by a registry with other keys", stranger, "session", sealed, ErrNotSealed},
		{"with another byte in the ID of its key", one, "session", changed(t, sealed, 0), ErrNotSealed},
		{"with another byte in its nonce", one, "session", changed(t, sealed, linkIDSize), ErrNotSealed},
		{"with another byte in its tag", one, "session", changed(t, sealed, -1), ErrNotSealed},
		{"cut off", one, "session", sealed[:len(sealed)-4], ErrNotSealed},
		{"the ID of the key alone", one, "session", sealed[:8], ErrNotSealed},
		{"with padding", one, "session", sealed + "=", ErrNotSealed},
		{"nothing", one, "session", "", ErrNotSealed},
		{"not base64", one, "session", "alice!", ErrNotSealed},
		{"before keys are loaded", newLinkInstance(t, &store), "session", sealed, nil}, // it loads them
	} {
		t.Run(test.rule, func(t *testing.T) {
			got, err := test.by.sealer().Open(test.purpose, test.sealed)
			if !errors.Is(err, test.want) || err == nil && string(got) != "alice" {
				t.Errorf("got %q, %v, want %v", got, err, test.want)
			}
		})
	}
	none := &Sealer{Keys: func() *LinkKeys { return nil }}
	if _, err := none.Open("session", sealed); !errors.Is(err, ErrNoLinkKeys) {
		t.Errorf("opening without keys: %v", err)
	}
	if _, err := none.Seal("session", nil); !errors.Is(err, ErrNoLinkKeys) {
		t.Errorf("sealing without keys: %v", err)
	}
}

// A sealed text can be opened for as long as the key that sealed it verifies links,
// even by instances that have not seen the new key.
func TestSealedOutlivesOneRotation(t *testing.T) {
	var store sharedStore
	one, other := newLinkInstance(t, &store), newLinkInstance(t, &store)
	one.mustLoad(t)
	other.mustLoad(t)
	first := one.seal(t, "session", "alice")
	for rotation, want := range []error{nil, ErrNotSealed} {
		one.clock = one.clock.Add(linkKeyLife)
		one.keys.Keys()
		one.settle()
		other.clock = one.clock
		later := one.seal(t, "session", "alice")
		if _, err := other.sealer().Open("session", later); err != nil {
			t.Errorf("rotation %d: the other instance does not know the new key: %v", rotation, err)
		}
		for _, i := range []*linkInstance{one, other} {
			if _, err := i.sealer().Open("session", first); !errors.Is(err, want) {
				t.Errorf("rotation %d: got %v, want %v", rotation, err, want)
			}
		}
		one.settle() // both may be rotating in the background
		other.settle()
		// Reloads are a second apart.
		one.clock, other.clock = one.clock.Add(time.Second), other.clock.Add(time.Second)
	}
}
