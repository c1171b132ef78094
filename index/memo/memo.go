package memo

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Memo remembers the results of reading files, and which signatures verified, so that a
// scan reads and verifies only new files. It keeps the record of a file until scans have not
// found the file for memoLife, whether or not they need the record: when a volume is not
// mounted for a while, its archives need not be read again.
type Memo struct {
	mutex    sync.Mutex
	folders  map[string]*folderRecords // by path in the report
	scan     uint32                    // when the running scan, or the last one, began, in seconds
	learning bool                      // new records are shared with other instances
	learned  map[string]bool           // paths of records that have not been shared yet, even since an earlier start
	loaded   map[string]bool           // segments that have been loaded or stored, even before an earlier start
	changed  bool                      // since it was last saved
	Verified atomic.Uint64             // signatures verified, without remembered ones

	// Verified signatures that are too young for a record, by their path.
	unrecorded map[string]*verifiedSignature
}

// unrecordedLife is how long a verified signature without a record is kept. A file gets a
// record when it is old enough.
const unrecordedLife = time.Minute

// memoLife is how long the record of a file is kept that scans do not find.
const memoLife = 24 * time.Hour

// folderRecords are the records of the files in one folder.
type folderRecords struct {
	records  []*compactRecord // by name
	retained uint32           // the last scan that found the folder unchanged, or could not read it
	gone     uint32           // the first scan since which no file of the folder is found; zero: some was
}

// A compactRecord is a record in little space: most are of a package.
type compactRecord struct {
	name       string // of the file in its folder
	seen       uint32 // the last scan that looked for the file and found it
	missed     uint32 // the first scan since then that found other files in the folder, but not this one
	stamp      tree.Stamp
	sha256     wire.SHA256
	fileHashes wire.FileHashes
	more       *compactDetail // nil if the record's size is the file's, and all else is zero
}

// A compactDetail has the fields that are zero in most records.
type compactDetail struct {
	size     int64
	checksum uint32
	bad      *tree.Finding
	content  []byte
	verified *verifiedSignature // the verified content of a signature file
	earlier  *EarlierBytes      // of an archive
}

// A verifiedSignature is a signature that verified, and the key that made it.
type verifiedSignature struct {
	of      wire.SHA256 // the digest of the document, the keys and the signature together
	at      int64       // when it was verified, in nanoseconds
	keyID   string
	expires int64 // when the key expires, in seconds; zero: never
}

func compact(name string, d Record) *compactRecord {
	r := &compactRecord{name: name, stamp: d.Stamp, sha256: d.SHA256, fileHashes: d.FileHashes}
	if d.Size != d.Stamp.Size || d.Checksum != 0 || d.Bad != nil || len(d.Content) > 0 || d.Earlier != nil {
		r.more = &compactDetail{size: d.Size, checksum: d.Checksum, bad: d.Bad, content: d.Content, earlier: d.Earlier}
	}
	return r
}

func (r *compactRecord) record() Record {
	d := Record{Digest: archive.Digest{SHA256: r.sha256, FileHashes: r.fileHashes, Size: r.stamp.Size}, Stamp: r.stamp}
	if m := r.more; m != nil {
		d.Size, d.Checksum, d.Bad, d.Content, d.Earlier = m.size, m.checksum, m.bad, m.content, m.earlier
	}
	return d
}

// search returns where the record of a file is, or would be.
func (f *folderRecords) search(name string) (i int, found bool) {
	return slices.BinarySearchFunc(f.records, name, func(r *compactRecord, name string) int { return strings.Compare(r.name, name) })
}

// find returns the record of a file, or nil.
func (f *folderRecords) find(name string) *compactRecord {
	if f == nil {
		return nil
	}
	i, found := f.search(name)
	if !found {
		return nil
	}
	return f.records[i]
}

// put adds or replaces the record of a file.
func (f *folderRecords) put(r *compactRecord) {
	i, found := f.search(r.name)
	if found {
		f.records[i] = r
		return
	}
	f.records = slices.Insert(f.records, i, r)
}

// forget drops the records of files that scans have missed for memoLife, and reports whether
// it dropped any. scan is the scan that ends. It has not looked for the files of a folder that
// it retained, but may have put a record of one.
func (f *folderRecords) forget(scan uint32) (dropped bool) {
	walked := slices.ContainsFunc(f.records, func(r *compactRecord) bool { return r.seen == scan })
	switch {
	case walked || f.retained == scan:
		f.gone = 0
	case f.gone == 0: // no file in the folder was found
		f.gone = scan
	}
	known := len(f.records)
	f.records = slices.DeleteFunc(f.records, func(r *compactRecord) bool {
		if walked && f.retained != scan && r.seen != scan && r.seen >= r.missed {
			r.missed = scan
		}
		missed := f.gone
		if r.missed > r.seen {
			missed = max(missed, r.missed)
		}
		return missed != 0 && scan > missed && scan-missed >= uint32(memoLife/time.Second)
	})
	return len(f.records) < known
}

