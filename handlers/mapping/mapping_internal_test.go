package mapping

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// newFile makes a file of random bytes. It skips the test, but not in CI, if files of the
// folder for temporary files are not mapped.
func newFile(t *testing.T, size int) (*os.File, []byte) {
	t.Helper()
	content := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(content)
	name := filepath.Join(t.TempDir(), "package.zip")
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
	f := open(t, name)
	if _, ok := identify(f); !ok {
		if os.Getenv("CI") != "" {
			t.Fatal("files are not mapped in CI: let TMPDIR name a folder on a disk, not on OverlayFS")
		}
		t.Skip("files of this system or file system are not mapped")
	}
	return f, content
}

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func truncate(t *testing.T, f *os.File, size int64) {
	t.Helper()
	if err := os.Truncate(f.Name(), size); err != nil {
		t.Fatal(err)
	}
}

// A writerFunc is a function that writes.
type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// checkNone checks that no mapping is left.
func checkNone(t *testing.T, s *Files) {
	t.Helper()
	if len(s.mapped) != 0 {
		t.Errorf("%d files are still mapped", len(s.mapped))
	}
}

func TestSend(t *testing.T) {
	const size = 3*window + 1000
	for _, test := range []struct {
		rule      string
		offset, n int64
		want      int64 // how many bytes are sent
	}{
		{"a whole file", 0, size, size},
		{"a beginning", 0, window + 1, window + 1},
		{"an end from the middle of a page", 1001, size - 1001, size - 1001},
		{"a middle that ends with a window", 5, 2*window - 5, 2*window - 5},
		{"a few bytes are read", 0, window - 1, 0},
		{"a file that is shorter than it was is read", window, size, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			f, content := newFile(t, size)
			if _, err := f.Seek(test.offset, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			var s Files
			var got bytes.Buffer
			sent, err := s.Send(&got, f, test.n)
			if err != nil || sent != test.want {
				t.Fatalf("sent %d bytes, error %v, want %d", sent, err, test.want)
			}
			if !bytes.Equal(got.Bytes(), content[test.offset:test.offset+test.want]) {
				t.Error("other bytes were sent")
			}
			if at, err := f.Seek(0, io.SeekCurrent); at != test.offset+test.want || err != nil {
				t.Errorf("the next byte is read at %d, error %v", at, err)
			}
			checkNone(t, &s)
		})
	}
}

func TestSendersShareAMapping(t *testing.T) {
	const senders = 10
	f, content := newFile(t, 4*window)
	var s Files
	var begun, done sync.WaitGroup
	begun.Add(senders)
	for range senders {
		f := open(t, f.Name())
		done.Go(func() {
			var got bytes.Buffer
			first := sync.OnceFunc(func() { begun.Done(); begun.Wait() })
			sent, err := s.Send(writerFunc(func(p []byte) (int, error) {
				first()
				s.mutex.Lock()
				if len(s.mapped) != 1 {
					t.Errorf("mapped %d times", len(s.mapped))
				}
				s.mutex.Unlock()
				return got.Write(p)
			}), f, int64(len(content)))
			if err != nil || sent != int64(len(content)) || !bytes.Equal(got.Bytes(), content) {
				t.Errorf("sent %d bytes, error %v", sent, err)
			}
		})
	}
	done.Wait()
	checkNone(t, &s)
}

