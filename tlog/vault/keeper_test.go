package vault

import (
	"errors"
	"testing"
	"testing/synctest"
)

// clear removes everything, as when another storage takes the place of this one.
func (v *values) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.values)
}

// A log that is open goes on in a storage that has lost everything, and can be opened again with
// the same keys, whatever fails meanwhile.
func TestAStorageThatLosesTheKeys(t *testing.T) {
	for _, test := range []struct {
		rule   string
		rotate bool
	}{
		{"one key", false},
		{"two keys", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			for n, failed := 0, true; failed; n++ {
				failed = false
				synctest.Test(t, func(t *testing.T) {
					storage, l := newLog(t)
					if test.rotate {
						if _, err := l.Rotate(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					log, err := open(t, l)
					if err != nil {
						t.Fatal(err)
					}
					want := lines(log.Public())
					storage.clear()
					at := 0
					storage.before = func(string, string) error {
						if at++; at == n+1 {
							failed = true
							return errors.New("the storage fails")
						}
						return nil
					}
					for log.Head().Size < 2 {
						if err := add(t, log, "2.0.0"); err != nil && !failed {
							t.Fatal(err)
						}
					}
					storage.before = nil
					log.Close()
					after, err := open(t, l)
					if err != nil {
						t.Fatalf("with operation %d failing, it does not open again: %v", n, err)
					}
					checkSigned(t, "afterwards", after, want...)
				})
			}
		})
	}
}
