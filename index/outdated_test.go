package index_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// An outdatedModule is a module that an earlier release has remembered.
type outdatedModule struct {
	files   *indextest.Tree
	options index.Options
	known   *index.ModuleVersion // by that release
}

// eachOutdatedModule calls test with an archive and with a folder.
func eachOutdatedModule(t *testing.T, test func(t *testing.T, m outdatedModule)) {
	const text = `resource "aws_vpc" "main" {}`
	for rule, file := range map[string][2]string{
		"an archive": {"modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", text)},
		"a folder":   {"modules/acme/vpc/aws/1.0.0/main.tf", text},
	} {
		t.Run(rule, func(t *testing.T) {
			files, store := indextest.New(t), new(memoryStore)
			files.Write(file[0], file[1])
			o := options(t, files.Open)
			o.Store, o.Now = store, inAnHour
			x := index.New(o)
			known := rescan(t, x).Module(index.PlaceOf(ownVPC)).Latest()
			x.Close()
			store.memo.Content = withoutUses(t, store.memo.Content)
			test(t, outdatedModule{files, o, known})
		})
	}
}

// A module that an earlier release has remembered is offered at once, and read again, since this
// release reads more of it.
func TestModulesThatAnEarlierReleaseReadAreReadAgain(t *testing.T) {
	eachOutdatedModule(t, func(t *testing.T, m outdatedModule) {
		x := newIndex(t, m.options)
		rescanned(t, x)
		s := untilSummed(t, x)
		v := s.Module(index.PlaceOf(ownVPC)).Latest()
		if len(v.Changed) > 0 || len(s.Report().Withheld) > 0 {
			t.Errorf("it has changed: %+v, %+v", v.Changed, s.Report().Withheld)
		}
		if again := rescan(t, x); again.Module(index.PlaceOf(ownVPC)).Latest() != v {
			t.Error("it is another version although nothing has changed")
		}
	})
}

// Modules that an earlier release has remembered are offered before they have been read again.
// Modules that no release has read are read first.
func TestModulesThatAnEarlierReleaseReadAreOfferedAtOnce(t *testing.T) {
	eachOutdatedModule(t, func(t *testing.T, m outdatedModule) {
		m.files.Write("modules/acme/other/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# another\n"))
		g := holding{indextest.Gate{Fs: m.files.Fs, Opened: make(chan struct{})}, "/vpc/", make(chan string, 100)}
		m.options.Open, m.options.Workers = indextest.On(t, g).Open, 1
		r := run(t, m.options)
		open := sync.OnceFunc(func() { close(g.Opened) })
		t.Cleanup(open)
		<-r.Ready()
		s := r.Snapshot()
		v := s.Module(index.PlaceOf(ownVPC)).Latest()
		if v == nil || v.FileHashes != m.known.FileHashes || len(v.Summary().Types) > 0 || s.ListPending(index.PlaceOf(ownVPC)) {
			t.Fatalf("offered at once is %+v", s.Report().Offered)
		}
		open()
		s = untilSummed(t, r.Index)
		if v := s.Module(index.PlaceOf(ownVPC)).Latest(); v.FileHashes != m.known.FileHashes || len(v.Changed) > 0 {
			t.Errorf("read again it is %+v", v)
		}
		if first := <-g.read; !strings.Contains(first, "/other/") {
			t.Errorf("%s is read first", first)
		}
	})
}

// untilSummed waits until the latest version of a module has the summary of this release.
func untilSummed(t *testing.T, x *index.Index) *index.Snapshot {
	t.Helper()
	s := x.Snapshot()
	for len(s.Module(index.PlaceOf(ownVPC)).Latest().Summary().Types) != 1 {
		if s = x.Next(t.Context(), s); s == nil {
			t.Fatal("it is not read again")
		}
	}
	return s
}

// holding holds back the modules whose path has a text, and tells which files are read.
type holding struct {
	indextest.Gate
	path string
	read chan string
}

func (h holding) Open(name string) (afero.File, error) {
	if info, err := h.Fs.Stat(name); err == nil && info.Mode().IsRegular() {
		h.read <- name
		if strings.Contains(name, h.path) {
			<-h.Opened
		}
	}
	return h.Fs.Open(name)
}

// Titles that another release has stored are read again, and never taken for others.
func TestTitlesThatAnotherReleaseReadAreReadAgain(t *testing.T) {
	files, store := indextest.New(t), new(memoryStore)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("resources/thing.md", "# A thing", "guides/start.md", "# Start here")
	o := options(t, files.Open)
	o.Store, o.Now = store, inAnHour
	want := []string{"start Start here", "thing "}
	first := index.New(o)
	rescanned(t, first)
	untilTitles(t, first, index.PlaceOf(ownDemo), want...)
	first.Close()
	store.memo.Content = altered(t, store.memo.Content, "\x04g\x05start", "\x01\x01\x05start")

	second := newIndex(t, o)
	rescanned(t, second)
	untilTitles(t, second, index.PlaceOf(ownDemo), want...)
}

// withoutUses returns a memo with one module whose summary is in the first format. An unknown
// format is no better.
func withoutUses(t *testing.T, encoded []byte) []byte {
	t.Helper()
	return altered(t, encoded, "\xff\xff\x7f2", "\xff\xff\x7f1")
}

// altered returns a memo with another text of the same length in place of one.
func altered(t *testing.T, encoded []byte, text, other string) []byte {
	t.Helper()
	m := bytes.Clone(encoded)
	at := bytes.Index(m, []byte(text))
	if at < 0 {
		t.Fatalf("the memo has no %q", text)
	}
	copy(m[at:], other)
	body := m[:len(m)-crc32.Size]
	return binary.BigEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}
