package index

import (
	"maps"
	"testing"
)

// Segments come from a storage that others can write to.
func FuzzDecodeSegment(f *testing.F) {
	records := map[string]digest{
		"providers/acme/demo/a.zip": {sha256: sha256Of([]byte("a")), h1: "h1:a", size: 1},
		"modules/acme/vpc/aws/1.0":  {stamp: stamp{size: 2, inode: 3, changed: byTag}, bad: found(BadArchive, "it is damaged"), content: []byte("x")},
	}
	for segment := range encodeSegments(records) {
		f.Add(segment)
	}
	f.Add([]byte(segmentFormat))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, segment []byte) {
		name := ""
		if len(segment) >= 32 {
			name = segmentName(segment)
		}
		decoded := make(map[string]digest)
		if err := decodeSegment(name, segment, decoded); err != nil {
			if len(decoded) > 0 {
				t.Error("a segment that is refused has records")
			}
			return
		}
		again := make(map[string]digest)
		for s := range encodeSegments(decoded) {
			if err := decodeSegment(segmentName(s), s, again); err != nil {
				t.Fatal(err)
			}
		}
		if len(again) != len(decoded) {
			t.Errorf("%d records are encoded as %d", len(decoded), len(again))
		}
	})
}

func TestSegmentsKeepRecords(t *testing.T) {
	records := map[string]digest{
		"a": {stamp: stamp{size: 1, modTime: 2, inode: 3, changed: 4}, sha256: sha256Of([]byte("a")), h1: "h1:a", size: 1, checksum: 5, content: []byte("x")},
		"b": {content: make([]byte, 2*maxSegment)},
		"c": {},
	}
	decoded, segments := make(map[string]digest), 0
	for s := range encodeSegments(records) {
		segments++
		if err := decodeSegment(segmentName(s), s, decoded); err != nil {
			t.Fatal(err)
		}
		if err := decodeSegment("another", s, decoded); err == nil {
			t.Error("a segment under another name is accepted")
		}
	}
	equal := func(a, b digest) bool {
		return a.stamp == b.stamp && a.sha256 == b.sha256 && a.h1 == b.h1 && a.size == b.size && a.checksum == b.checksum && string(a.content) == string(b.content)
	}
	if !maps.EqualFunc(records, decoded, equal) || segments != 3 {
		t.Errorf("%d records come back as %d, in %d segments", len(records), len(decoded), segments)
	}
}
