package memo

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A segment is a memo file of no tree in particular. Its name is the version of the format,
// whether the segment is small, and its sha256. An instance that does not know the version
// leaves the segment to the instances that do. A large tree has hundreds of large segments:
// merging small ones does not load them.
const (
	segmentPrefix = memoVersion + "-"
	largePrefix   = segmentPrefix + "large-"
	smallPrefix   = segmentPrefix + "small-"
)

func segmentName(segment []byte) string {
	prefix := largePrefix
	if len(segment) < smallSegment {
		prefix = smallPrefix
	}
	return prefix + wire.SHA256Of(segment).String()[:32]
}

// onlySmall returns the names of segments that are merged when there are many.
func onlySmall(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, largePrefix) })
}

// hasLoaded notes that the records of segments are known: they have been loaded or stored.
func (m *Memo) hasLoaded(names ...string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.loaded == nil {
		m.loaded = make(map[string]bool)
	}
	for _, name := range names {
		m.loaded[name], m.changed = true, true
	}
}

// knows reports whether the records of all these segments are known.
func (m *Memo) knows(names []string) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return !slices.ContainsFunc(names, func(name string) bool { return !m.loaded[name] })
}

// unloaded returns the segments among these whose records are not known, not even from before an
// earlier start: a large tree has hundreds of megabytes of segments. It forgets all segments that
// are not among these.
func (m *Memo) unloaded(names []string) (unloaded []string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	loaded := make(map[string]bool)
	for _, name := range names {
		if m.loaded[name] {
			loaded[name] = true
		} else {
			unloaded = append(unloaded, name)
		}
	}
	m.loaded = loaded
	return unloaded
}

// isShared reports whether instances share their records of a file. They do not share
// publishers' keys: an instance verifies the records of others with keys that it has read
// itself.
func isShared(path string) bool { return !strings.HasPrefix(path, "keys/") }

// Most bytes of a segment, and of a folder in it, beside their texts and records.
const (
	segmentOverhead = 64
	folderOverhead  = 20
)

// encodeSegments encodes records, ordered by path, into segments of at most maxSegment
// bytes, or of a single larger record. Neither verified signatures nor earlier bytes are
// shared: each instance notices them itself.
func encodeSegments(records map[string]Record) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		segment, size := new(Memo), segmentOverhead
		for _, path := range slices.Sorted(maps.Keys(records)) {
			file, d := tree.LocationOf(path), records[path]
			d.Earlier = nil
			r := compact(file.Name, d)
			added := folderOverhead + len(path) + len(r.fileHashes) + len(r.append(nil))
			if segment.folders[file.Report] != nil {
				size -= folderOverhead + len(file.Report)
			}
			if size+added > maxSegment && len(segment.folders) > 0 {
				if !yield(segment.Encode("")) {
					return
				}
				segment, size = new(Memo), segmentOverhead
			}
			segment.folder(file.Report).put(r)
			size += added
		}
		if len(segment.folders) > 0 {
			yield(segment.Encode(""))
		}
	}
}

// decodeSegment returns the records of a segment. A damaged segment has none.
func decodeSegment(name string, segment []byte) (map[string]Record, error) {
	var m Memo
	if err := m.Decode(segment, ""); err != nil {
		return nil, err
	}
	if segmentName(segment) != name {
		return nil, errMemoDamaged
	}
	records := make(map[string]Record)
	for dir, f := range m.folders {
		for _, r := range f.records {
			if path := tree.InFolder(dir, r.name); isShared(path) {
				d := r.record()
				d.Earlier = nil
				records[path] = d
			}
		}
	}
	return records, nil
}
