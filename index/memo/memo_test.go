package memo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var long = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// someMemo returns a memo with these digests and one of two signatures verified.
func someMemo() *Memo {
	m := new(Memo)
	for path, d := range someDigests {
		m.Adopt(tree.LocationOf(path), d)
	}
	m.find(tree.LocationOf("providers/acme/demo/SHA256SUMS.sig")).more.verified = &someSignature
	m.StartLearning()
	m.learned["providers/acme/demo/a.zip"] = true
	return m
}

var someDigests = map[string]Record{
	"providers/acme/demo/a.zip": {
		Stamp:  tree.Stamp{Size: 123, ModTime: long.UnixNano(), Inode: 7, Changed: long.UnixNano() + 1},
		Digest: archive.Digest{SHA256: wire.SHA256Of([]byte("a")), FileHashes: "h1:abc=", Size: 123},
	},
	"modules/acme/vpc/aws/1.0.0": {
		Stamp:  tree.Stamp{Size: 45, ModTime: -1, Files: "files"},
		Digest: archive.Digest{SHA256: wire.SHA256Of([]byte("b")), Size: 2048, Checksum: 0xdeadbeef},
	},
	"providers/acme/demo/SHA256SUMS": {
		Stamp: tree.Stamp{Size: 3, ModTime: long.UnixNano()}, Digest: archive.Digest{Content: []byte("abc")},
	},
	"providers/acme/demo/SHA256SUMS.sig": {
		Stamp: tree.Stamp{Size: 3, ModTime: long.UnixNano()}, Digest: archive.Digest{Content: []byte("def")},
	},
	"providers/acme/demo/broken.zip": {
		Stamp: tree.Stamp{Size: 1}, Digest: archive.Digest{Bad: tree.Findingf(tree.BadArchive, "copy it again")},
	},
}

var someSignature = verifiedSignature{of: wire.SHA256Of([]byte("it")), at: long.UnixNano(), keyID: "FEDCBA9876543210", expires: long.Unix()}

func sameDigest(a, b Record) bool {
	sameFinding := a.Bad == b.Bad || a.Bad != nil && b.Bad != nil && *a.Bad == *b.Bad
	return sameFinding && a.Stamp == b.Stamp && a.SHA256 == b.SHA256 && a.FileHashes == b.FileHashes && a.Size == b.Size &&
		a.Checksum == b.Checksum && bytes.Equal(a.Content, b.Content)
}

