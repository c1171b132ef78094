package memo

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
)

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
func TestMergingLoadsNoLargeSegments(t *testing.T) {
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
	s := NewSharing(new(Memo), c, nil)
	for _, step := range []struct {
		rule          string
		add           func()
		loads, locks  int
		segmentsAfter int
	}{
		{"that are large", func() { add("large", large, smallSegment) }, 0, 0, large},
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

// During an upgrade, instances of two releases share a storage, and either may be replaced by
// the other again.
func TestSegmentsOfOtherFormatsStayForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{segments: map[string][]byte{"another": []byte("something else")}}
		for i := range 2 * maxSmall {
			c.segments[fmt.Sprintf("8-%d", i)] = bytes.Repeat([]byte{byte(i)}, i%2*smallSegment)
		}
		s, foreign := NewSharing(new(Memo), c, nil), len(c.segments)
		for _, step := range []struct {
			rule  string
			after time.Duration
			add   string
			left  int
		}{
			{"all stay that are seen first", 0, "", foreign},
			{"until a day has passed", memoLife - 1, "9-1", foreign + 1},
			{"but no longer", 1, "", 1},
			{"which holds for each", memoLife - 2, "", 1},
			{"from when it was seen", 1, "", 0},
		} {
			time.Sleep(step.after)
			if step.add != "" {
				c.segments[step.add] = []byte("something newer")
			}
			before := c.loads
			if records := s.Load(t.Context()); len(records) > 0 || c.loads > before {
				t.Errorf("%s: %d are loaded, with %v", step.rule, c.loads-before, records)
			}
			if err := s.merge(t.Context()); err != nil || len(c.segments) != step.left || c.locks > 0 {
				t.Errorf("%s: %d are left, %v", step.rule, len(c.segments), err)
			}
		}
	})
}
