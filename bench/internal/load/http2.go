package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
)

// A stream asks over HTTP/2. Its client is Go's, which costs more than the
// server does: what tells is the server's CPU time for an answer.
type stream struct {
	ctx    context.Context
	job    Job
	client *http.Client
	read   func(int) // counts the bytes of bodies
}

func (s *stream) exchange() error { return s.get(io.Discard) }

func (s *stream) verify() error {
	h := sha256.New()
	if err := s.get(h); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != s.job.SHA256 {
		return fmt.Errorf("the answer's sha256 is %s, want %s", got, s.job.SHA256)
	}
	return nil
}

func (s *stream) get(sink io.Writer) error {
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "https://"+s.job.Host+s.job.Path, nil)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 {
		return fmt.Errorf("the answer is %s in %s", answer.Status, answer.Proto)
	}
	n, err := io.Copy(sink, answer.Body)
	if err != nil {
		return err
	}
	s.read(int(n))
	if n != s.job.Length {
		return fmt.Errorf("the answer has %d bytes, want %d", n, s.job.Length)
	}
	return nil
}

// idle closes what a client keeps open.
type idle struct{ *http.Client }

func (i idle) Close() error {
	i.CloseIdleConnections()
	return nil
}