// Files are replaced by others of the same name and size.
func TestFilesOfTheSameNameAreMappedEach(t *testing.T) {
	old, content := newFile(t, window)
	var s Files
	sent, err := s.Send(writerFunc(func(p []byte) (int, error) {
		replacement := make([]byte, window)
		if err := os.WriteFile(old.Name()+".new", replacement, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(old.Name()+".new", old.Name()); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if _, err := s.Send(&got, open(t, old.Name()), window); err != nil || !bytes.Equal(got.Bytes(), replacement) {
			t.Errorf("the new file: %d bytes, error %v", got.Len(), err)
		}
		if !bytes.Equal(p, content) {
			t.Error("the old file has other bytes")
		}
		return len(p), nil
	}), old, window)
	if sent != window || err != nil {
		t.Errorf("the old file: %d bytes, error %v", sent, err)
	}
	checkNone(t, &s)
}

// The kernel raises a signal when bytes are accessed that the file does not have any more.
// Nothing else of the process may end by it.
func TestAFileBecomesShorterWhileItIsSent(t *testing.T) {
	certificates := httptest.NewUnstartedServer(nil)
	certificates.StartTLS()
	defer certificates.Close()
	// encrypted writes to a TLS connection whose other end takes all.
	encrypted := func(version uint16) func(t *testing.T) io.Writer {
		return func(t *testing.T) io.Writer {
			near, far := net.Pipe()
			config := certificates.TLS.Clone()
			config.MaxVersion = version
			server := tls.Server(near, config)
			client := tls.Client(far, &tls.Config{InsecureSkipVerify: true})
			var reading sync.WaitGroup
			reading.Go(func() { io.Copy(io.Discard, client) })
			t.Cleanup(func() { near.Close(); reading.Wait() })
			if err := server.Handshake(); err != nil {
				t.Fatal(err)
			}
			return server
		}
	}
	for _, test := range []struct {
		rule string
		to   func(*testing.T) io.Writer
	}{
		{"copied", func(t *testing.T) io.Writer { return new(bytes.Buffer) }},
		{"TLS 1.2", encrypted(tls.VersionTLS12)},
		{"TLS 1.3", encrypted(tls.VersionTLS13)},
	} {
		t.Run(test.rule, func(t *testing.T) {
			f, content := newFile(t, 3*window)
			to := test.to(t)
			var s Files
			begun := false
			sent, err := s.Send(writerFunc(func(p []byte) (int, error) {
				if begun {
					truncate(t, f, window)
				}
				begun = true
				return to.Write(p)
			}), f, int64(len(content)))
			if err != tree.ErrChanged || sent != window {
				t.Errorf("sent %d bytes, error %v", sent, err)
			}
			checkNone(t, &s)
		})
	}
}

func TestAFileBecomesShorterBeforeItsPagesAreRequested(t *testing.T) {
	f, content := newFile(t, 3*window)
	var s Files
	var got bytes.Buffer
	sent, err := s.Send(writerFunc(func(p []byte) (int, error) {
		n, err := got.Write(p)
		truncate(t, f, window)
		return n, err
	}), f, int64(len(content)))
	if sent != window || err != nil || !bytes.Equal(got.Bytes(), content[:window]) {
		t.Errorf("sent %d bytes, error %v", sent, err)
	}
	if n, err := f.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the reader gets %d bytes, error %v", n, err)
	}
	checkNone(t, &s)
}

func TestWritersFail(t *testing.T) {
	f, content := newFile(t, 3*window)
	var s Files
	gone := errors.New("the client has gone")
	calls := 0
	sent, err := s.Send(writerFunc(func(p []byte) (int, error) {
		if calls++; calls == 1 {
			return len(p), nil
		}
		return 10, gone
	}), f, int64(len(content)))
	if err != gone || sent != window+10 {
		t.Errorf("sent %d bytes, error %v", sent, err)
	}
	checkNone(t, &s)
}

func TestPanicsOfWritersAreNoChangesOfTheFile(t *testing.T) {
	for _, test := range []struct {
		rule  string
		panic func()
	}{
		{"an aborted answer", func() { panic(io.ErrClosedPipe) }},
		{"a nil pointer", func() { _ = *(*int)(nil) }},
	} {
		t.Run(test.rule, func(t *testing.T) {
			f, content := newFile(t, window)
			var s Files
			defer func() {
				if recover() == nil {
					t.Error("the panic is lost")
				}
				checkNone(t, &s)
			}()
			s.Send(writerFunc(func([]byte) (int, error) { test.panic(); return 0, nil }), f, int64(len(content)))
		})
	}
}
