package fill

import (
	"errors"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// A keys file never gets more keys than signing.ReadKeyring accepts.
func TestAKeysFileStaysReadable(t *testing.T) {
	var keys []signing.PublicKey
	for range signing.MaxKeys {
		keys = append(keys, signing.PublicKey{Armor: indextest.NewPublisher(t).PublicKey()})
	}
	full, err := (&namespaceKeys{}).with(keys)
	if err != nil {
		t.Fatal(err)
	}
	ring, problems := signing.ReadKeyring(full)
	if len(ring.Keys()) != signing.MaxKeys || len(problems) > 0 {
		t.Fatalf("%d keys are read: %v", len(ring.Keys()), problems)
	}
	k := &namespaceKeys{ring: ring, content: full}
	if file, err := k.with(ring.Keys()); file != nil || err != nil {
		t.Errorf("the same keys change the file: %v", err)
	}
	if _, err := k.with([]signing.PublicKey{{Armor: indextest.NewPublisher(t).PublicKey()}}); !errors.Is(err, ErrConflict) {
		t.Errorf("one more: %v", err)
	}
}
