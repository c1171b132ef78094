package handlers

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A verifiedPackage offers a package that has been verified while its client followed it.
type verifiedPackage struct {
	fileOffers
	content io.ReadSeeker
	follow  func(to pull.Follower) (sent int64, err error)
	open    int
}

func (v *verifiedPackage) Follow(_ context.Context, f *index.File, to pull.Follower) (int64, *index.File, error) {
	sent, err := v.follow(to)
	return sent, f, err
}

func (v *verifiedPackage) Open(*index.File) (*index.OpenFile, error) {
	v.open++
	return &index.OpenFile{ReadSeekCloser: v}, nil
}

func (v *verifiedPackage) Read(p []byte) (int, error) { return v.content.Read(p) }
func (v *verifiedPackage) Seek(offset int64, by int) (int64, error) {
	return v.content.Seek(offset, by)
}

func (v *verifiedPackage) Close() error {
	v.open--
	return nil
}

// A brokenFile is a file whose last bytes cannot be read.
type brokenFile struct {
	*bytes.Reader
	err error
}

func (b brokenFile) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

// Whatever ends the answer with a package that grows, the package is closed, and an answer that
// is too short does not look like a whole one.
func TestEndsOfAGrowingPackage(t *testing.T) {
	const size = 100
	half := bytes.NewReader(make([]byte, size/2))
	for _, test := range []struct {
		rule    string
		content io.ReadSeeker
		fails   error // while it follows
		leaves  bool  // while it follows
		whole   bool
		broken  bool
	}{
		{"all of it is there", bytes.NewReader(make([]byte, size)), nil, false, true, false},
		{"the client has left", bytes.NewReader(make([]byte, size)), nil, true, false, false},
		{"the file is too short", half, nil, false, false, true},
		{"the file cannot be read", brokenFile{half, syscall.EIO}, nil, false, false, true},
		{"the connection to the store is reset", brokenFile{half, fmt.Errorf("%w: %w", tree.ErrStore, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET})}, nil, false, false, true},
		{"a connection behind the registry is reset", bytes.NewReader(make([]byte, size)), &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, false, false, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			v := &verifiedPackage{content: test.content, follow: func(to pull.Follower) (int64, error) {
				if test.leaves {
					leave()
				}
				sent, err := to.Send(bytes.NewReader(make([]byte, size/4)))
				return sent, cmp.Or(test.fails, err)
			}}
			w := httptest.NewRecorder()
			r := &request{Request: httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx), Exchange: new(Exchange)}
			broken := func() (broken bool) {
				defer func() { broken = recover() == http.ErrAbortHandler }()
				new(Registry).writeGrowing(w, r, v, &index.File{Size: size})
				return false
			}()
			if whole := w.Body.Len() == size; whole != test.whole && !test.leaves || broken != test.broken {
				t.Errorf("the client has %d bytes of %d, broken off: %t", w.Body.Len(), size, broken)
			}
			if v.open != 0 {
				t.Error("the package stays open")
			}
			if r.Status != http.StatusOK || r.Bytes != int64(w.Body.Len()) {
				t.Errorf("%d bytes of status %d are counted", r.Bytes, r.Status)
			}
		})
	}
}
