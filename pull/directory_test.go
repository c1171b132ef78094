package pull

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
	full, err := (&namespaceKeys{}).withKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	ring, problems := signing.ReadKeyring(full)
	if len(ring.Keys()) != signing.MaxKeys || len(problems) > 0 {
		t.Fatalf("%d keys are read: %v", len(ring.Keys()), problems)
	}
	k := &namespaceKeys{ring: ring, content: full}
	if file, err := k.withKeys(ring.Keys()); file != nil || err != nil {
		t.Errorf("the same keys change the file: %v", err)
	}
	if _, err := k.withKeys([]signing.PublicKey{{Armor: indextest.NewPublisher(t).PublicKey()}}); !errors.Is(err, ErrConflict) {
		t.Errorf("one more: %v", err)
	}
}

// A key is a block of its own also in a file whose last line has no line break.
func TestAKeysFileWithoutALastLineBreakGetsAKey(t *testing.T) {
	k := namespaceKeys{content: []byte(keysHeader + "the key of 2024 has been removed")}
	k.ring, _ = signing.ReadKeyring(k.content)
	file, err := k.withKeys([]signing.PublicKey{{Armor: indextest.NewPublisher(t).PublicKey()}})
	if ring, problems := signing.ReadKeyring(file); err != nil || len(ring.Keys()) != 1 || len(problems) > 0 {
		t.Errorf("%d keys are read: %v, error %v", len(ring.Keys()), problems, err)
	}
}

// An old copy of a key that has been extended is not written beside the extended one,
// even if the origin still sends it. An extended copy is written.
func TestAKeysFileGetsTheCopyThatCounts(t *testing.T) {
	publisher := indextest.NewExpiringPublisher(t, time.Hour, time.Minute)
	read := func(content []byte) namespaceKeys {
		ring, _ := signing.ReadKeyring(content)
		return namespaceKeys{ring: ring, content: content}
	}
	before := read([]byte(publisher.PublicKey()))
	publisher.Extend(t, 0)
	after := read([]byte(publisher.PublicKey()))

	file, err := before.withKeys(after.ring.Keys())
	if now := read(file).ring.Keys(); err != nil || !slices.Equal(now, after.ring.Keys()) {
		t.Errorf("the file has %d keys, error %v", len(now), err)
	}
	for _, has := range []namespaceKeys{after, read(file)} {
		for _, origin := range []namespaceKeys{before, after} {
			if file, err := has.withKeys(origin.ring.Keys()); file != nil || err != nil {
				t.Errorf("the file grows: %s, error %v", file, err)
			}
		}
	}
}
