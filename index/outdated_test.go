package index_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// What an earlier release has remembered of a module is offered at once, and read again, since
// this release reads more of it.
func TestModulesThatAnEarlierReleaseReadAreReadAgain(t *testing.T) {
	for _, test := range []struct {
		rule, path string
		folder     bool
	}{
		{"an archive", "modules/acme/vpc/aws/1.0.0.tar.gz", false},
		{"a folder", "modules/acme/vpc/aws/1.0.0/main.tf", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files, store := indextest.New(t), new(memoryStore)
			const text = `resource "aws_vpc" "main" {}`
			content := text
			if !test.folder {
				content = indextest.TarGz("main.tf", text)
			}
			files.Write(test.path, content)
			o := options(t, files.Open)
			o.Store, o.Now = store, inAnHour
			first := index.New(o)
			rescan(t, first)
			first.Close()
			store.memo = withoutUses(t, store.memo)

			second := index.New(o)
			defer second.Close()
			s := rescan(t, second)
			v := s.Module(index.PlaceOf(ownVPC)).Latest()
			if types := v.Summary().Types; s.Read != 1 || len(types) != 1 {
				t.Errorf("%d archives are read again, and the types are %q", s.Read, types)
			}
			if len(v.Changed) > 0 || len(s.Report().Withheld) > 0 {
				t.Errorf("it has changed: %+v, %+v", v.Changed, s.Report().Withheld)
			}
			if s = rescan(t, second); s.Read != 0 {
				t.Error("it is read a third time")
			}
		})
	}
}

// withoutUses returns a memo with one module whose summary is in the first format.
func withoutUses(t *testing.T, encoded []byte) []byte {
	t.Helper()
	m := bytes.Clone(encoded)
	at := bytes.Index(m, []byte("\xff\xff\x7f2"))
	if at < 0 {
		t.Fatal("the memo has no summary")
	}
	m[at+3] = '1' // an unknown format is no better than the first one
	body := m[:len(m)-crc32.Size]
	return binary.BigEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}
