package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// The load generator has one core and has to cost less than the server on another. So
// it writes a prepared request and reads the answer on its own connections. vegeta, and
// net/http's Client below it, cost more for an answer than the registry does. A server
// that waits for its client batches less and looks more expensive than it is.

// A target is a document or package of a server, and the right answer.
type target struct {
	address       string      // of the server
	pid           int         // of the server
	tls           *tls.Config // nil: plain HTTP
	path          string
	authorization string // header, if any
	gzip          bool   // it is asked for compressed, as browsers do
	status        int
	length        int64  // of the body
	digest        string // SHA-256 of the body; empty if it changes from answer to answer
}

// newTarget returns a target whose right answer is a. All later answers are compared
// with it.
func newTarget(address string, pid int, path string, a *answer) target {
	return target{
		address: address, pid: pid, path: path,
		status: a.status, length: int64(len(a.body)), digest: digestOf(a.body),
	}
}

func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// check compares an answer and, if it was hashed, its body.
func (t target) check(response *http.Response, length int64, body hash.Hash) error {
	if response.StatusCode != t.status {
		return fmt.Errorf("GET %s: %s, want %d", t.path, response.Status, t.status)
	}
	if length != t.length {
		return fmt.Errorf("GET %s: %d bytes, want %d", t.path, length, t.length)
	}
	if body == nil || t.digest == "" {
		return nil
	}
	if got := hex.EncodeToString(body.Sum(nil)); got != t.digest {
		return fmt.Errorf("GET %s: the body has SHA-256 %s, want %s", t.path, got, t.digest)
	}
	return nil
}

// A usage has the answers of a server in some time, and the CPU time that they took.
type usage struct {
	answers, bytes int64
	cpu, elapsed   time.Duration
}

// perAnswer and perGigabyte are the server's CPU time in seconds.
func (u usage) perAnswer() float64   { return u.cpu.Seconds() / float64(u.answers) }
func (u usage) perGigabyte() float64 { return u.cpu.Seconds() / (float64(u.bytes) / 1e9) }

// load asks for a target over and over: a little to warm up, and then until the server
// has used the CPU time of a slice, which takes longer if other processes want the core
// too. It is a closed loop: each connection asks again when it has its answer. The
// first answer of each connection is compared as a whole, the others by status and
// length.
func (l *lab) load(ctx context.Context, t target, connections int) (u usage, err error) {
	const warmup, tick, slowest = 4, 10, 50 // parts of a slice, and slices
	ctx, cancel := context.WithTimeout(ctx, slowest*l.slice+time.Minute)
	defer cancel()
	var (
		answers, bytes atomic.Int64
		clients        sync.WaitGroup
		failed         = make(chan error, connections)
	)
	defer clients.Wait()
	defer cancel()
	for range connections {
		c, err := connect(ctx, t)
		if err != nil {
			return u, err
		}
		if err := c.exchange(&bytes, sha256.New()); err != nil {
			c.Close()
			return u, err
		}
		clients.Go(func() {
			defer c.Close()
			for {
				if err := c.exchange(&bytes, nil); err != nil {
					failed <- err
					return
				}
				answers.Add(1)
			}
		})
	}
	var before usage
	began := time.Now()
	for wait := l.slice / warmup; u.cpu < l.slice; wait = l.slice / tick {
		select {
		case <-time.After(wait):
		case err := <-failed:
			return u, err
		}
		now := usage{answers.Load(), bytes.Load(), cpuTime(t.pid), time.Since(began)}
		if before == (usage{}) {
			before = now
		}
		u = usage{now.answers - before.answers, now.bytes - before.bytes, now.cpu - before.cpu, now.elapsed - before.elapsed}
		if u.elapsed > slowest*l.slice {
			return u, fmt.Errorf("GET %s: the server has used %v of CPU time in %v", t.path, u.cpu, u.elapsed)
		}
	}
	const enough = 0.9
	if busy := u.cpu.Seconds() / u.elapsed.Seconds(); busy < enough {
		progress("GET %s: the server was busy for %.0f %% of the time only", t.path, 100*busy)
	}
	return u, nil
}

// A connection asks for one target again and again.
type connection struct {
	net.Conn
	target  target
	request []byte
	reader  *bufio.Reader
	buffer  []byte
	release func() bool // the context
}

// connect connects to a server of this machine, for as long as ctx lasts.
func connect(ctx context.Context, t target) (*connection, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	release := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	if t.tls != nil {
		config := t.tls.Clone()
		config.NextProtos = []string{"http/1.1"}
		conn = tls.Client(conn, config)
	}
	const bufferSize = 256 << 10
	return &connection{
		Conn: conn, target: t, release: release, request: t.request(),
		reader: bufio.NewReaderSize(conn, bufferSize), buffer: make([]byte, bufferSize),
	}, nil
}

// request returns the request for a target.
func (t target) request() []byte {
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\n", t.path, host)
	if t.authorization != "" {
		request = fmt.Appendf(request, "Authorization: %s\r\n", t.authorization)
	}
	if t.gzip {
		request = append(request, "Accept-Encoding: gzip\r\n"...)
	}
	return append(request, "\r\n"...)
}

func (c *connection) Close() error {
	c.release()
	return c.Conn.Close()
}

// ask writes the request and reads the head of the answer.
func (c *connection) ask() (*http.Response, error) {
	if _, err := c.Write(c.request); err != nil {
		return nil, err
	}
	return http.ReadResponse(c.reader, nil)
}

// exchange asks once and reads the answer to its end. It counts the bytes of
// the body as they come, and hashes them unless body is nil.
func (c *connection) exchange(count *atomic.Int64, body hash.Hash) error {
	response, err := c.ask()
	if err != nil {
		return fmt.Errorf("GET %s: %w", c.target.path, err)
	}
	defer response.Body.Close()
	for length := int64(0); ; {
		n, err := response.Body.Read(c.buffer)
		length += int64(n)
		count.Add(int64(n))
		if body != nil {
			body.Write(c.buffer[:n])
		}
		if err == io.EOF {
			return c.target.check(response, length, body)
		}
		if err != nil {
			return fmt.Errorf("GET %s: %w", c.target.path, err)
		}
	}
}

// trust accepts a certificate for host and no other.
func trust(file string) (*tls.Config, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{ServerName: host, RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(content) {
		return nil, errors.New("no certificate in " + file)
	}
	return config, nil
}
