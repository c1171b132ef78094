package fill

import (
	"errors"
	"slices"
	"testing"
	"time"

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

// A copy of a key from before it was extended is not written beside the extended one,
// whatever the origin goes on sending, and an extended copy is.
func TestAKeysFileGetsTheCopyThatCounts(t *testing.T) {
	publisher := indextest.NewExpiringPublisher(t, time.Hour, time.Minute)
	read := func(content []byte) namespaceKeys {
		ring, _ := signing.ReadKeyring(content)
		return namespaceKeys{ring: ring, content: content}
	}
	before := read([]byte(publisher.PublicKey()))
	publisher.Extend(t, 0)
	after := read([]byte(publisher.PublicKey()))

	file, err := before.with(after.ring.Keys())
	if now := read(file).ring.Keys(); err != nil || !slices.Equal(now, after.ring.Keys()) {
		t.Errorf("the file has %d keys, error %v", len(now), err)
	}
	for _, has := range []namespaceKeys{after, read(file)} {
		for _, origin := range []namespaceKeys{before, after} {
			if file, err := has.with(origin.ring.Keys()); file != nil || err != nil {
				t.Errorf("the file grows: %s, error %v", file, err)
			}
		}
	}
}
