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
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// counted is a Shared memo in memory that counts its calls.
type counted struct {
	segments     map[string][]byte
	loads, locks int
}

func (c *counted) List(ctx context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(c.segments)), ctx.Err()
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

// An instance that merges records of others before it has loaded them can still load them.
func TestMergedRecordsCanStillBeLoaded(t *testing.T) {
	c := &counted{segments: make(map[string][]byte)}
	const n = maxSmall + 1
	path := func(i int) string { return fmt.Sprintf("modules/acme/vpc%d/aws/1.0.0.tar.gz", i) }
	stamp := func(changed int) tree.Stamp { return tree.Stamp{Size: 1, ModTime: int64(changed)} }
	for i := range n {
		for segment := range encodeSegments(map[string]Record{path(i): {Stamp: stamp(2)}}) {
			c.segments[segmentName(segment)] = segment
		}
	}
	m := new(Memo)
	for i := range n {
		m.Adopt(tree.LocationOf(path(i)), Record{Stamp: stamp(1 + 2*(i%2))}) // older and newer ones
	}
	s := NewSharing(m, c, nil)
	if err := s.merge(t.Context()); err != nil || len(c.segments) != 1 {
		t.Fatalf("%d segments are left: %v", len(c.segments), err)
	}
	loaded := make(map[string]bool)
	load := func() {
		s.Load(t.Context(), func(path string, d Record) bool { loaded[path] = true; return true })
	}
	load()
	for i := range n {
		if isNewer := i%2 == 0; loaded[path(i)] != isNewer {
			t.Errorf("%s is loaded: %t, is newer than what is known: %t", path(i), loaded[path(i)], isNewer)
		}
	}
	clear(loaded)
	if load(); len(loaded) > 0 {
		t.Errorf("%d are loaded twice", len(loaded))
	}
}

// A request that is given up says nothing of the storage.
func TestSharedRecordsAreLoadedAfterARequestWasGivenUp(t *testing.T) {
	c := &counted{segments: make(map[string][]byte)}
	for segment := range encodeSegments(map[string]Record{"modules/acme/vpc/aws/1.0.0.tar.gz": {}}) {
		c.segments[segmentName(segment)] = segment
	}
	s := NewSharing(new(Memo), c, func(message, reason string) { t.Errorf("%s: %s", message, reason) })
	given, giveUp := context.WithCancel(t.Context())
	giveUp()
	loaded := 0
	take := func(string, Record) bool { loaded++; return true }
	if s.Load(given, take); loaded > 0 {
		t.Fatalf("%d are loaded", loaded)
	}
	if s.Load(t.Context(), take); loaded != 1 {
		t.Errorf("%d are loaded", loaded)
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
			s.Load(t.Context(), func(path string, _ Record) bool {
				t.Errorf("%s: a record of %s is loaded", step.rule, path)
				return true
			})
			if c.loads > before {
				t.Errorf("%s: %d are loaded", step.rule, c.loads-before)
			}
			if err := s.merge(t.Context()); err != nil || len(c.segments) != step.left || c.locks > 0 {
				t.Errorf("%s: %d are left, %v", step.rule, len(c.segments), err)
			}
		}
	})
}

// A large tree has hundreds of megabytes of segments: they are not loaded again with the first new
// version after each start.
func TestSegmentsAreLoadedOnce(t *testing.T) {
	c := &counted{segments: make(map[string][]byte)}
	other := NewSharing(new(Memo), c, nil)
	add := func(path string) {
		t.Helper()
		if _, err := other.storeRecords(t.Context(), map[string]Record{path: {Digest: archive.Digest{FileHashes: wire.FileHashes(path)}}}); err != nil {
			t.Fatal(err)
		}
	}
	saved := new(Memo)
	load := func(m *Memo) (paths []string) {
		c.loads = 0
		NewSharing(m, c, nil).Load(t.Context(), func(path string, _ Record) bool {
			paths = append(paths, path)
			return true
		})
		slices.Sort(paths)
		return paths
	}
	restarted := func() *Memo {
		t.Helper()
		m := new(Memo)
		if err := m.Decode(saved.Encode("a tree"), "a tree"); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, step := range []struct {
		rule string
		add  []string
		do   func()
		want []string
	}{
		{"all of them at first", []string{"a", "b"}, func() {}, []string{"a", "b"}},
		{"none that was loaded before a start", nil, func() { saved = restarted() }, nil},
		{"but those that another instance has added since", []string{"c"}, func() { saved = restarted() }, []string{"c"}},
		{"none that the instance itself has stored", nil, func() {
			saved.StartLearning()
			saved.Keep(tree.LocationOf("own"), Record{})
			if !NewSharing(saved, c, nil).Store(t.Context()) {
				t.Fatal("it is not stored")
			}
			saved = restarted()
		}, nil},
		{"all, if they are there again after they have been removed", nil, func() {
			segments := c.segments
			c.segments = make(map[string][]byte)
			load(saved)
			c.segments, saved = segments, restarted()
		}, []string{"a", "b", "c", "own"}},
		{"all, if most records have been forgotten", nil, func() {
			for i := range 3 {
				saved.Adopt(tree.LocationOf(fmt.Sprintf("providers/acme/demo/%d.zip", i)), Record{})
			}
			saved.Begin(long)
			saved.Finish(long)
			saved.Begin(long.Add(memoLife))
			saved.Finish(long.Add(memoLife))
			saved = restarted()
		}, []string{"a", "b", "c", "own"}},
	} {
		for _, path := range step.add {
			add(path)
		}
		step.do()
		if got := load(saved); !slices.Equal(got, step.want) || c.loads != len(step.want) {
			t.Errorf("%s: %d segments are loaded, with %v; want %v", step.rule, c.loads, got, step.want)
		}
	}
}
