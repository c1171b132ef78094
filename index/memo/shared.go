package memo

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Shared memo has the digests of archives that any of the instances that serve one tree
// has read, so that no other instance reads the archives again. It is a convenience, like
// Store: an instance that cannot reach it, or finds it damaged, reads archives itself.
//
// It consists of immutable segments with records of the memo: a digest counts only for a
// file of the same path, size, times and inode or, in a Bucket, ETag. Network file systems
// get these from their server, so they are the same on all instances; where they differ,
// each instance reads for itself.
type Shared interface {
	// List returns the names of the segments.
	List(ctx context.Context) ([]string, error)

	// Load returns a segment. The error wraps fs.ErrNotExist if it has been removed.
	Load(ctx context.Context, name string) ([]byte, error)

	// Store adds a segment, which may exist already.
	Store(ctx context.Context, name string, segment []byte) error

	// Delete removes a segment.
	Delete(ctx context.Context, name string) error

	// Lock lets a single instance merge segments.
	Lock(ctx context.Context) (unlock func(), err error)
}

// Limits of a Shared memo. Some storages, such as Consul, limit values to half a megabyte.
const (
	maxSegment   = 256 << 10 // bytes that are written
	smallSegment = maxSegment / 2
	maxSmall     = 32   // number of small segments after which they are merged
	maxSegments  = 4096 // segments that are loaded
)

const (
	// loadPatience is how long a scan waits for the shared memo. After a scan has waited for
	// nothing, none waits for loadPause: files can be read without the shared memo, and a
	// storage that hangs must not delay them.
	loadPatience = 5 * time.Second
	loadPause    = time.Minute

	// storePatience is how long storing may take. Only the next store waits for it.
	storePatience = 30 * time.Second
)

// Sharing is an Index's access to a Shared memo. A nil *Sharing shares nothing.
type Sharing struct {
	memo *Memo
	with Shared
	warn func(message, reason string)

	loading sync.Mutex        // one at a time
	resume  time.Time         // when the shared memo is asked again
	early   map[string]Record // records of files that no scan has found yet

	storing sync.Mutex // one at a time
	listed  bool       // the segments have been listed, so that an empty memo is known

	mutex   sync.Mutex
	foreign map[string]time.Time // segments of other formats, and since when they are known
	failing bool                 // a failure has been logged
}

// NewSharing begins to share new records of a memo. warn is called when sharing fails.
func NewSharing(m *Memo, with Shared, warn func(message, reason string)) *Sharing {
	return &Sharing{memo: m, with: with, warn: warn}
}

// maxEarly limits the records that are kept for files which scans have not found yet.
const maxEarly = 4096

// Load calls take with each record that has been added since the last call, one at a time, and
// with the records that take did not want then: another instance may have shared them before
// the listing of a network file system or a store shows their files. Records that cannot be
// loaded before ctx ends are left for the next call.
func (s *Sharing) Load(ctx context.Context, take func(path string, d Record) (taken bool)) {
	ctx, cancel := context.WithTimeout(ctx, loadPatience)
	defer cancel()
	s.loading.Lock()
	defer s.loading.Unlock()
	if time.Now().Before(s.resume) {
		return
	}
	early := make(map[string]Record)
	each := func(path string, d Record) {
		if taken := take(path, d); !taken && len(early) <= maxEarly {
			addNewer(early, path, d)
		}
	}
	for path, d := range s.early {
		each(path, d)
	}
	whole, err := false, error(nil)
	for range maxListings {
		if whole, err = s.loadListed(ctx, each); whole || err != nil {
			break
		}
	}
	if s.early = early; len(early) > maxEarly {
		s.early = nil
	}
	if err != nil && !isGivenUp(ctx) {
		s.resume = time.Now().Add(loadPause)
	}
	s.report(ctx, err, "the digests that other instances share cannot be loaded, archives are read again")
}

// addNewer adds the record of a file, unless there is one of a later change: segments are in the
// order of their names.
func addNewer(records map[string]Record, path string, d Record) {
	if known, ok := records[path]; !ok || known.Stamp.Newest() <= d.Stamp.Newest() {
		records[path] = d
	}
}

// maxListings is how often segments are listed again because some of them were merged
// after they had been listed.
const maxListings = 3

// loadListed loads the segments that are listed now, and calls each with their records. It
// reports whether all of them existed.
func (s *Sharing) loadListed(ctx context.Context, each func(path string, d Record)) (whole bool, err error) {
	names, err := s.list(ctx)
	if err != nil {
		return false, err
	}
	whole = true
	for _, name := range s.memo.unloaded(names[:min(len(names), maxSegments)]) {
		segment, err := s.with.Load(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			whole = false
		case err != nil:
			return false, err
		default:
			decoded, _ := decodeSegment(name, segment) // a damaged segment has no records
			for path, d := range decoded {
				each(path, d)
			}
			s.memo.hasLoaded(name)
		}
	}
	return whole, nil
}

