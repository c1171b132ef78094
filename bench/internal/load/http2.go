package load

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
)

// A stream asks with Go's client, over HTTP/2 or as one of a fleet. It costs
// more than the server does: what tells is the server's CPU time for an answer.
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
	return s.job.verify(h)
}

func (s *stream) get(sink io.Writer) error {
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "https://"+s.job.Host+s.job.Path, nil)
	if err != nil {
		return err
	}
	if s.job.Authorization != "" {
		request.Header.Set("Authorization", s.job.Authorization)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != s.job.status() || (answer.ProtoMajor == 2) != (s.job.Protocol == H2) {
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