// folder returns the records of a folder, which may be empty.
func (m *Memo) folder(report string) *folderRecords {
	f := m.folders[report]
	if f == nil {
		f = new(folderRecords)
		if m.folders == nil {
			m.folders = make(map[string]*folderRecords)
		}
		m.folders[report] = f
	}
	return f
}

func (m *Memo) find(file *tree.Location) *compactRecord {
	return m.folders[file.Report].find(file.Name)
}

// Begin starts a scan.
func (m *Memo) Begin(now time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.scan = uint32(max(now.Unix(), 1))
}

// Finish ends a scan of the whole tree, in which some folders may not have been readable. It is
// not called after a scan that is broken off, so that nothing is forgotten.
func (m *Memo) Finish(now time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	maps.DeleteFunc(m.unrecorded, func(_ string, v *verifiedSignature) bool {
		return now.Sub(time.Unix(0, v.at)).Abs() > unrecordedLife
	})
	known, left := 0, 0
	for dir, f := range m.folders {
		known += len(f.records)
		if f.forget(m.scan) {
			m.changed = true
		}
		if left += len(f.records); len(f.records) == 0 {
			delete(m.folders, dir)
		}
	}
	if left < known/2 {
		m.loaded = nil // segments have the records, should a volume be mounted again
	}
	maps.DeleteFunc(m.learned, func(path string, _ bool) bool { return m.find(tree.LocationOf(path)) == nil })
}

// Get returns the record of a file if it still has the stamp now. It replaces the name in
// file by the name in the record, which stays in memory anyway. The record of another stamp
// stays, too: the file is there, and may not be readable for days.
func (m *Memo) Get(file *tree.Location, now tree.Stamp) (Record, bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	r := m.find(file)
	if r == nil {
		return Record{}, false
	}
	if r.seen = m.scan; r.stamp != now {
		return Record{}, false
	}
	file.Name = r.name
	return r.record(), true
}

// Known returns the record of a file, whatever its stamp is now.
func (m *Memo) Known(file *tree.Location) (Record, bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	r := m.find(file)
	if r == nil {
		return Record{}, false
	}
	return r.record(), true
}

// Document returns the remembered content of a document, whatever its stamp is now, and
// keeps its record.
func (m *Memo) Document(file *tree.Location) (content []byte, ok bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	r := m.find(file)
	if r == nil {
		return nil, false
	}
	r.seen = m.scan
	return r.record().Content, true
}

// Drop forgets a file that a scan has looked for and that does not exist.
func (m *Memo) Drop(file *tree.Location) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	f := m.folders[file.Report]
	if f.find(file.Name) != nil {
		f.records = slices.DeleteFunc(f.records, func(r *compactRecord) bool { return r.name == file.Name })
		m.changed = true
	}
}

// RetainBelow keeps the records of a folder that cannot be read, and of its subfolders.
func (m *Memo) RetainBelow(report string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for dir, f := range m.folders {
		if tree.IsBelow(dir, report) {
			f.retained = m.scan
		}
	}
}

// Retain keeps the records of folders whose files have not changed.
func (m *Memo) Retain(folders ListedFolders) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, l := range folders {
		if f := m.folders[l.report]; f != nil {
			f.retained = m.scan
		}
	}
}

// Put remembers d, unless the file is so young that it could still change without its stamp
// changing, or the failure may pass by itself.
func (m *Memo) Put(file *tree.Location, d Record, now time.Time) {
	if d.Stamp.TooYoung(now, 0) {
		return
	}
	if d.Bad.IsFault() || d.Bad != nil && (d.Bad.Reason == tree.Unreadable || d.Bad.Reason == tree.BeingWritten) {
		return
	}
	m.Keep(file, d)
}

// Keep remembers d, however young the file is.
func (m *Memo) Keep(file *tree.Location, d Record) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.set(file, d)
	if path := file.ReportPath(); m.learning && isShared(path) {
		m.learned[path] = true
	}
}

// Adopt remembers a record of another instance.
func (m *Memo) Adopt(file *tree.Location, d Record) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.set(file, d)
}

