package memo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Segments come from a storage that others can write to.
func FuzzDecodeSegment(f *testing.F) {
	for segment := range encodeSegments(someDigests) {
		f.Add(segment[len(memoFormat) : len(segment)-4])
	}
	f.Add(someMemo().Encode("")[len(memoFormat):])
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, folders []byte) {
		body := append([]byte(memoFormat), folders...)
		segment := binary.BigEndian.AppendUint32(body, checksumOf(body))
		decoded, err := decodeSegment(segmentName(segment), segment)
		if err != nil && decoded != nil {
			t.Error("a segment that is refused has records")
		}
		again := make(map[string]Record)
		for s := range encodeSegments(decoded) {
			records, err := decodeSegment(segmentName(s), s)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(again, records)
		}
		if !maps.EqualFunc(again, decoded, sameDigest) {
			t.Errorf("%v are encoded as %v", decoded, again)
		}
	})
}

func TestSegmentsKeepRecords(t *testing.T) {
	digest := func(content []byte) Record {
		return Record{Stamp: tree.Stamp{Size: 1, Files: "files"}, Digest: archive.Digest{SHA256: wire.SHA256Of(content), FileHashes: "h1:abc=", Content: content}}
	}
	many := make(map[string]Record)
	for i := range 10_000 {
		many[tree.InFolder("providers/acme/"+string(rune('a'+i%7)), wire.SHA256Of([]byte{byte(i), byte(i >> 8)}).String())] = digest([]byte{byte(i)})
	}
	for _, test := range []struct {
		rule             string
		records          map[string]Record
		segments         int
		smallest, larger int
	}{
		{"nothing makes no segment", nil, 0, 0, 0},
		{"all kinds of records are kept", someDigests, 1, 0, 0},
		{"a large record has a segment of its own", map[string]Record{"a": digest(nil), "b": digest(make([]byte, 2*maxSegment)), "c": digest(nil)}, 3, 0, 1},
		{"many records fill segments well", many, 5, maxSegment * 15 / 16, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			decoded, larger := make(map[string]Record), 0
			var sizes []int
			for s := range encodeSegments(test.records) {
				records, err := decodeSegment(segmentName(s), s)
				if err != nil {
					t.Fatal(err)
				}
				maps.Copy(decoded, records)
				if sizes = append(sizes, len(s)); len(s) > maxSegment {
					larger++
				}
			}
			if !maps.EqualFunc(test.records, decoded, sameDigest) {
				t.Errorf("%d records come back as %d others", len(test.records), len(decoded))
			}
			if len(sizes) != test.segments || larger != test.larger {
				t.Errorf("the segments have %v bytes", sizes)
			}
			for _, size := range sizes[:max(0, len(sizes)-1)] {
				if size < test.smallest {
					t.Errorf("one of %d segments has only %d bytes", len(sizes), size)
				}
			}
		})
	}
}

func TestWhatSegmentsDoNotHave(t *testing.T) {
	const key, archived, signature = "keys/acme.asc", "providers/acme/demo/a.zip", "providers/acme/demo/SHA256SUMS.sig"
	m := someMemo()
	m.Adopt(tree.LocationOf(key), Record{})
	changed := someDigests[archived]
	changed.Earlier = &EarlierBytes{H1: "h1:before="}
	m.Adopt(tree.LocationOf(archived), changed)
	m.learned[signature] = true

	written := slices.Concat(slices.Collect(encodeSegments(m.unshared()))...)
	for _, test := range []struct{ rule, text string }{
		{"earlier bytes, which each instance notices itself", "h1:before="},
		{"verified signatures, which each instance verifies itself", someSignature.keyID},
	} {
		if bytes.Contains(written, []byte(test.text)) {
			t.Errorf("they have %s", test.rule)
		}
	}
	foreign := m.Encode("") // has all of it
	records, err := decodeSegment(segmentName(foreign), foreign)
	if err != nil || len(records) != len(someDigests) || records[archived].Earlier != nil {
		t.Errorf("from another's are taken %v, %v", records, err)
	}
	if _, taken := records[key]; taken {
		t.Error("keys are taken from another's")
	}
}

func TestSegmentsThatAreOfNoUse(t *testing.T) {
	segment := slices.Collect(encodeSegments(someDigests))[0]
	name := segmentName(segment)
	for _, test := range []struct {
		rule, name string
		segment    []byte
		want       error
	}{
		{"nothing", name, nil, errMemoForeign},
		{"of an earlier format", name, append([]byte("caddy-terraform-registry digests 3\n"), segment...), errMemoForeign},
		{"of a tree", name, someMemo().Encode("a tree"), errMemoForeign},
		{"under another name", "another", segment, errMemoDamaged},
		{"cut short by one byte", name, segment[:len(segment)-1], errMemoDamaged},
		{"one bit turned", name, turnBit(segment, len(segment)/2), errMemoDamaged},
	} {
		if records, err := decodeSegment(test.name, test.segment); !errors.Is(err, test.want) || records != nil {
			t.Errorf("%s: %v, %v", test.rule, records, err)
		}
	}
}
