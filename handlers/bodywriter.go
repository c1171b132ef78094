package handlers

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// bodySize is how much of a body is written at once. Caddy passes on as much,
// unless its max_write_chunk says otherwise.
const bodySize = 64 << 10

var bodyBuffers = sync.Pool{New: func() any { return new([bodySize]byte) }}

// A bodyWriter is the writer for the bytes of a file. It keeps back the last of them until
// the file has been looked at again: a file that is rewritten in place while a slow client
// downloads it must not come out whole, with the beginning of one content and the end of
// another.
//
// What the kernel has taken by sendfile and not sent yet is still the file's, and follows a
// change after that look. Nothing in this process can see it.
type bodyWriter struct {
	http.ResponseWriter
	proto     int          // the major version of HTTP
	unchanged func() error // asked after the last read; nil: nothing is read
	failed    error        // why the body is too short
}

// ReadFrom is what http.ServeContent calls, with as much of a file as is to be sent.
func (w *bodyWriter) ReadFrom(from io.Reader) (n int64, err error) {
	defer func() { w.failed = err }()
	content, ok := from.(*io.LimitedReader)
	if !ok {
		return 0, errUnlimited
	}
	buffer := bodyBuffers.Get().(*[bodySize]byte)
	defer bodyBuffers.Put(buffer)
	last := buffer[:min(content.N, bodySize)]
	if first := content.N - int64(len(last)); first > 0 {
		if n, err = w.send(content.R, first, buffer[:]); err != nil {
			return n, shorter(err)
		}
	}
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

// send copies n bytes. Over HTTP/2 and HTTP/3 each write goes from goroutine to goroutine,
// and Caddy copies each of its chunks with a new buffer: large writes from a reused buffer
// cost a third less. HTTP/1.1 has its own buffers, or none where it uses sendfile, for which
// the file itself has to get there.
func (w *bodyWriter) send(from io.Reader, n int64, buffer []byte) (int64, error) {
	if w.proto < 2 {
		return io.CopyN(w.ResponseWriter, from, n)
	}
	// Without the wrapper, CopyBuffer would call the ReadFrom of w.ResponseWriter.
	written, err := io.CopyBuffer(struct{ io.Writer }{w.ResponseWriter}, io.LimitReader(from, n), buffer)
	if err == nil && written < n {
		err = io.EOF
	}
	return written, err
}

// shorter turns the end of a file that comes too early into ErrChanged.
func shorter(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return tree.ErrChanged
	}
	return err
}

var errUnlimited = errors.New("how much is to be sent is not known")

// Unwrap is for http.ResponseController.
func (w *bodyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// leftBy reports whether a body ended early because its client has gone. The context tells,
// except where the kernel sent the file. An error of the file is none of the client's, although
// net.TCPConn.ReadFrom calls all that it meets errors of the network.
func leftBy(r *http.Request, err error) bool {
	var file *fs.PathError
	if errors.Is(err, tree.ErrChanged) || errors.As(err, &file) {
		return false
	}
	var network *net.OpError
	return r.Context().Err() != nil || errors.As(err, &network)
}