// AdoptNewer is Adopt, unless a record of a later change is known.
func (m *Memo) AdoptNewer(file *tree.Location, d Record) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if r := m.find(file); r == nil || r.stamp.Newest() <= d.Stamp.Newest() {
		m.set(file, d)
	}
}

func (m *Memo) set(file *tree.Location, d Record) {
	r := compact(file.Name, d)
	r.seen = m.scan
	if r.more != nil {
		r.more.verified = m.verifiedAt(file) // the signature has its own digest, which tells whether it applies
	}
	m.folder(file.Report).put(r)
	m.changed = true
}

// StartLearning begins to note the paths of new records.
func (m *Memo) StartLearning() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.learning = true
	if m.learned == nil {
		m.learned = make(map[string]bool)
	}
}

// learnAll notes the paths of all records.
func (m *Memo) learnAll() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for dir, f := range m.folders {
		for _, r := range f.records {
			if path := tree.InFolder(dir, r.name); isShared(path) {
				m.learned[path] = true
			}
		}
	}
}

// unshared returns the records that other instances do not have yet.
func (m *Memo) unshared() map[string]Record {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	records := make(map[string]Record, len(m.learned))
	for path := range m.learned {
		if r := m.find(tree.LocationOf(path)); r != nil {
			records[path] = r.record()
		}
	}
	return records
}

// reportShared notes that other instances have the records. Until then they are saved as unshared,
// whatever happens while they are being stored.
func (m *Memo) reportShared(records map[string]Record) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for path, d := range records {
		if r := m.find(tree.LocationOf(path)); r == nil || r.stamp == d.Stamp {
			delete(m.learned, path)
			m.changed = true
		}
	}
}

// dropChanged removes the records of files that are known to have changed since. If most of
// the records are of unknown files, it removes these records too: the files have been
// removed.
func (m *Memo) dropChanged(records map[string]Record) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	removed := len(records) > 2*m.count()
	maps.DeleteFunc(records, func(path string, d Record) bool {
		known := m.find(tree.LocationOf(path))
		if known == nil {
			return removed
		}
		return known.stamp != d.Stamp && known.stamp.Newest() >= d.Stamp.Newest() // else another instance has seen the change first
	})
}

// count returns the number of records.
func (m *Memo) count() (n int) {
	for _, f := range m.folders {
		n += len(f.records)
	}
	return n
}

// signatureMemory is how long a verified signature is remembered, since verifying all
// signatures of a large tree takes most of a restart. It is not longer, as a signature can
// have a lifetime of its own.
const signatureMemory = 24 * time.Hour

// Verify verifies a signature, or returns the result of an earlier call. The sum is of all that is
// verified. The record of the signature's file remembers the result.
func (m *Memo) Verify(file *tree.Location, of wire.SHA256, verify func() (signing.PublicKey, error), now time.Time) (signing.PublicKey, error) {
	if known := m.recent(file, of, now); known != nil {
		return known.key(), nil
	}
	m.Verified.Add(1)
	key, err := verify()
	if err != nil {
		return key, err
	}
	verified := &verifiedSignature{of: of, at: now.UnixNano(), keyID: key.ID}
	if !key.Expires.IsZero() {
		verified.expires = key.Expires.Unix()
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if r := m.find(file); r != nil && r.more != nil {
		r.more.verified, m.changed = verified, true
		return key, nil
	}
	if m.unrecorded == nil {
		m.unrecorded = make(map[string]*verifiedSignature)
	}
	m.unrecorded[file.ReportPath()] = verified
	return key, nil
}

// recent returns a verified signature that is not older than signatureMemory, or nil.
func (m *Memo) recent(file *tree.Location, of wire.SHA256, now time.Time) *verifiedSignature {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.verifiedAt(file)
	if known == nil || known.of != of {
		return nil
	}
	if age := now.Sub(time.Unix(0, known.at)); age < 0 || age > signatureMemory {
		return nil
	}
	return known
}

// verifiedAt returns the signature in a file that was verified last, or nil.
func (m *Memo) verifiedAt(file *tree.Location) *verifiedSignature {
	if r := m.find(file); r != nil && r.more != nil && r.more.verified != nil {
		return r.more.verified
	}
	if len(m.unrecorded) == 0 {
		return nil
	}
	return m.unrecorded[file.ReportPath()]
}

func (s *verifiedSignature) key() signing.PublicKey {
	key := signing.PublicKey{ID: s.keyID}
	if s.expires != 0 {
		key.Expires = time.Unix(s.expires, 0)
	}
	return key
}
