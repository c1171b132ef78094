package handlers

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers/mapping"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// bodySize is how much of a body is written at once. Caddy passes on as much, unless
// its max_write_chunk differs.
const bodySize = 64 << 10

var bodyBuffers = sync.Pool{New: func() any { return new([bodySize]byte) }}

// A bodyWriter writes the bytes of a file. It keeps back the last bytes until it has
// looked at the file again. If a file is rewritten in place while a slow client
// downloads it, the client must not get a whole file with the beginning of one content
// and the end of another.
//
// Bytes that the kernel has taken by sendfile and not sent yet still belong to the
// file, and change with the file after that look. Nothing in this process can see it.
type bodyWriter struct {
	http.ResponseWriter
	proto     int            // the major version of HTTP
	mapped    *mapping.Files // shares mappings with other downloads; nil: files are read
	unchanged func() error   // called after the last read; nil: no byte is read
	failed    error          // why the body is too short

	// What was answered. Other handlers around this one change the header when it is sent.
	status       int
	length       int64  // Content-Length; zero if there is none
	contentRange string // Content-Range
}

// WriteHeader notes what is answered, and passes it on.
func (w *bodyWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK { // a status below announces another one
		h := w.Header()
		w.status, w.contentRange = status, h.Get("Content-Range")
		w.length, _ = strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	}
	w.ResponseWriter.WriteHeader(status)
}

// hasEnd reports whether the answer ends with the last byte of the file.
func (w *bodyWriter) hasEnd() bool {
	if w.status != http.StatusPartialContent {
		return w.status == http.StatusOK
	}
	sent, size, ok := strings.Cut(w.contentRange, "/")
	_, last, _ := strings.Cut(sent, "-")
	n, err := strconv.ParseInt(last, 10, 64)
	return ok && err == nil && strconv.FormatInt(n+1, 10) == size
}

// hasAll reports whether the answer has all bytes of the file.
func (w *bodyWriter) hasAll() bool {
	return w.hasEnd() && (w.status == http.StatusOK || strings.HasPrefix(w.contentRange, "bytes 0-"))
}

// ReadFrom sends a part of a file. http.ServeContent calls it.
func (w *bodyWriter) ReadFrom(from io.Reader) (n int64, err error) {
	defer func() { w.failed = err }()
	content, ok := from.(*io.LimitedReader)
	if !ok {
		return 0, errUnlimited
	}
	rest := min(content.N, bodySize)
	if first := content.N - rest; first > 0 {
		if n, err = w.send(content.R, first); err != nil {
			return n, shorter(err)
		}
	}
	buffer := bodyBuffers.Get().(*[bodySize]byte)
	defer bodyBuffers.Put(buffer)
	last := buffer[:rest]
	if _, err := io.ReadFull(content.R, last); err != nil {
		return n, shorter(err)
	}
	if w.unchanged != nil {
		if err := w.unchanged(); err != nil {
			return n, err
		}
	}
	written, err := w.Write(last)
	return n + int64(written), err
}

// send copies n bytes. Over HTTP/2 and HTTP/3 each write goes from goroutine to
// goroutine, and Caddy copies each of its chunks with a new buffer. Large writes from a
// reused buffer cost a third less. Over HTTP/1.1, a download holds no buffer for as long
// as a slow client takes: with TLS, the file is mapped, and without it, sendfile sends the
// file itself. A file that cannot be mapped is read into a buffer of net/http.
func (w *bodyWriter) send(from io.Reader, n int64) (int64, error) {
	if w.proto < 2 {
		sent, err := w.sendMapped(from, n)
		if err == nil && sent < n {
			var copied int64
			copied, err = io.CopyN(w.ResponseWriter, from, n-sent)
			sent += copied
		}
		return sent, err
	}
	buffer := bodyBuffers.Get().(*[bodySize]byte)
	defer bodyBuffers.Put(buffer)
	// Without the wrapper, CopyBuffer would call the ReadFrom of w.ResponseWriter.
	written, err := io.CopyBuffer(struct{ io.Writer }{w.ResponseWriter}, io.LimitReader(from, n), buffer[:])
	if err == nil && written < n {
		err = io.EOF
	}
	return written, err
}

// sendMapped sends the first of the n bytes, as many as need not be read.
func (w *bodyWriter) sendMapped(from io.Reader, n int64) (int64, error) {
	if f, ok := from.(*os.File); ok && w.mapped != nil {
		return w.mapped.Send(w.ResponseWriter, f, n)
	}
	return 0, nil
}

// shorter returns ErrChanged for the end of a file that comes too early.
func shorter(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return tree.ErrChanged
	}
	return err
}

var errUnlimited = errors.New("how much is to be sent is not known")

// Unwrap is for http.ResponseController.
func (w *bodyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// leftBy reports whether a body ended early because its client has gone. The context
// tells, unless the kernel sent the file. An error of the file is not the client's
// fault, but net.TCPConn.ReadFrom returns every error as an error of the network, and a
// store is in the network too.
func leftBy(r *http.Request, err error) bool {
	var file *fs.PathError
	if errors.Is(err, tree.ErrChanged) || errors.Is(err, tree.ErrStore) || errors.As(err, &file) {
		return false
	}
	var network *net.OpError
	return r.Context().Err() != nil || errors.As(err, &network)
}
