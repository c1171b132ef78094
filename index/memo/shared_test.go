package memo

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Segments come from a storage that others can write to.
func FuzzDecodeSegment(f *testing.F) {
	records := map[string]Record{
		"providers/acme/demo/a.zip": {Digest: archive.Digest{SHA256: wire.SHA256Of([]byte("a")), H1: "h1:a", Size: 1}},
		"modules/acme/vpc/aws/1.0":  {Stamp: tree.Stamp{Size: 2, Inode: 3, Changed: tree.ByTag}, Digest: archive.Digest{Bad: tree.Findingf(tree.BadArchive, "it is damaged"), Content: []byte("x")}},
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
		decoded := make(map[string]Record)
		if err := decodeSegment(name, segment, decoded); err != nil {
			if len(decoded) > 0 {
				t.Error("a segment that is refused has records")
			}
			return
		}
		again := make(map[string]Record)
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
	records := map[string]Record{
		"a": {Stamp: tree.Stamp{Size: 1, ModTime: 2, Inode: 3, Changed: 4}, Digest: archive.Digest{SHA256: wire.SHA256Of([]byte("a")), H1: "h1:a", Size: 1, Checksum: 5, Content: []byte("x")}},
		"b": {Digest: archive.Digest{Content: make([]byte, 2*maxSegment)}},
		"c": {},
	}
	decoded, segments := make(map[string]Record), 0
	for s := range encodeSegments(records) {
		segments++
		if err := decodeSegment(segmentName(s), s, decoded); err != nil {
			t.Fatal(err)
		}
		if err := decodeSegment("another", s, decoded); err == nil {
			t.Error("a segment under another name is accepted")
		}
	}
	equal := func(a, b Record) bool {
		return a.Stamp == b.Stamp && a.SHA256 == b.SHA256 && a.H1 == b.H1 && a.Size == b.Size && a.Checksum == b.Checksum && string(a.Content) == string(b.Content)
	}
	if !maps.EqualFunc(records, decoded, equal) || segments != 3 {
		t.Errorf("%d records come back as %d, in %d segments", len(records), len(decoded), segments)
	}
}

// counted is a Shared memo in memory that counts its calls.
type counted struct {
	segments     map[string][]byte
	loads, locks int
}

func (c *counted) List(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(c.segments)), nil
}

func (c *counted) Load(_ context.Context, name string) ([]byte, error) {
	c.loads++
	segment, ok := c.segments[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return segment, nil
}

func (c *counted) Store(_ context.Context, name string, segment []byte) error {
	c.segments[name] = segment
	return nil
}

func (c *counted) Delete(_ context.Context, name string) error {
	delete(c.segments, name)
	return nil
}

func (c *counted) Lock(context.Context) (func(), error) {
	c.locks++
	return func() {}, nil
}

// A tree of 100,000 packages has a hundred large segments, which must not be loaded with
// every new version.
func TestMergingLoadsLargeSegmentsOnce(t *testing.T) {
	c := &counted{segments: make(map[string][]byte)}
	add := func(kind string, n, size int) {
		for i := range n {
			path := fmt.Sprintf("modules/acme/%s%d/aws/1.0.0.tar.gz", kind, i)
			content := bytes.Repeat([]byte{byte(i)}, size)
			for segment := range encodeSegments(map[string]Record{path: {Digest: archive.Digest{Content: content}}}) {
				c.segments[segmentName(segment)] = segment
			}
		}
	}
	const large, small = 2 * maxSmall, maxSmall + 1
	s := &Sharing{memo: new(Memo), with: c}
	for _, step := range []struct {
		rule          string
		add           func()
		loads, locks  int
		segmentsAfter int
	}{
		{"of an unknown size", func() { add("large", large, smallSegment) }, large, 1, large},
		{"known to be large", func() {}, 0, 0, large},
		{"and many that are small", func() { add("small", small, 1) }, small, 1, large},
		{"and a few", func() { add("few", 2, 1) }, 0, 0, large + 2},
	} {
		c.loads, c.locks = 0, 0
		step.add()
		if err := s.merge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.loads != step.loads || c.locks != step.locks || len(c.segments) != step.segmentsAfter {
			t.Errorf("segments %s: %d loaded, %d locks, %d left; want %d, %d, %d", step.rule,
				c.loads, c.locks, len(c.segments), step.loads, step.locks, step.segmentsAfter)
		}
	}
}
