package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"time"
)

// A gitSSHRelay is a local server that ssh connects to instead of a host, with the same
// limits as over HTTPS. It accepts one connection at a time, and passes on bytes that
// it cannot read.
type gitSSHRelay struct {
	relay    *gitRelay // counts bytes, and remembers failures
	host     *url.URL
	listener net.Listener
	ended    sync.WaitGroup
}

// newSSHRelay starts a relay to a host that the operator has configured for SSH. A
// local user who connects to it still has to authenticate to the host.
func (g *gitRelay) newSSHRelay(ctx context.Context, host *url.URL) (*gitSSHRelay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &gitSSHRelay{relay: g, host: host, listener: listener}
	s.ended.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			if err := s.pass(ctx, near); err != nil {
				g.fail(err)
			}
		}
	})
	return s, nil
}

func (s *gitSSHRelay) port() int { return s.listener.Addr().(*net.TCPAddr).Port }

func (s *gitSSHRelay) close() {
	s.listener.Close()
	s.ended.Wait()
}

// pass connects a local connection with the host, and closes it.
func (s *gitSSHRelay) pass(ctx context.Context, near net.Conn) error {
	defer near.Close()
	c := s.relay.client
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(c.origin.Timeout, func() { cancel(errTimeout) })
	defer stalled.Stop()
	far, err := c.connect(ctx, &net.Dialer{}, "tcp", sshAddress(s.host))
	if err != nil {
		return transportFailure(ctx, s.host, err)
	}
	defer far.Close()
	stop := context.AfterFunc(ctx, func() { near.Close(); far.Close() })
	defer stop()
	var sending sync.WaitGroup
	sending.Go(func() {
		io.Copy(far, near)
		// When ssh has ended, do not wait for the host.
		near.Close()
		far.Close()
	})
	defer sending.Wait()
	defer near.Close()
	return s.receive(ctx, near, far, stalled)
}

// receive passes on the bytes that the host sends.
func (s *gitSSHRelay) receive(ctx context.Context, near io.Writer, far io.Reader, stalled *time.Timer) error {
	timeout := s.relay.client.origin.Timeout
	buffer := make([]byte, 64<<10)
	for {
		stalled.Reset(timeout)
		n, failed := far.Read(buffer)
		stalled.Stop()
		if !s.relay.take(int64(n)) {
			return fail(s.host, ErrTooLarge, "the limit for a repository is %d bytes", s.relay.client.maxRepository)
		}
		_, err := near.Write(buffer[:n])
		switch {
		case ctx.Err() != nil:
			return transportFailure(ctx, s.host, failed)
		case failed == io.EOF, errors.Is(failed, net.ErrClosed), err != nil:
			return nil // ssh reports it
		case failed != nil:
			return transportFailure(ctx, s.host, failed)
		}
	}
}

// sshAddress returns the address of a host for SSH.
func sshAddress(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "22"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// sshAlias returns the name of a host in known_hosts.
func sshAlias(u *url.URL) string {
	if port := u.Port(); port != "" && port != "22" {
		return "[" + u.Hostname() + "]:" + port
	}
	return u.Hostname()
}
