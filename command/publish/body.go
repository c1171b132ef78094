package publish

import (
	"errors"
	"io"
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
)

// A sentBody is the body of a request, which may be sent several times or not at all.
type sentBody struct {
	file     upload
	progress *cli.FileTransfer
}

// open begins an attempt. The file is opened when its first bytes are read.
func (b *sentBody) open() (io.Reader, error) {
	b.progress.Add(-b.progress.Moved())
	return &sentAttempt{of: b}, nil
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
	a.of.progress.Add(int64(n))
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
