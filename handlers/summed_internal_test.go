package handlers

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// The bytes of a package are compared with its digest, whether they are read while they are sent or
// afterwards.
func TestBytesAreComparedWithTheDigest(t *testing.T) {
	onDisk := func(content []byte) io.ReadSeekCloser {
		name := filepath.Join(t.TempDir(), "package")
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	elsewhere := func(content []byte) io.ReadSeekCloser {
		return struct {
			io.ReadSeeker
			io.Closer
		}{bytes.NewReader(content), io.NopCloser(nil)}
	}
	for _, test := range []struct {
		rule  string
		open  func([]byte) io.ReadSeekCloser
		size  int
		while bool // it is sent
	}{
		{"a small file of the disk while it is sent", onDisk, 100, true},
		{"a large file of the disk afterwards", onDisk, maxSummed + 1, false},
		{"a large file of a bucket while it is sent", elsewhere, maxSummed + 1, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			content := bytes.Repeat([]byte{1}, test.size)
			f := &index.File{Size: int64(test.size), SHA256: sha256.Sum256(content)}
			for _, changed := range []bool{false, true} {
				if changed {
					content[50] = 2
				}
				opened := &index.OpenFile{ReadSeekCloser: test.open(content)}
				sent, unchanged := summed(&request{Request: httptest.NewRequest(http.MethodGet, "/", nil)}, &bodyWriter{status: http.StatusOK}, f, opened)
				if _, kernel := sent.(*os.File); kernel == test.while {
					t.Errorf("that the kernel sends it is %t", kernel)
				}
				for _, whence := range []int{io.SeekEnd, io.SeekStart} { // as net/http does
					if _, err := sent.Seek(0, whence); err != nil {
						t.Fatal(err)
					}
				}
				if n, err := io.Copy(io.Discard, sent); err != nil || n != f.Size {
					t.Fatalf("%d bytes are read: %v", n, err)
				}
				if err := unchanged(); errors.Is(err, errOtherBytes) != changed {
					t.Errorf("changed %t: %v", changed, err)
				}
				if err := opened.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
