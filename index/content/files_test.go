package content

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A package may have any number of files with any number of bytes.
func TestListsAreBounded(t *testing.T) {
	for _, test := range []struct {
		rule  string
		files int
		size  int64
		want  int
		whole bool
	}{
		{"few files", 3, 10, 3, true},
		{"too many files", maxListed + 5, 1, maxListed, false},
		{"too many bytes", 4, MaxUnpacked / 2, 1, false},
		{"one endless file", 1, MaxUnpacked * 1000, 0, false},
	} {
		var r Reader
		read := int64(0)
		m := Module{Digest: wire.SHA256{1}, Walk: func(_ context.Context, wants func(string) bool, visit func(string, io.Reader) error) (bool, error) {
			for i := range test.files {
				name := fmt.Sprintf("%d.tf", i)
				if !wants(name) {
					continue
				}
				if err := visit(name, countingReader{io.LimitReader(zeros{}, test.size), &read}); err != nil {
					return false, err
				}
			}
			return true, nil
		}}
		got, err := r.ListModule(t.Context(), m)
		if err != nil || len(got.List) != test.want || got.Partial == test.whole {
			t.Errorf("%s: %d files, %v", test.rule, len(got.List), err)
		}
		if read > MaxUnpacked {
			t.Errorf("%s: %d bytes were read", test.rule, read)
		}
	}
}

// A path is listed if it lies in the module and a page could have it.
func TestPathsThatAreListed(t *testing.T) {
	for name, want := range map[string]string{
		"m/main.tf": "main.tf", "./m/a/../b.tf": "b.tf", "m/a b/ü": "a b/ü", "m/-": "-",
		"main.tf": "", "m": "", "mm/main.tf": "", "m/../../x": "", "/m/x": "", "m/\xff": "", "m/a\x00b": "", "": "", "..": "",
		"m/" + strings.Repeat("a", maxFilePath): "",
	} {
		if got := (&lister{folder: "m"}).pathOf(name); got != want {
			t.Errorf("%.40q is %q, not %q", name, got, want)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

type countingReader struct {
	io.Reader
	read *int64
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.read += int64(n)
	return n, err
}
