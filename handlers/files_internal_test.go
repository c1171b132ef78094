package handlers

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// A writesRecorder notes how it is written to. It can read by itself, as Caddy's
// writers can.
type writesRecorder struct {
	*httptest.ResponseRecorder
	writes []int
	reads  int
}

func (w *writesRecorder) Write(p []byte) (int, error) {
	w.writes = append(w.writes, len(p))
	return w.ResponseRecorder.Write(p)
}

func (w *writesRecorder) ReadFrom(r io.Reader) (int64, error) {
	w.reads++
	return io.Copy(w.ResponseRecorder, r)
}

func TestBodyWriter(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 10<<10) // 160 KiB
	for _, test := range []struct {
		rule       string
		proto      int
		ranged     string
		wantWrites []int
		wantReads  int
	}{
		{"HTTP/1.1 reads by itself", 1, "", nil, 1},
		{"HTTP/2 is written to in large pieces", 2, "", []int{64 << 10, 64 << 10, 32 << 10}, 0},
		{"HTTP/3 as well", 3, "", []int{64 << 10, 64 << 10, 32 << 10}, 0},
		{"a range too", 2, "bytes=0-99999", []int{64 << 10, 100_000 - 64<<10}, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.ProtoMajor = test.proto
			want := content
			if test.ranged != "" {
				r.Header.Set("Range", test.ranged)
				want = content[:100_000]
			}
			w := &writesRecorder{ResponseRecorder: httptest.NewRecorder()}
			// A file does not copy itself, as a bytes.Reader would.
			file := struct{ io.ReadSeeker }{bytes.NewReader(content)}
			w.Header().Set("Content-Type", "application/zip")
			http.ServeContent(bodyWriter(w, r), r, "", time.Time{}, file)
			if !slices.Equal(w.writes, test.wantWrites) || w.reads != test.wantReads {
				t.Errorf("written in %v, read %d times, want %v and %d", w.writes, w.reads, test.wantWrites, test.wantReads)
			}
			if got := w.Body.String(); got != string(want) {
				t.Errorf("got %d other bytes", len(got))
			}
		})
	}
}