func TestMemoFile(t *testing.T) {
	content := someMemo().Encode("a tree")

	t.Run("what is written is read again", func(t *testing.T) {
		var m Memo
		if err := m.Decode(content, "a tree"); err != nil {
			t.Fatal(err)
		}
		if n := m.count(); n != len(someDigests) {
			t.Errorf("%d records are read", n)
		}
		for path, want := range someDigests {
			if got, ok := m.Get(tree.LocationOf(path), want.Stamp); !ok || !sameDigest(got, want) {
				t.Errorf("of %s it has %+v", path, got)
			}
		}
		if got := m.verifiedAt(tree.LocationOf("providers/acme/demo/SHA256SUMS.sig")); got == nil || *got != someSignature {
			t.Errorf("of the signature it has %+v", got)
		}
	})
	t.Run("what has not been shared is not forgotten", func(t *testing.T) {
		var m Memo
		if err := m.Decode(content, "a tree"); err != nil {
			t.Fatal(err)
		}
		m.StartLearning()
		if learned := m.unshared(); len(learned) != 1 || learned["providers/acme/demo/a.zip"].FileHashes != "h1:abc=" {
			t.Errorf("it is %v", learned)
		}
	})
	t.Run("nor what is saved while it is shared in vain", func(t *testing.T) {
		m := someMemo()
		m.unshared()
		var after Memo
		if err := after.Decode(m.Encode("a tree"), "a tree"); err != nil || len(after.learned) != 1 {
			t.Errorf("it is %v, %v", after.learned, err)
		}
		if m.reportShared(m.unshared()); len(m.learned) > 0 {
			t.Errorf("what has been shared is %v", m.learned)
		}
	})
	t.Run("but that of a file that is gone", func(t *testing.T) {
		m := someMemo()
		m.Begin(long)
		m.Finish(time.Now())
		m.Begin(long.Add(memoLife))
		if m.Finish(time.Now()); len(m.learned) > 0 {
			t.Errorf("it is %v", m.learned)
		}
	})
	t.Run("the same memo has the same bytes", func(t *testing.T) {
		if !bytes.Equal(content, someMemo().Encode("a tree")) {
			t.Error("they differ")
		}
	})
	t.Run("as in every release with this version of the format", func(t *testing.T) {
		const path, known = "providers/acme/demo/a.zip", "7 7ca28b62bbd8c916c50115e7924eb233cde2b58de886d20f51508f0d6ca9e236"
		m, changed := someMemo(), someDigests[path]
		changed.Earlier = &EarlierBytes{H1: "h1:before=", Noticed: 5}
		m.Adopt(tree.LocationOf(path), changed)
		if now := memoVersion + " " + wire.SHA256Of(m.Encode("a tree")).String(); now != known {
			t.Errorf("it is %s: other bytes need another version", now)
		}
	})
	t.Run("also if it was read, and not needed", func(t *testing.T) {
		var m Memo
		if err := m.Decode(content, "a tree"); err != nil || !bytes.Equal(content, m.Encode("a tree")) {
			t.Errorf("they differ, or %v", err)
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
			var m Memo
			if err := m.Decode(test.content, test.identity); !errors.Is(err, test.want) {
				t.Errorf("the error is %v", err)
			}
			if m.folders != nil {
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

// memoFile is a Store.
type memoFile []byte

type opened struct{ *bytes.Reader }

func (opened) Close() error { return nil }

func (f *memoFile) Open() (io.ReadSeekCloser, error) { return opened{bytes.NewReader(*f)}, nil }

func (f *memoFile) Save(write func(io.Writer) error) error {
	var b bytes.Buffer
	err := write(&b)
	*f = b.Bytes()
	return err
}

// A failing is a memo file of which one operation fails.
type failing struct {
	*bytes.Reader
	left int // operations before it
}

func checksumOf(content []byte) uint32 { return crc32.Checksum(content, castagnoli) }

var errDisk = errors.New("input/output error")

func (f *failing) Read(b []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errDisk
	}
	return f.Reader.Read(b)
}

func (f *failing) Seek(offset int64, whence int) (int64, error) {
	if f.left--; f.left < 0 {
		return 0, errDisk
	}
	return f.Reader.Seek(offset, whence)
}

// A memo file that cannot be read is not called damaged, and nothing of it is used.
func TestMemoFileThatCannotBeRead(t *testing.T) {
	content := someMemo().Encode("a tree")
	for n := 0; ; n++ {
		var m Memo
		file := &failing{bytes.NewReader(content), n}
		err := m.read(file, "a tree")
		if err == nil {
			if n < 6 || m.count() == 0 {
				t.Errorf("it is read with %d operations: %d records", n, m.count())
			}
			return
		}
		if !errors.Is(err, errDisk) || m.folders != nil {
			t.Errorf("when operation %d fails, the error is %v", n, err)
		}
	}
}

// A memo is written while scans go on: it has each record as it was before or afterwards.
func TestRecordsChangeWhileAMemoIsWritten(t *testing.T) {
	m, file := someMemo(), new(memoFile)
	const added = "providers/acme/added/a.zip"
	if err := file.Save(func(w io.Writer) error {
		return m.write(writer(func(b []byte) (int, error) {
			m.Keep(tree.LocationOf(added), Record{})
			m.Drop(tree.LocationOf("providers/acme/demo/a.zip"))
			return w.Write(b)
		}), "a tree")
	}); err != nil {
		t.Fatal(err)
	}
	var again Memo
	if err := again.Load(file, "a tree"); err != nil || again.count() < len(someDigests)-1 {
		t.Errorf("%d records, %v", again.count(), err)
	}
}

type writer func(b []byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// Whoever goes back to another release before anything has changed loses nothing.
func TestMemoFileOfAnotherFormat(t *testing.T) {
	const newer = "caddy-terraform-registry memo 1000\n"
	file, m := memoFile(newer), new(Memo)
	if err := m.Load(&file, "a tree"); !errors.Is(err, errMemoForeign) {
		t.Errorf("the error is %v", err)
	}
	for _, test := range []struct {
		rule  string
		do    func()
		saved bool
	}{
		{"is not replaced by nothing", func() {}, false},
		{"but by what has been read since", func() { m.Keep(tree.LocationOf("modules/acme/vpc/aws/1.0.0.zip"), Record{}) }, true},
	} {
		test.do()
		if saved, err := m.save(&file, "a tree"); saved != test.saved || err != nil || (string(file) != newer) != saved {
			t.Errorf("it %s: %v, %v", test.rule, saved, err)
		}
	}
}

// A memo that is whole but nonsense must be refused, and a folder whose records are nonsense
// must have no records.
func FuzzMemoFile(f *testing.F) {
	f.Add(someMemo().Encode("a tree")[len(memoFormat):])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, folders []byte) {
		body := append([]byte(memoFormat), folders...)
		var m Memo
		if err := m.Decode(binary.BigEndian.AppendUint32(body, checksumOf(body)), "a tree"); err != nil && m.folders != nil {
			t.Error("some of it is used")
		}
		known := m.count()
		var again Memo
		if err := again.Decode(m.Encode("a tree"), "a tree"); err != nil || again.count() != known {
			t.Errorf("%d records are encoded as %d, %v", known, again.count(), err)
		}
	})
}

func FuzzFolderRecords(f *testing.F) {
	for _, records := range someMemo().folders {
		f.Add(records.append(nil))
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		records := folderRecords{records: decodeFolder(encoded)}
		for _, r := range records.records {
			if records.find(r.name) == nil {
				t.Errorf("%q is not found", r.name)
			}
		}
	})
}

// A record is kept until scans have not found its file for a day.
func TestMemoForgets(t *testing.T) {
	const kept, gone = "providers/acme/demo/a.zip", "providers/acme/demo/broken.zip"
	const hour = time.Hour
	m := someMemo()
	m.changed = false
	finds := func(paths ...string) func() {
		return func() {
			for _, path := range paths {
				m.Get(tree.LocationOf(path), someDigests[path].Stamp)
			}
			m.Finish(time.Now())
		}
	}
	unchanged := func() { // the folder has not changed since the walk before
		m.Retain(ListedFolders{{report: "providers/acme/demo"}})
		m.Finish(time.Now())
	}
	for _, test := range []struct {
		rule    string
		after   time.Duration // since the first scan
		scan    func()
		known   int
		changed bool
	}{
		{"nothing when a scan is broken off", 0, func() {}, len(someDigests), false},
		{"nothing at the first scan that misses it", 1 * hour, finds(kept, gone), 5, false},
		{"what was missed then, and nothing that is missed now, however long ago the last scan was", 100 * hour, finds(kept), 2, true},
		{"nothing that is gone for less than a day", 123 * hour, unchanged, 2, false},
		{"what is gone for a day, also where nothing has changed since", 125 * hour, unchanged, 1, true},
		{"nothing more", 150 * hour, finds(kept), 1, false},
		{"nothing of a file that is there again", 151 * hour, func() {
			m.Adopt(tree.LocationOf(gone), someDigests[gone])
			finds(kept)()
		}, 2, true},
		{"nothing at the first scan that misses it again", 152 * hour, finds(kept), 2, false},
		{"nothing when a scan finds it that is broken off", 160 * hour, func() { m.Get(tree.LocationOf(gone), someDigests[gone].Stamp) }, 2, false},
		{"nothing that was found since it was missed", 177 * hour, finds(kept), 2, false},
		{"what is gone for a day since then", 201 * hour, finds(kept), 1, true},
		{"nothing of a folder that cannot be read", 250 * hour, func() {
			m.RetainBelow("providers/acme")
			m.Finish(time.Now())
		}, 1, false},
		{"nothing of a folder that is gone, at first", 300 * hour, finds(), 1, false},
		{"nothing of a folder that is there again", 301 * hour, finds(kept), 1, false},
		{"nothing of an unchanged folder in which a file is read", 310 * hour, func() {
			m.Adopt(tree.LocationOf(gone), someDigests[gone])
			unchanged()
		}, 2, true},
		{"nothing of it a day later", 340 * hour, unchanged, 2, false},
		{"nothing of a folder that is gone again, at first", 400 * hour, finds(), 2, false},
		{"the last of a folder, and the folder", 425 * hour, finds(), 0, true},
	} {
		m.Begin(long.Add(test.after))
		if test.scan(); m.count() != test.known || m.changed != test.changed {
			t.Errorf("%s: it has %d records, changed: %v", test.rule, m.count(), m.changed)
		}
		m.changed = false
	}
	if len(m.folders) > 0 {
		t.Errorf("it has folders: %v", m.folders)
	}
}

// A registry.hcl that was removed withdraws nothing, however broken the next one is.
func TestMemoDrops(t *testing.T) {
	m := someMemo()
	m.Begin(long)
	m.Drop(tree.LocationOf("providers/acme/demo/a.zip"))
	m.Drop(tree.LocationOf("providers/acme/other/registry.hcl"))
	if _, known := m.Document(tree.LocationOf("providers/acme/demo/a.zip")); known || m.count() != len(someDigests)-1 {
		t.Errorf("it has %d records", m.count())
	}
}

func TestSettled(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC)
	before := func(ago time.Duration) int64 { return now.Add(-ago).UnixNano() }
	for _, test := range []struct {
		rule  string
		stamp tree.Stamp
		want  bool
	}{
		{"a file changed just now may change again unnoticed", tree.Stamp{ModTime: before(time.Millisecond)}, false},
		{"fine times tell changes apart soon", tree.Stamp{ModTime: before(51 * time.Millisecond)}, true},
		{"whole seconds may stand for two of them", tree.Stamp{ModTime: now.Truncate(time.Second).Add(-time.Second).UnixNano()}, false},
		{"but not for more", tree.Stamp{ModTime: now.Truncate(time.Second).Add(-2 * time.Second).UnixNano()}, true},
		{"an old time that was just set is not an old content", tree.Stamp{ModTime: before(time.Hour), Changed: before(time.Millisecond)}, false},
		{"a file server's clock may be ahead", tree.Stamp{ModTime: before(-20 * time.Millisecond)}, false},
		{"but not by hours: such a time says nothing of the age", tree.Stamp{ModTime: before(-time.Hour)}, true},
	} {
		if got := test.stamp.Settled(now); got != test.want {
			t.Errorf("%s: %v", test.rule, got)
		}
	}
}

// BenchmarkStart measures what the memo adds to a warm start of 100,000 packages: reading its
// file, and a scan that finds every file unchanged.
func BenchmarkStart(b *testing.B) {
	const folders, files = 1000, 100
	var m Memo
	var paths []string
	stamp := tree.Stamp{Size: 1e6, ModTime: long.UnixNano(), Inode: 1 << 40, Changed: long.UnixNano()}
	for i := range folders {
		for j := range files {
			path := fmt.Sprintf("mirrors/registry.terraform.io/acme/demo%d/terraform-provider-demo%d_%d.0.0_linux_amd64.zip", i, i, j)
			paths = append(paths, path)
			m.Adopt(tree.LocationOf(path), Record{Stamp: stamp, Digest: archive.Digest{SHA256: wire.SHA256Of([]byte(path)), FileHashes: "h1:0123456789012345678901234567890123456789012=", Size: stamp.Size}})
		}
	}
	content := m.Encode("a tree")
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		var m Memo
		if err := m.Decode(content, "a tree"); err != nil {
			b.Fatal(err)
		}
		m.Begin(long.Add(time.Hour))
		for _, path := range paths {
			if _, ok := m.Get(tree.LocationOf(path), stamp); !ok {
				b.Fatal(path)
			}
		}
	}
}