// Store shares new records of the memo, and reports whether it shared any. It returns within
// storePatience.
func (s *Sharing) Store(ctx context.Context) (stored bool) {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	s.storing.Lock()
	defer s.storing.Unlock()
	if !s.listed {
		// The memo may have been saved when nothing was shared.
		names, err := s.list(ctx)
		if s.report(ctx, err, "digests cannot be shared with other instances"); err != nil {
			return false
		}
		if s.listed = true; len(names) == 0 {
			s.memo.learnAll()
		}
	}
	records := s.memo.unshared()
	if len(records) == 0 {
		return false
	}
	names, err := s.storeRecords(ctx, records)
	s.memo.hasLoaded(names...)
	if s.report(ctx, err, "digests cannot be shared with other instances"); err != nil {
		return false
	}
	s.memo.reportShared(records)
	return true
}

// storeRecords stores segments, and returns their names.
func (s *Sharing) storeRecords(ctx context.Context, records map[string]Record) (names []string, err error) {
	for segment := range encodeSegments(records) {
		name := segmentName(segment)
		if err := s.with.Store(ctx, name, segment); err != nil {
			return names, err
		}
		names = append(names, name)
	}
	return names, nil
}

// Tidy merges segments, within storePatience. It may have to wait for another instance that
// merges too, so no scan waits for it.
func (s *Sharing) Tidy(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	if err := s.merge(ctx); err != nil {
		s.report(ctx, err, "the digests that instances share cannot be merged")
	}
}

// list returns the names of the segments of this format. It notes since when segments of
// other formats are known.
func (s *Sharing) list(ctx context.Context) ([]string, error) {
	names, err := s.with.List(ctx)
	if err != nil {
		return nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before, now := s.foreign, time.Now()
	s.foreign = make(map[string]time.Time)
	return slices.DeleteFunc(names, func(name string) bool {
		if strings.HasPrefix(name, segmentPrefix) {
			return false
		}
		s.foreign[name] = now
		if since, known := before[name]; known {
			s.foreign[name] = since
		}
		return true
	}), nil
}

// removeForeign removes segments of other formats that are known for memoLife. Until then,
// instances of another version may need them: during an upgrade, or after going back.
func (s *Sharing) removeForeign(ctx context.Context) {
	s.mutex.Lock()
	foreign := maps.Clone(s.foreign)
	s.mutex.Unlock()
	for name, since := range foreign {
		if time.Since(since) >= memoLife && s.with.Delete(ctx, name) != nil {
			return // the next merge tries again
		}
	}
}

// merge merges small segments into few, without the records of files that have changed.
func (s *Sharing) merge(ctx context.Context) error {
	names, err := s.list(ctx)
	if err != nil {
		return err
	}
	s.removeForeign(ctx)
	if len(onlySmall(names)) <= maxSmall {
		return nil
	}
	unlock, err := s.with.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	names, err = s.list(ctx)
	small := onlySmall(names)
	if err != nil || len(small) <= maxSmall { // another instance has merged them
		return err
	}
	known := s.memo.knows(small) // else this instance has yet to load the merged ones
	records := make(map[string]Record)
	for _, name := range small {
		segment, err := s.with.Load(ctx, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		decoded, _ := decodeSegment(name, segment)
		for path, d := range decoded {
			addNewer(records, path, d)
		}
	}
	s.memo.dropChanged(records)
	stored, err := s.storeRecords(ctx, records)
	if known {
		s.memo.hasLoaded(stored...)
	}
	if err != nil {
		return err
	}
	for _, name := range small {
		if slices.Contains(stored, name) {
			continue
		}
		if s.with.Delete(ctx, name) != nil { // the next merge removes it
			break
		}
	}
	return nil
}

// isGivenUp reports whether whoever asked for an operation has given it up, which says nothing
// of the storage.
func isGivenUp(ctx context.Context) bool { return errors.Is(context.Cause(ctx), context.Canceled) }

// report logs a failure, once until an operation succeeds.
func (s *Sharing) report(ctx context.Context, err error, message string) {
	if err != nil && isGivenUp(ctx) {
		return
	}
	s.mutex.Lock()
	log := err != nil && !s.failing
	s.failing = err != nil
	s.mutex.Unlock()
	if log {
		s.warn(message, tree.WithoutPath(err).Error())
	}
}
