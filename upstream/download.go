package upstream

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Digest describes the received bytes of a package.
type Digest struct {
	Size   int64 // bytes
	SHA256 wire.SHA256
}

// A link is the URL of a package.
type link struct {
	url  *url.URL
	size int64 // of the package in bytes, as announced; zero if it was not announced
}

// An Expecter is a writer that receives the size of a package in bytes before its
// content, if the size is known, perhaps more than once. An error ends the download.
type Expecter interface{ Expect(size int64) error }

// Download writes the package of a platform to w and returns its digest. The bytes are
// verified after the last one, so on any error the caller must discard the written
// bytes. Errors are Failures, or wrap the errors of w. See Package.FileHashes for packages
// without a sha256.
func (c *Client) Download(ctx context.Context, r *Release, platform address.Platform, w io.Writer) (Digest, error) {
	p, ok := r.Package(platform)
	if !ok {
		return Digest{}, fail(c.base, ErrNotFound, "the release has no package for %s", platform)
	}
	from, err := c.protocol.packageLink(ctx, r, p)
	if err != nil {
		return Digest{}, err
	}
	d := c.newDownload(location{from.url, trusted}, w, c.maxPackage)
	if from.size > 0 {
		if from.size > d.limit {
			return Digest{}, d.tooLarge(from.url)
		}
		d.size = from.size
		if err := d.expect(); err != nil {
			return Digest{}, err
		}
	}
	err = d.run(ctx)
	if d.received > 0 && isRefusal(err) { // the link has expired before the rest was requested
		if from, err = c.protocol.packageLink(ctx, r, p); err != nil {
			return Digest{}, err
		}
		d.location.url = from.url
		err = d.run(ctx)
	}
	if err != nil {
		return Digest{}, brokenLink(err, "package")
	}
	digest := d.digest()
	if len(p.Digests) > 0 && !slices.Contains(p.Digests, digest.SHA256) {
		return Digest{}, fail(from.url, ErrBadChecksum, "%s is not the file that was released", p.Name)
	}
	return digest, nil
}

// A pace measures how fast bytes arrive, for each rateWindow of waiting.
type pace struct {
	patience time.Duration // after which the rate counts, at most a rateWindow
	waited   time.Duration
	received int64
}

// tooSlow counts n bytes and the time they took, and reports whether the rate is too
// low.
func (p *pace) tooSlow(n int, took time.Duration) bool {
	p.received += int64(n)
	if p.waited += took; p.waited < min(p.patience, rateWindow) {
		return false
	}
	slow := float64(p.received) < minRate*p.waited.Seconds()
	if p.waited >= rateWindow {
		p.waited, p.received = 0, 0
	}
	return slow
}

// A download receives a package over one connection or several.
type download struct {
	client    *Client
	location  location
	host      Host // whose credentials are sent; zero: none, or the origin's token
	w         io.Writer
	hash      hash.Hash
	limit     int64 // bytes
	received  int64
	skip      int64  // bytes that the current answer repeats
	again     bool   // the current answer begins again
	size      int64  // of the package in bytes; negative if not known
	validator string // for If-Range
	pace      pace
}

func (c *Client) newDownload(l location, w io.Writer, limit int64) *download {
	return &download{client: c, location: l, w: w, hash: sha256.New(), limit: limit, size: -1, pace: pace{patience: max(c.origin.Timeout, defaultTimeout)}}
}

// digest returns the digest of the received bytes.
func (d *download) digest() Digest { return Digest{d.received, wire.SHA256(d.hash.Sum(nil))} }

// errBroken means that the connection broke before the end of the package.
var errBroken = errors.New("the connection broke off")

func (d *download) run(ctx context.Context) error {
	broken := 0 // times, since a connection has brought much
	for {
		before := d.received
		err := d.stream(ctx)
		if !errors.Is(err, errBroken) {
			return err
		}
		if d.received > 0 && d.received == d.size {
			return nil // the connection broke after the last byte
		}
		if d.received-before >= worthResuming && !d.again {
			broken = 0
		}
		if broken++; broken > maxResumes {
			return fail(d.location.url, ErrUnavailable, "the package broke off %d times", broken)
		}
	}
}

