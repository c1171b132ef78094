package blob

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"
)

// azureWith returns Azure Blob Storage with one object that was uploaded with an
// encoding.
func azureWith(t *testing.T, content []byte, encoding string) *Bucket {
	t.Helper()
	return azureThat(t, func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) != "object" {
			t.Errorf("asked is %s %s", r.Method, r.URL)
		}
		w.Header().Set("ETag", `"0x1"`)
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("Content-Encoding", encoding)
		w.Header().Set("X-Ms-Creation-Time", time.Unix(1, 0).UTC().Format(http.TimeFormat))
		if r.Method == http.MethodHead { // with an encoding, ServeContent leaves it out
			w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		}
		r.Header.Set("Range", r.Header.Get("X-Ms-Range"))
		http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(content))
	})
}

// azureThat returns Azure Blob Storage with these answers.
func azureThat(t *testing.T, answer http.HandlerFunc) *Bucket {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_KEY", "c2VjcmV0")
	return openBucket(t, options{url: "azblob://container?localemu=true&protocol=http&domain=" + u.Host})
}

// Some tools upload a .tar.gz with Content-Encoding: gzip. The object still has the
// bytes of the archive.
func TestAnEncodedObjectOfAzureIsNotDecoded(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprint(z, strings.Repeat("text ", 1000))
	z.Close()
	bucket := azureWith(t, b.Bytes(), "gzip")
	content, err := fs.ReadFile(bucket, "object")
	if err != nil || !bytes.Equal(content, b.Bytes()) {
		t.Errorf("%d bytes of %d, %v", len(content), b.Len(), err)
	}
	info, err := bucket.Stat("object")
	if err != nil {
		t.Fatal(err)
	}
	if got := encoding(info); got != "gzip" {
		t.Errorf("its encoding is %q", got)
	}
}

func TestReadingFromAzure(t *testing.T) {
	want := letters(3 * headSize)
	bucket := azureWith(t, []byte(want), "")
	f, err := bucket.Open("object")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if content, err := io.ReadAll(f); err != nil || string(content) != want {
		t.Errorf("%d bytes of %d, %v", len(content), len(want), err)
	}
}

// The driver panics for an answer that lacks what Azure always sends.
func TestAnIncompleteAnswerOfAzureIsAnError(t *testing.T) {
	bucket := azureThat(t, func(http.ResponseWriter, *http.Request) {})
	_, stat := bucket.Stat("dir/a")
	_, open := bucket.Open("dir/a")
	_, readdir := bucket.ReadDir("dir")
	files := bucket.Files(t.Context(), ".", func(string, fs.FileInfo) error { return nil })
	for op, err := range map[string]error{"stat": stat, "open": open, "readdir": readdir, "files": files} {
		if !errors.Is(err, errIncomplete) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", op, err)
		}
	}
}
