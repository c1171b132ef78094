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

// maxResumes is how often a package may break off.
const maxResumes = 4

// A Digest is what a package turned out to be.
type Digest struct {
	Size   int64
	SHA256 wire.SHA256
}

// A link is where a package is to be had.
type link struct {
	url  *url.URL
	size int64 // as announced; zero: it was not
}

// An Expecter is a writer that wants to know how large a package is before it comes
// in, where that is known. With an error it does not.
type Expecter interface{ Expect(size int64) error }

// Download writes the package of a platform to w, and then says what it was. The
// bytes are verified once they are all there: on any error what was written is
// worth nothing and must not be kept. See Package.H1 for packages without a
// sha256.
func (c *Client) Download(ctx context.Context, r *Release, platform address.Platform, w io.Writer) (Digest, error) {
	p, ok := r.Package(platform)
	if !ok {
		return Digest{}, fail(c.home, ErrNotFound, "the release has no package for %s", platform)
	}
	from, err := c.protocol.locate(ctx, r, p)
	if err != nil {
		return Digest{}, err
	}
	d := &download{client: c, url: from.url, w: w, hash: sha256.New(), size: -1}
	if from.size > 0 {
		if from.size > c.origin.MaxPackage {
			return Digest{}, d.tooLarge(from.url)
		}
		d.size = from.size
		if err := d.expect(); err != nil {
			return Digest{}, err
		}
	}
	if err := d.run(ctx); err != nil {
		return Digest{}, brokenLink(err, "package")
	}
	digest := Digest{d.received, wire.SHA256(d.hash.Sum(nil))}
	if len(p.Digests) > 0 && !slices.Contains(p.Digests, digest.SHA256) {
		return Digest{}, fail(from.url, ErrBadChecksum, "%s is not the file that was released", p.Name)
	}
	return digest, nil
}

// A package may take as long as it likes only if it comes in at all: one that
// trickles would keep its slot for days. It is what a line of 1 Mbit/s gives each of
// MaxDownloads, and a little less.
const (
	minRate = 10 << 10 // bytes a second
	rateOf  = time.Minute
)

// A pace is how fast bytes come, over each rateOf that is spent on waiting for
// them.
type pace struct {
	waited   time.Duration
	received int64
}

// tooSlow adds bytes that came in some time, and reports whether the last rateOf
// had too few.
func (p *pace) tooSlow(n int, took time.Duration) bool {
	p.received += int64(n)
	if p.waited += took; p.waited < rateOf {
		return false
	}
	slow := float64(p.received) < minRate*p.waited.Seconds()
	*p = pace{}
	return slow
}

// A download is a package on its way.
type download struct {
	client    *Client
	url       *url.URL
	w         io.Writer
	hash      hash.Hash
	received  int64
	skip      int64  // bytes that come once more
	size      int64  // of the whole; negative: not known
	validator string // for If-Range
	pace      pace
}

// errBroken is a connection that broke off amid the package.
var errBroken = errors.New("broken off")

func (d *download) run(ctx context.Context) error {
	for try := 0; ; try++ {
		err := d.stream(ctx)
		if !errors.Is(err, errBroken) {
			return err
		}
		if d.received > 0 && d.received == d.size {
			return nil // it broke off behind the last byte
		}
		if try == maxResumes {
			return fail(d.url, ErrUnavailable, "the package broke off %d times", try+1)
		}
	}
}

// stream receives up to the end, or as far as it gets.
func (d *download) stream(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	// There is no telling how long a package takes, but bytes must keep coming.
	timeout := d.client.origin.Timeout
	stalled := time.AfterFunc(timeout, func() { cancel(errSlow) })
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
		stalled.Stop() // the time that w takes is not the origin's
		slow := d.pace.tooSlow(n, time.Since(began))
		if err := d.take(buffer[:n]); err != nil {
			return err
		}
		switch {
		case failed != nil && ctx.Err() != nil: // also at a regular end: see Client.read
			return transportFailure(ctx, answer.Request.URL, failed)
		case failed == io.EOF && d.skip == 0 && (d.size < 0 || d.received == d.size):
			return nil
		case failed == io.EOF && d.received > d.size && d.size >= 0:
			return fail(d.url, ErrBadChecksum, "the package is larger than announced")
		case failed != nil:
			return errBroken
		case slow:
			return fail(d.url, ErrTimeout, "it sends less than %d bytes a second", minRate)
		}
	}
}

// open asks for what is missing.
func (d *download) open(ctx context.Context) (answer *http.Response, err error) {
	// A range of a compressed body would be a range of something else.
	header := http.Header{"Accept-Encoding": {"identity"}}
	if d.received > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", d.received))
		if d.validator != "" {
			header.Set("If-Range", d.validator)
		}
	}
	err = d.client.guarded(d.url, func() error {
		answer, err = d.client.open(ctx, d.client.packages, d.url, header)
		return err
	})
	return answer, err
}

// accept finds out what part of the package an answer is, and refuses one that
// is of another package than the first.
func (d *download) accept(answer *http.Response) error {
	start, size := int64(0), answer.ContentLength
	if answer.StatusCode == http.StatusPartialContent {
		var ok bool
		if start, size, ok = contentRange(answer.Header); !ok || start != d.received {
			return fail(answer.Request.URL, ErrMalformed, "it sends another part of the package than it was asked for")
		}
	}
	d.skip = d.received - start
	switch {
	case size >= 0 && d.size >= 0 && size != d.size:
		return fail(answer.Request.URL, ErrBadChecksum, "the package has %d bytes where %d were announced", size, d.size)
	case size > d.client.origin.MaxPackage:
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
	return fail(from, ErrTooLarge, "the limit of a package is %d bytes", d.client.origin.MaxPackage)
}

// expect tells the writer how large the package is.
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

// contentRange reads where the body of a 206 begins in the whole, and the size of
// that, which is negative where it is not told.
func contentRange(h http.Header) (start, size int64, ok bool) {
	text, ok := strings.CutPrefix(h.Get("Content-Range"), "bytes ")
	first, rest, found := strings.Cut(text, "-")
	_, whole, slash := strings.Cut(rest, "/")
	start, err := strconv.ParseInt(first, 10, 64)
	if !ok || !found || !slash || err != nil {
		return 0, 0, false
	}
	if whole == "*" {
		return start, -1, true
	}
	size, err = strconv.ParseInt(whole, 10, 64)
	return start, size, err == nil && size >= 0
}

// validator is what If-Range takes: not a weak ETag.
func validator(h http.Header) string {
	if tag := h.Get("Etag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

// take writes what is new.
func (d *download) take(bytes []byte) error {
	again := min(d.skip, int64(len(bytes)))
	d.skip -= again
	bytes = bytes[again:]
	if d.received += int64(len(bytes)); d.received > d.client.origin.MaxPackage {
		return d.tooLarge(d.url)
	}
	d.hash.Write(bytes)
	if _, err := d.w.Write(bytes); err != nil {
		return fmt.Errorf("writing the package: %w", err)
	}
	return nil
}