// stream receives the package over one connection. The error is errBroken if the
// download can be resumed.
func (d *download) stream(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	timeout := d.client.origin.Timeout
	stalled := time.AfterFunc(timeout, func() { cancel(errTimeout) })
	defer stalled.Stop()

	answer, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := d.accept(answer); err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	for {
		stalled.Reset(timeout)
		began := time.Now()
		n, failed := answer.Body.Read(buffer)
		stalled.Stop() // the time that w takes does not count
		slow := d.pace.tooSlow(n, time.Since(began))
		if err := d.write(buffer[:n]); err != nil {
			return err
		}
		switch {
		case failed != nil && ctx.Err() != nil: // also at a proper end: see Client.ask
			return transportFailure(ctx, answer.Request.URL, failed)
		case failed == io.EOF && d.skip == 0 && (d.size < 0 || d.received == d.size):
			return nil
		case failed != nil:
			return errBroken
		case slow:
			return fail(d.location.url, ErrTimeout, "it sends less than %d bytes a second", minRate)
		}
	}
}

// open requests the rest of the package.
func (d *download) open(ctx context.Context) (answer *http.Response, err error) {
	// A range of a compressed body is not a range of the package.
	header := http.Header{"Accept-Encoding": {"identity"}}
	if d.received > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", d.received))
		if d.validator != "" {
			header.Set("If-Range", d.validator)
		}
	}
	err = d.client.guarded(ctx, d.location.url, func() error {
		answer, err = d.client.open(ctx, d.client.packages.http, d.location, d.host, header)
		return err
	})
	return answer, err
}

// accept reads which range of the package an answer has. It refuses the answer if the
// package has changed.
func (d *download) accept(answer *http.Response) error {
	start, size := int64(0), answer.ContentLength
	if answer.StatusCode == http.StatusNoContent {
		return &Failure{Host: answer.Request.URL.Host, Status: answer.StatusCode, Kind: ErrMalformed}
	}
	if answer.StatusCode == http.StatusPartialContent {
		var ok bool
		if start, size, ok = contentRange(answer.Header); !ok || start != d.received {
			return fail(answer.Request.URL, ErrMalformed, "it sends another part of the package than was requested")
		}
	}
	d.skip = d.received - start
	d.again = d.skip > 0
	switch {
	case size >= 0 && d.size >= 0 && size != d.size:
		return fail(answer.Request.URL, ErrBadChecksum, "the package has %d bytes where %d were announced", size, d.size)
	case size > d.limit:
		return d.tooLarge(answer.Request.URL)
	case size >= 0:
		d.size = size
	}
	if d.received == 0 {
		d.validator = validator(answer.Header)
	}
	return d.expect()
}

func (d *download) tooLarge(from *url.URL) error {
	return fail(from, ErrTooLarge, "the limit of a package is %d bytes", d.limit)
}

// expect passes the size of the package to the writer.
func (d *download) expect() error {
	w, ok := d.w.(Expecter)
	if !ok || d.size < 0 {
		return nil
	}
	if err := w.Expect(d.size); err != nil {
		return fmt.Errorf("writing the package: %w", err)
	}
	return nil
}

// contentRange reads the position of a 206's body in the package, and the size of the
// package, which is negative if unknown.
func contentRange(h http.Header) (start, size int64, ok bool) {
	text, ok := strings.CutPrefix(h.Get("Content-Range"), "bytes ")
	first, rest, found := strings.Cut(text, "-")
	_, complete, slash := strings.Cut(rest, "/")
	start, err := strconv.ParseInt(first, 10, 64)
	if !ok || !found || !slash || err != nil {
		return 0, 0, false
	}
	if complete == "*" {
		return start, -1, true
	}
	size, err = strconv.ParseInt(complete, 10, 64)
	return start, size, err == nil && size >= 0
}

// validator returns a value for If-Range, which must not be a weak ETag (RFC 9110
// 13.1.5).
func validator(h http.Header) string {
	if tag := h.Get("Etag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

// write passes on the bytes that were not received before.
func (d *download) write(bytes []byte) error {
	repeated := min(d.skip, int64(len(bytes)))
	d.skip -= repeated
	bytes = bytes[repeated:]
	switch d.received += int64(len(bytes)); {
	case d.received > d.limit:
		return d.tooLarge(d.location.url)
	case d.received > d.size && d.size >= 0:
		return fail(d.location.url, ErrBadChecksum, "the package is larger than announced")
	}
	d.hash.Write(bytes)
	if _, err := d.w.Write(bytes); err != nil {
		return fmt.Errorf("writing the package: %w", err)
	}
	return nil
}
