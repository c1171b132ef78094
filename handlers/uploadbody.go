package handlers

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

// uploadStall is how long a client may send nothing. There is no limit for a whole
// file: it may be large, and the line slow.
const uploadStall = time.Minute

// unaskedBody is how long the server receives a body that it has not asked for, after
// it has answered.
const unaskedBody = time.Second / 2

// An uploadBody is the body of a request. It returns an error if the client stalls, and
// it limits how long the server waits for a body that the handler does not read.
//
// If a body is not read, net/http reads a quarter of a megabyte of it before it
// answers. If that is all of the body, it keeps the connection. Otherwise it reads
// nothing, answers, and closes the connection half a second later, so that the client
// can receive the answer. A client that looks for the answer only after it has sent the
// body therefore sees the answer only for a small body. A client that looks for it
// while sending, such as curl and GoReleaser, always sees it.
//
// A client that waits for 100 Continue is answered at once if the answer closes the
// connection. net/http closes it by itself only if no handler has wrapped the body.
// Caddy's server wraps it, and net/http would otherwise read a body that the client
// does not send.
type uploadBody struct {
	body       io.Reader
	header     http.Header // the header of the answer
	controller *http.ResponseController
	closes     bool      // the answer closes the connection, unless the body is read
	ended      bool      // there is nothing more to read
	until      time.Time // when all of it must be there; zero: there is no such limit

	stall   *time.Timer // nil before the first Read
	mutex   sync.Mutex
	expires time.Time // when the client has stalled; zero: nothing waits for it
	limited bool      // a deadline is set, here or by the server
}

func newUploadBody(w http.ResponseWriter, r *http.Request) *uploadBody {
	b := &uploadBody{body: r.Body, header: w.Header(), controller: http.NewResponseController(w), limited: true}
	if b.ended = r.ContentLength == 0; b.ended {
		return b
	}
	b.setDeadline(time.Now().Add(b.stallLimit()))
	if r.ProtoMajor == 1 && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		b.closes = true
		b.header.Set("Connection", "close")
	}
	return b
}

// Read implements io.Reader. Only the time for which it waits counts as the client's: a deadline
// that stays between two Reads would interrupt a client with HTTP/2 while the disk is slow.
func (b *uploadBody) Read(p []byte) (int, error) {
	if b.closes {
		b.closes = false
		b.header.Del("Connection")
	}
	b.startWaiting()
	n, err := b.body.Read(p)
	b.stopWaiting(err)
	return n, err
}

// release is called when the answer is known. The server then sends the answer without
// waiting for a body that the client has not been asked for, and closes the connection
// a moment later. Clients that have not waited are still sending, and an immediate
// close would reset their connection.
func (b *uploadBody) release() {
	switch {
	case b.closes:
		b.setDeadline(time.Now().Add(unaskedBody))
	case !b.ended:
		b.setDeadline(time.Now().Add(b.stallLimit()))
	}
}

// stallLimit is how long the client may send nothing.
func (b *uploadBody) stallLimit() time.Duration {
	if b.until.IsZero() {
		return uploadStall
	}
	return min(uploadStall, time.Until(b.until))
}

// startWaiting starts the client's time. A timer costs less than a deadline, which with HTTP/2 is
// a message to the goroutine of the connection.
func (b *uploadBody) startWaiting() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.limited {
		b.setDeadline(time.Time{})
	}
	patience := b.stallLimit()
	b.expires = time.Now().Add(patience)
	if b.stall == nil {
		b.stall = time.AfterFunc(patience, b.interrupt)
	} else {
		b.stall.Reset(patience)
	}
}

// stopWaiting stops the client's time when a Read has returned. After an error the server reads ahead
// to notice that the client has left, for as long as it takes to publish the file.
func (b *uploadBody) stopWaiting(err error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.stall.Stop()
	b.expires = time.Time{}
	if b.ended = err != nil; b.ended && b.limited {
		b.setDeadline(time.Time{})
	}
}

// interrupt ends the pending Read, if there is one and its time is over. The timer may have been
// stopped a moment too late.
func (b *uploadBody) interrupt() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !b.expires.IsZero() && !time.Now().Before(b.expires) {
		b.setDeadline(time.Unix(1, 0)) // long ago
	}
}

// setDeadline sets the deadline of the connection or stream, if it supports one. Zero is none.
func (b *uploadBody) setDeadline(t time.Time) {
	b.limited = !t.IsZero()
	_ = b.controller.SetReadDeadline(t)
}

// A fileBody is the body of a request that has a file. If the server in front limits
// bodies, as Caddy's request_body does, a longer one has not ended early, which would have
// its client send it again.
type fileBody struct{ io.Reader }

// Read implements io.Reader.
func (b fileBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if limit, limited := serverLimit(err); limited {
		err = publish.TooLarge(limit)
	}
	return n, err
}

// serverLimit returns the size that the server in front allows a body, if reading the body
// failed for that.
func serverLimit(err error) (limit int64, limited bool) {
	var tooLarge *http.MaxBytesError
	if !errors.As(err, &tooLarge) {
		return 0, false
	}
	return tooLarge.Limit, true
}
