package index

import (
	"bytes"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var long = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func someMemo() *memo {
	m := new(memo)
	m.digests.before, m.signatures.before = someDigests, someSignatures
	return m
}

var someDigests = map[string]digest{
	"providers/acme/demo/a.zip": {
		stamp:  stamp{size: 123, modTime: long.UnixNano(), inode: 7, changed: long.UnixNano() + 1},
		sha256: sha256Of([]byte("a")), h1: "h1:abc=", size: 123,
	},
	"modules/acme/vpc/aws/1.0.0": {
		stamp:  stamp{size: 45, modTime: -1, files: sha256Of([]byte("files"))},
		sha256: sha256Of([]byte("b")), size: 2048, checksum: 0xdeadbeef,
	},
	"providers/acme/demo/SHA256SUMS": {
		stamp: stamp{size: 3, modTime: long.UnixNano()}, content: []byte("abc"),
	},
	"providers/acme/demo/broken.zip": {
		stamp: stamp{size: 1}, bad: found(BadArchive, "copy it again"),
	},
}

var someSignatures = map[wire.SHA256]verifiedSignature{
	sha256Of([]byte("a signature")):        {at: long.UnixNano(), keyID: "0123456789ABCDEF"},
	sha256Of([]byte("by a key that ends")): {at: long.UnixNano(), keyID: "FEDCBA9876543210", expires: long.Unix()},
}

func TestMemoFile(t *testing.T) {
	content := someMemo().encode("a tree")

	t.Run("what is written is read again", func(t *testing.T) {
		var m memo
		if err := m.decode(content, "a tree"); err != nil {
			t.Fatal(err)
		}
		if !maps.EqualFunc(m.digests.before, someDigests, func(a, b digest) bool {
			sameFinding := a.bad == b.bad || a.bad != nil && b.bad != nil && *a.bad == *b.bad
			return sameFinding && a.stamp == b.stamp && a.sha256 == b.sha256 && a.h1 == b.h1 && a.size == b.size &&
				a.checksum == b.checksum && bytes.Equal(a.content, b.content)
		}) {
			t.Errorf("digests read: %+v", m.digests.before)
		}
		if !maps.Equal(m.signatures.before, someSignatures) {
			t.Errorf("signatures read: %+v", m.signatures.before)
		}
	})
	t.Run("the same memo has the same bytes", func(t *testing.T) {
		if !bytes.Equal(content, someMemo().encode("a tree")) {
			t.Error("they differ")
		}
	})
	for _, test := range []struct {
		rule     string
		content  []byte
		identity string
		want     error
	}{
		{"nothing", nil, "a tree", errMemoForeign},
		{"junk", bytes.Repeat([]byte("junk\n"), 1000), "a tree", errMemoForeign},
		{"of an earlier format", append([]byte("caddy-terraform-registry memo 2\n"), content[len(memoFormat):]...), "a tree", errMemoForeign},
		{"of another tree", content, "another tree", errMemoForeign},
		{"its first line only", []byte(memoFormat), "a tree", errMemoDamaged},
		{"cut short by one byte", content[:len(content)-1], "a tree", errMemoDamaged},
		{"cut in half", content[:len(content)/2], "a tree", errMemoDamaged},
		{"one bit turned", turnBit(content, len(content)/2), "a tree", errMemoDamaged},
		{"with something behind it", append(bytes.Clone(content), 0), "a tree", errMemoDamaged},
	} {
		t.Run("of no use is one that is "+test.rule, func(t *testing.T) {
			var m memo
			if err := m.decode(test.content, test.identity); !errors.Is(err, test.want) {
				t.Errorf("the error is %v", err)
			}
			if m.digests.before != nil || m.signatures.before != nil {
				t.Error("some of it is used")
			}
		})
	}
}

func turnBit(content []byte, at int) []byte {
	turned := bytes.Clone(content)
	turned[at] ^= 1
	return turned
}

// A memo that is whole but nonsense must still be refused, not believed in part.
func FuzzMemoFile(f *testing.F) {
	f.Add(someMemo().encode("a tree")[len(memoFormat):])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, records []byte) {
		body := append([]byte(memoFormat), records...)
		sum := sha256Of(body)
		var m memo
		if err := m.decode(append(body, sum[:]...), "a tree"); err != nil && (m.digests.before != nil || m.signatures.before != nil) {
			t.Error("some of it is used")
		}
	})
}

func TestSettled(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)
	at := func(ago time.Duration) int64 { return now.Add(-ago).UnixNano() }
	for _, test := range []struct {
		rule  string
		stamp stamp
		want  bool
	}{
		{"a file changed just now may change again unnoticed", stamp{modTime: at(time.Millisecond)}, false},
		{"fine times tell changes apart soon", stamp{modTime: at(51 * time.Millisecond)}, true},
		{"whole seconds may stand for two of them", stamp{modTime: now.Truncate(time.Second).Add(-time.Second).UnixNano()}, false},
		{"but not for more", stamp{modTime: now.Truncate(time.Second).Add(-2 * time.Second).UnixNano()}, true},
		{"an old time that was just set is not an old content", stamp{modTime: at(time.Hour), changed: at(time.Millisecond)}, false},
		{"a time in the future says nothing of the age", stamp{modTime: at(-time.Hour)}, true},
	} {
		if got := test.stamp.settled(now); got != test.want {
			t.Errorf("%s: %v", test.rule, got)
		}
	}
}
