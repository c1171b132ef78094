package tlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// A reader of logs that shares no code with the package: it knows the formats of C2SP and RFC
// 6962 only.

// entriesOf reads the entries of a log, from full bundles and from the batches that follow
// them.
func entriesOf(t *testing.T, files map[string][]byte) (entries []string) {
	t.Helper()
	for n := 0; ; n++ {
		content, ok := files["tile/entries/"+number(n)]
		if !ok {
			break
		}
		bundle := split(t, content)
		if len(bundle) != 256 {
			t.Fatalf("bundle %d has %d entries", n, len(bundle))
		}
		entries = append(entries, bundle...)
	}
	full := len(entries)
	// A batch that begins in a full bundle must agree with it.
	for first := max(0, full-20_000); first <= len(entries); first++ {
		content, ok := files["batch/"+strconv.Itoa(first)]
		if !ok {
			continue
		}
		batch := split(t, content)
		if first < full && entries[first] != batch[0] {
			continue
		}
		for i, e := range batch {
			switch {
			case first+i == len(entries):
				entries = append(entries, e)
			case entries[first+i] != e:
				t.Fatalf("the batch at %d contradicts entry %d", first, first+i)
			}
		}
	}
	return entries
}

func split(t *testing.T, b []byte) (entries []string) {
	t.Helper()
	for len(b) > 0 {
		n := int(binary.BigEndian.Uint16(b))
		entries, b = append(entries, string(b[2:2+n])), b[2+n:]
	}
	return entries
}

func number(n int) string {
	s := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		s = fmt.Sprintf("x%03d/%s", n%1000, s)
	}
	return s
}

// merkle returns the root of RFC 6962, 2.1.
func merkle(hashes [][]byte) []byte {
	switch len(hashes) {
	case 0:
		sum := sha256.Sum256(nil)
		return sum[:]
	case 1:
		return hashes[0]
	}
	k := 1
	for k*2 < len(hashes) {
		k *= 2
	}
	sum := sha256.Sum256(append(append([]byte{1}, merkle(hashes[:k])...), merkle(hashes[k:])...))
	return sum[:]
}

func leafHashes(entries []string) (hashes [][]byte) {
	for _, e := range entries {
		sum := sha256.Sum256(append([]byte{0}, e...))
		hashes = append(hashes, sum[:])
	}
	return hashes
}

// checkMemory checks that all files and checkpoints of a log agree, and returns its entries.
func checkMemory(t *testing.T, m *memory) []string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	entries := entriesOf(t, m.files)
	hashes := leafHashes(entries)
	for name, content := range m.files {
		if level, rest, ok := strings.Cut(strings.TrimPrefix(name, "tile/"), "/"); ok && strings.HasPrefix(name, "tile/") && level != "entries" {
			l, _ := strconv.Atoi(level)
			n, err := strconv.Atoi(strings.NewReplacer("x", "", "/", "").Replace(rest))
			if err != nil || len(content) != 256*32 {
				t.Fatalf("%s has %d bytes", name, len(content))
			}
			span := 1 << (8 * l)
			for i := range 256 {
				from := (n*256 + i) * span
				if from+span > len(hashes) || !bytes.Equal(content[i*32:(i+1)*32], merkle(hashes[from:from+span])) {
					t.Fatalf("%s has a wrong hash %d", name, i)
				}
			}
		}
	}
	roots := make(map[int]string)
	for _, signed := range m.signed {
		lines := strings.Split(string(signed), "\n")
		size, err := strconv.Atoi(lines[1])
		if err != nil || len(lines) < 5 || lines[3] != "" || !strings.HasPrefix(lines[4], "— ") {
			t.Fatalf("checkpoint %q", signed)
		}
		if size > len(entries) {
			t.Fatalf("a checkpoint of %d entries was signed, and %d are stored", size, len(entries))
		}
		if roots[size] == "" {
			roots[size] = base64.StdEncoding.EncodeToString(merkle(hashes[:size]))
		}
		if roots[size] != lines[2] {
			t.Fatalf("the checkpoint of %d entries has another root", size)
		}
	}
	return entries
}
