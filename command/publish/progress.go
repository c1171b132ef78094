package publish

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
)

// A sentBody is the body of a request, which may be sent several times or not at all.
type sentBody struct {
	file     publishFile
	progress *sendProgress
	counted  atomic.Int64 // bytes, in progress
}

// open begins an attempt. The file is opened when its bytes are asked for.
func (b *sentBody) open() (io.Reader, error) {
	b.count(-b.counted.Load())
	return &sentAttempt{of: b}, nil
}

func (b *sentBody) count(n int64) {
	b.counted.Add(n)
	b.progress.add(n)
}

// end counts what the registry had already.
func (b *sentBody) end() {
	b.count(b.file.size - b.counted.Load())
	b.progress.fileDone()
}

// A sentAttempt reads the file for one attempt. It can be closed while it is read.
type sentAttempt struct {
	of *sentBody

	mutex  sync.Mutex
	file   io.ReadCloser
	closed bool
}

func (a *sentAttempt) Read(p []byte) (n int, err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.closed {
		return 0, errors.New("the request has ended")
	}
	if a.file == nil {
		if a.file, err = a.of.file.open(); err != nil {
			return 0, err
		}
	}
	n, err = a.file.Read(p)
	a.of.count(int64(n))
	return n, err
}

func (a *sentAttempt) Close() error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.closed = true
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// A sendProgress is how far sending is. It can be updated concurrently.
type sendProgress struct {
	bar          *cli.ProgressBar
	began        time.Time
	files, total int64 // bytes are in total

	done, sent atomic.Int64
}

func (p *sendProgress) begin(releases []publishRelease) {
	p.began = time.Now()
	for _, r := range releases {
		if len(r.problems) > 0 {
			continue
		}
		for _, f := range r.files {
			p.files++
			p.total += f.size
		}
	}
}

func (p *sendProgress) add(n int64) {
	p.sent.Add(n)
	p.draw()
}

func (p *sendProgress) fileDone() {
	p.done.Add(1)
	p.draw()
}

func (p *sendProgress) draw() {
	done := p.done.Load()
	p.bar.Line(done >= p.files, func(now time.Time) string { return p.text(now, done) })
}

func (p *sendProgress) text(now time.Time, done int64) string {
	sent := min(max(p.sent.Load(), 0), p.total) // an attempt that was given up may still be read
	rate := float64(sent) / max(now.Sub(p.began).Seconds(), 0.001)
	return cli.Bar(sent, p.total, fmt.Sprintf("%d of %d, %s of %s, %s/s", done, p.files,
		humanize.Bytes(uint64(sent)), humanize.Bytes(uint64(p.total)), humanize.Bytes(uint64(rate))))
}
