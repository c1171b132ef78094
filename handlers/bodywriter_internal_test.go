package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A writesRecorder records the sizes of writes. Like Caddy's writers, it implements
// io.ReaderFrom.
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
		{"HTTP/1.1 uses ReadFrom, but for the end", 1, "", []int{64 << 10}, 1},
		{"HTTP/2 gets large writes", 2, "", []int{64 << 10, 32 << 10, 64 << 10}, 0},
		{"so does HTTP/3", 3, "", []int{64 << 10, 32 << 10, 64 << 10}, 0},
		{"so does a range", 2, "bytes=0-99999", []int{100_000 - 64<<10, 64 << 10}, 0},
		{"what is no longer than the end is written at once", 1, "bytes=0-999", []int{1000}, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.ProtoMajor = test.proto
			want := content
			if test.ranged != "" {
				r.Header.Set("Range", test.ranged)
				var last int
				fmt.Sscanf(test.ranged, "bytes=0-%d", &last)
				want = content[:last+1]
			}
			w := &writesRecorder{ResponseRecorder: httptest.NewRecorder()}
			// Without WriteTo, which a bytes.Reader has and a file does not.
			file := struct{ io.ReadSeeker }{bytes.NewReader(content)}
			w.Header().Set("Content-Type", "application/zip")
			http.ServeContent(&bodyWriter{ResponseWriter: w, proto: test.proto}, r, "", time.Time{}, file)
			if !slices.Equal(w.writes, test.wantWrites) || w.reads != test.wantReads {
				t.Errorf("written in %v, read %d times, want %v and %d", w.writes, w.reads, test.wantWrites, test.wantReads)
			}
			if got := w.Body.String(); got != string(want) {
				t.Errorf("got %d bytes that differ", len(got))
			}
		})
	}
}

// A heldDownload is a client that takes nothing until it is released.
type heldDownload struct {
	http.ResponseWriter
	begun    *sync.WaitGroup
	released chan struct{}
}

func (w heldDownload) ReadFrom(r io.Reader) (int64, error) {
	w.begun.Done()
	<-w.released
	return io.Copy(io.Discard, r)
}

// Hundreds of clients download at once, some of them slowly. The connection has a buffer for
// each of them, which is enough.
func TestADownloadOverHTTP1HoldsNoBuffer(t *testing.T) {
	const downloads = 100
	content := make([]byte, 2*bodySize)
	var begun, done sync.WaitGroup
	released := make(chan struct{})
	var before, during runtime.MemStats
	runtime.ReadMemStats(&before)
	begun.Add(downloads)
	for range downloads {
		done.Go(func() {
			w := &bodyWriter{ResponseWriter: heldDownload{httptest.NewRecorder(), &begun, released}, proto: 1}
			if _, err := w.ReadFrom(io.LimitReader(bytes.NewReader(content), int64(len(content)))); err != nil {
				t.Error(err)
			}
		})
	}
	begun.Wait()
	runtime.ReadMemStats(&during)
	close(released)
	done.Wait()
	if each := (during.TotalAlloc - before.TotalAlloc) / downloads; each > bodySize/4 {
		t.Errorf("each download has allocated %d bytes", each)
	}
}

// A failing file is not taken for a client that has gone, however it was sent.
func TestLeftBy(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	byNetwork := func(err error) error { return &net.OpError{Op: "readfrom", Net: "tcp", Err: err} }
	for _, test := range []struct {
		rule string
		ctx  context.Context
		err  error
		left bool
	}{
		{"the connection is reset", t.Context(), byNetwork(os.NewSyscallError("sendfile", syscall.ECONNRESET)), true},
		{"the request is canceled", gone, errors.New("closed"), true},
		{"something else fails", t.Context(), errors.New("closed"), false},
		{"the file changes", t.Context(), tree.ErrChanged, false},
		{"the file changes while the connection reads it", t.Context(), byNetwork(tree.ErrChanged), false},
		{"the file cannot be read by the connection", t.Context(), byNetwork(&fs.PathError{Op: "read", Path: "a", Err: syscall.EIO}), false},
		{"the connection to the store is reset", t.Context(), fmt.Errorf("%w: %w", tree.ErrStore, byNetwork(syscall.ECONNRESET)), false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(test.ctx)
		if left := leftBy(r, test.err); left != test.left {
			t.Errorf("%s: %t", test.rule, left)
		}
	}
}
