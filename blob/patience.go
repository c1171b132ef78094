package blob

import (
	"context"
	"io"
	"time"
)

// patience has the time limits for requests to the store.
type patience struct {
	answer time.Duration // until an answer begins, including the SDK's retries
	idle   time.Duration // between two reads or writes of a body
	copy   time.Duration // for a copy, which the store completes before it answers

	// crossing is how long the file may take to appear because of which a write was refused: the
	// other write may not have ended.
	crossing time.Duration
}

// patient is the patience of every Bucket outside tests.
var patient = patience{answer: 30 * time.Second, idle: 30 * time.Second, copy: 10 * time.Minute, crossing: time.Second}

// wait returns a context that is canceled with the cause errTooSlow after the given time,
// unless the wait is renewed or paused.
func (patience) wait(ctx context.Context, life time.Duration) (context.Context, *wait) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &wait{time.AfterFunc(life, func() { cancel(errTooSlow) }), cancel}
}

// A wait cancels a request that makes no progress.
type wait struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// renew restarts the timer.
func (w *wait) renew(life time.Duration) { w.timer.Reset(life) }

// pause stops the timer while the caller has to act.
func (w *wait) pause() { w.timer.Stop() }

// stop stops the timer and cancels the context. It must be called.
func (w *wait) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// body reads a range of an object.
type body struct {
	io.ReadCloser
	ctx       context.Context
	wait      *wait
	idle      time.Duration
	start, at int64 // where it begins in the object, and the next byte
}

// Read limits the time of the store, but not the time of the caller's client.
func (b *body) Read(p []byte) (int, error) {
	b.wait.renew(b.idle)
	defer b.wait.pause()
	n, err := b.ReadCloser.Read(p)
	b.at += int64(n)
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.wait.stop()
	return b.ReadCloser.Close()
}

// uploaded is content that is being sent to the store. Each read renews the wait.
type uploaded struct {
	content io.Reader
	wait    *wait
	life    time.Duration
	err     error // error of the content
}

// Read does not limit the time of the content, which comes from the caller's client.
func (u *uploaded) Read(p []byte) (int, error) {
	u.wait.pause()
	n, err := u.content.Read(p)
	u.wait.renew(u.life)
	if err != nil && err != io.EOF {
		u.err = err
	}
	return n, err
}
