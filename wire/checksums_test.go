package wire_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var (
	zeros = strings.Repeat("0", 64)
	mixed = strings.Repeat("aF", 32)
)

var checksums = []struct {
	rule, document string
	names          []string // none: refused
	says           string
}{
	{"as sha256sum writes it", zeros + "  a.zip\n" + mixed + "  b.zip\n", []string{"a.zip", "b.zip"}, ""},
	{"without the last line feed", zeros + "  a.zip", []string{"a.zip"}, ""},
	{"with any white space", zeros + " \t a.zip \n", []string{"a.zip"}, ""},
	{"with lines as Windows ends them", zeros + "  a.zip\r\n" + mixed + "  b.zip\r\n", []string{"a.zip", "b.zip"}, ""},
	{"with the same line twice", zeros + "  a.zip\n" + zeros + "  a.zip\n", []string{"a.zip"}, ""},
	{"with two names of one digest", zeros + "  a.zip\n" + zeros + "  b.zip\n", []string{"a.zip", "b.zip"}, ""},

	{"nothing", "", nil, "empty"},
	{"a line feed", "\n", nil, "line 1 of SHA256SUMS is blank"},
	{"a blank line in front", "\n" + zeros + "  a.zip\n", nil, "line 1 of SHA256SUMS is blank"},
	{"a blank line between", zeros + "  a.zip\n\n" + zeros + "  b.zip\n", nil, "line 2 of SHA256SUMS is blank"},
	{"a blank line at the end", zeros + "  a.zip\n\n", nil, "line 2 of SHA256SUMS is blank"},
	{"a line of spaces", zeros + "  a.zip\n  \n", nil, "line 2 of SHA256SUMS is blank"},
	{"a carriage return at the end", zeros + "  a.zip\n\r", nil, "line 2 of SHA256SUMS is blank"},
	{"a comment", "# sums\n" + zeros + "  a.zip\n", nil, "line 1 of SHA256SUMS is a comment"},
	{"a digest alone", zeros + "\n", nil, "not a digest and a file name"},
	{"a name of two words", zeros + "  a b.zip\n", nil, "not a digest and a file name"},
	{"a digest cut short", zeros[1:] + "  a.zip\n", nil, "64 hexadecimal digits"},
	{"a digest of another kind", zeros + zeros + "  a.zip\n", nil, "64 hexadecimal digits"},
	{"no hexadecimal digits", strings.Repeat("x", 64) + "  a.zip\n", nil, "64 hexadecimal digits"},
	{"a byte order mark", "\ufeff" + zeros + "  a.zip\n", nil, "64 hexadecimal digits"},
	{"name and digest in the order of BSD", "SHA256 (a.zip) = " + zeros + "\n", nil, "not a digest"},
	{"a star for binary mode", zeros + " *a.zip\n", nil, "bare file name"},
	{"a name with its folder", zeros + "  ./a.zip\n", nil, "bare file name"},
	{"two digests of one name", zeros + "  a.zip\n" + mixed + "  a.zip\n", nil, "twice with different digests"},
	{"a line at which clients stop to read", zeros + "  " + strings.Repeat("a", bufio.MaxScanTokenSize) + "\n", nil, "bytes long"},
	{"a web page", "<html>\n<body>404 not found</body>\n</html>\n", nil, "line 1"},
}

func TestDecodeChecksums(t *testing.T) {
	for _, test := range checksums {
		t.Run(test.rule, func(t *testing.T) {
			sums, err := wire.DecodeChecksums([]byte(test.document))
			if test.names == nil {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("it is %v, %v", sums, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(sums) != len(test.names) {
				t.Errorf("it lists %d files", len(sums))
			}
			for _, name := range test.names {
				if _, listed := sums[name]; !listed {
					t.Errorf("it does not list %s", name)
				}
			}
		})
	}
}

func TestTheDocumentOfChecksums(t *testing.T) {
	sums, err := wire.DecodeChecksums([]byte(mixed + "\tb.zip\r\n" + zeros + "  a.zip"))
	if err != nil {
		t.Fatal(err)
	}
	want := zeros + "  a.zip\n" + strings.ToLower(mixed) + "  b.zip\n"
	if got := string(sums.Encode()); got != want {
		t.Errorf("it is\n%s", got)
	}
}

// clientDigest looks for the digest of a package as clients do.
func clientDigest(document []byte, name string) string {
	for _, line := range bytes.Split(document, []byte("\n")) {
		if parts := bytes.Fields(line); len(parts) > 1 && string(parts[1]) == name {
			return string(parts[0])
		}
	}
	return ""
}

// clientHashes collects the hashes for a lock file as clients do. It panics where they
// panic, and returns nothing where they find nothing.
func clientHashes(document []byte) (hashes []string) {
	lines := bufio.NewScanner(bytes.NewReader(document))
	for lines.Scan() {
		parts := bytes.Fields(lines.Bytes())
		if len(parts) == 1 {
			return nil
		}
		if len(parts[0]) != 64 {
			return nil
		}
		sum, err := hex.DecodeString(string(parts[0]))
		if err != nil {
			return nil
		}
		hashes = append(hashes, hex.EncodeToString(sum))
	}
	return hashes
}

// In an accepted document, clients find every package and keep every hash.
func FuzzDecodeChecksums(f *testing.F) {
	for _, test := range checksums {
		f.Add([]byte(test.document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		sums, err := wire.DecodeChecksums(document)
		if err != nil {
			return
		}
		for _, d := range [][]byte{document, sums.Encode()} {
			hashes := clientHashes(d)
			for name, sum := range sums {
				if !slices.Contains(hashes, sum.String()) {
					t.Errorf("clients drop the hash of %q", name)
				}
				if !strings.EqualFold(clientDigest(d, name), sum.String()) {
					t.Errorf("clients do not find %q", name)
				}
			}
		}
	})
}
