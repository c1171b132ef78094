package handlers

import (
	"io"
	"net/http"
	"sync"
)

// bodySize is how much of a body is written at once. Caddy passes on as much,
// unless its max_write_chunk says otherwise.
const bodySize = 64 << 10

var bodyBuffers = sync.Pool{New: func() any { return new([bodySize]byte) }}

// bodyWriter is the writer for the bytes of a file. Over HTTP/2 and HTTP/3 each
// write goes from goroutine to goroutine, and Caddy copies each of its chunks
// with a new buffer: large writes from a buffer that is used again cost a third
// less. HTTP/1.1 has buffers of its own, or needs none where it has sendfile.
func bodyWriter(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if r.ProtoMajor < 2 {
		return w
	}
	return largeWriter{w}
}

type largeWriter struct{ http.ResponseWriter }

// ReadFrom is what io.Copy calls.
func (w largeWriter) ReadFrom(r io.Reader) (int64, error) {
	buffer := bodyBuffers.Get().(*[bodySize]byte)
	defer bodyBuffers.Put(buffer)
	// Not the writer's own ReadFrom.
	return io.CopyBuffer(struct{ io.Writer }{w.ResponseWriter}, r, buffer[:])
}

// Unwrap is for http.ResponseController.
func (w largeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
