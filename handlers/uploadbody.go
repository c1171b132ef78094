package handlers

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// uploadStall is how long a client may send nothing. There is no limit for a whole
// file: it may be large, and the line slow.
const uploadStall = time.Minute

// unaskedBody is how long the server receives a body that it has not asked for, once it
// has answered.
const unaskedBody = time.Second / 2

// An uploadBody is the body of a request that ends with an error if the client stalls,
// and also limits how long the server waits for a body that is not read here.
//
// Of such a body net/http reads a quarter of a megabyte before it answers, and keeps
// the connection. Of a longer one it reads nothing, answers, and leaves the client half
// a second to receive the answer before it closes the connection. So a client that
// looks for the answer only after it has sent the body sees it for a small body; one
// that looks while it is sending, such as curl and GoReleaser, sees it for any.
//
// A client that waits for 100 Continue is answered without any of that, if the answer
// closes the connection. By itself net/http closes it only if no handler has wrapped
// the body, and Caddy's server does; otherwise it reads what the client does not send.
type uploadBody struct {
	body       io.Reader
	header     http.Header // of the answer
	controller *http.ResponseController
	closes     bool // the answer closes the connection, unless the body is read
	renewed    time.Time
}

func newUploadBody(w http.ResponseWriter, r *http.Request) *uploadBody {
	b := &uploadBody{body: r.Body, header: w.Header(), controller: http.NewResponseController(w)}
	if r.ContentLength == 0 {
		return b
	}
	b.renew()
	if r.ProtoMajor == 1 && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		b.closes = true
		b.header.Set("Connection", "close")
	}
	return b
}

// Read implements io.Reader.
func (b *uploadBody) Read(p []byte) (int, error) {
	if b.closes {
		b.closes = false
		b.header.Del("Connection")
	}
	b.renew()
	n, err := b.body.Read(p)
	if err != nil {
		// From now on the server reads ahead to notice that the client has left, for as
		// long as it takes to publish the file.
		b.setDeadline(time.Time{})
	}
	return n, err
}

// release is called when the answer is known. The server sends it without waiting for a
// body that the client has not been asked for, and closes the connection a moment later:
// clients that have not waited are still sending, and would get a reset instead.
func (b *uploadBody) release() {
	if b.closes {
		b.setDeadline(time.Now().Add(unaskedBody))
	}
}

// renew gives the client its time from now on. With HTTP/2 a new deadline is a message
// to the goroutine of the connection, so there is one a second.
func (b *uploadBody) renew() {
	if now := time.Now(); now.Sub(b.renewed) >= time.Second {
		b.renewed = now
		b.setDeadline(now.Add(uploadStall))
	}
}

// setDeadline sets the deadline of the connection or stream, if it supports one.
func (b *uploadBody) setDeadline(t time.Time) { _ = b.controller.SetReadDeadline(t) }
