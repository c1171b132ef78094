package load

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// A connection speaks as much of HTTP/1.1 as Caddy's answers need: a request
// that never changes, and an answer with a Content-Length, or one that never
// has a body.
type connection struct {
	net.Conn
	request []byte
	status  []byte // how the right answer begins
	bodied  bool
	buffer  []byte
	read    func(int) // counts the bytes of bodies
}

func newConnection(conn net.Conn, j Job, read func(int)) *connection {
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: */*\r\n", j.Path, j.Host)
	if j.Authorization != "" {
		request = fmt.Appendf(request, "Authorization: %s\r\n", j.Authorization)
	}
	return &connection{
		Conn:    conn,
		request: append(request, "\r\n"...),
		status:  fmt.Appendf(nil, "HTTP/1.1 %d ", j.status()),
		bodied:  j.status() != http.StatusNoContent,
		buffer:  make([]byte, buffer),
		read:    read,
	}
}

var (
	endOfHeader   = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
)

// exchange asks once and reads the answer to its end; sink, which may be nil,
// gets the body.
func (c *connection) exchange(length int64, sink io.Writer) error {
	if _, err := c.Write(c.request); err != nil {
		return err
	}
	filled, header := 0, -1
	for header < 0 {
		if filled == len(c.buffer) {
			return errors.New("the answer's header has no end")
		}
		n, err := c.Read(c.buffer[filled:])
		if err != nil {
			return fmt.Errorf("reading the answer's header: %w", err)
		}
		filled += n
		header = bytes.Index(c.buffer[:filled], endOfHeader)
	}
	if err := c.check(c.buffer[:header+2], length); err != nil {
		return err
	}
	body := c.buffer[header+len(endOfHeader) : filled]
	for left := length; ; {
		if int64(len(body)) > left {
			return errors.New("there is more after the answer")
		}
		if sink != nil {
			sink.Write(body)
		}
		c.read(len(body))
		if left -= int64(len(body)); left == 0 {
			return nil
		}
		n, err := c.Read(c.buffer)
		if err != nil {
			return fmt.Errorf("reading the answer's body: %w", err)
		}
		body = c.buffer[:n]
	}
}

// check looks at the header of an answer, its last line's end included.
func (c *connection) check(header []byte, length int64) error {
	status, _, _ := bytes.Cut(header, []byte("\r\n"))
	if !bytes.HasPrefix(status, c.status) {
		return fmt.Errorf("the answer is %q", status)
	}
	if !c.bodied {
		return nil // nor a Content-Length
	}
	_, after, ok := bytes.Cut(header, contentLength)
	if !ok {
		return errors.New("the answer has no Content-Length")
	}
	value, _, _ := bytes.Cut(after, []byte("\r\n"))
	if n, err := strconv.ParseInt(string(value), 10, 64); err != nil || n != length {
		return fmt.Errorf("the answer's Content-Length is %q, want %d", value, length)
	}
	return nil
}

// verify is the first exchange, whose body has to be the expected one.
func (c *connection) verify(j Job) error {
	h := sha256.New()
	if err := c.exchange(j.Length, h); err != nil {
		return err
	}
	return j.verify(h)
}
