package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Host is the name that requests are made to. Nothing looks it up.
const Host = "registry.example.com"

// An Answer to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Get asks a site that speaks plain HTTP.
func (p *Process) Get(ctx context.Context, site, path string) (*Answer, error) {
	return p.GetAs(ctx, site, path, "")
}

// GetAs is Get with an Authorization header, unless that is empty.
func (p *Process) GetAs(ctx context.Context, site, path, authorization string) (*Answer, error) {
	c := p.connect(site)
	c.authorization = authorization
	defer c.close()
	return c.get(ctx, path)
}

// Poll is the time between two looks at something that is expected to happen.
// It is short beside everything that is measured by looking.
const Poll = 2 * time.Millisecond

// Await asks for a path until the answer is good, and returns when it came. It
// keeps its connection: the first request waits in the kernel until the
// process serves, and so is answered at the first moment possible.
func (p *Process) Await(ctx context.Context, site, path string, good func(*Answer) bool) (*Answer, time.Time, error) {
	c := p.connect(site)
	defer c.close()
	for {
		a, err := c.get(ctx, path)
		if err != nil {
			return nil, time.Time{}, err
		}
		if now := time.Now(); good(a) {
			return a, now, nil
		}
		select {
		case <-time.After(Poll):
		case <-ctx.Done():
			return a, time.Time{}, fmt.Errorf("waiting for %s: %w", path, ctx.Err())
		}
	}
}

// A requester keeps one connection to a site.
type requester struct {
	process       *Process
	address       string
	authorization string
	conn          net.Conn
	reader        *bufio.Reader
}

func (p *Process) connect(site string) *requester {
	return &requester{process: p, address: p.addresses[site]}
}

func (c *requester) close() {
	if c.conn != nil {
		c.conn.Close()
	}
}

func (c *requester) get(ctx context.Context, path string) (a *Answer, err error) {
	if c.conn == nil {
		if c.conn, err = new(net.Dialer).DialContext(ctx, "tcp", c.address); err != nil {
			return nil, c.process.failure(err)
		}
		c.reader = bufio.NewReader(c.conn)
	}
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	request, err := http.NewRequest(http.MethodGet, "http://"+Host+path, nil)
	if err != nil {
		return nil, err
	}
	if c.authorization != "" {
		request.Header.Set("Authorization", c.authorization)
	}
	fail := func(err error) (*Answer, error) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, c.process.failure(fmt.Errorf("GET %s: %w", path, err))
	}
	if err := request.Write(c.conn); err != nil {
		return fail(err)
	}
	response, err := http.ReadResponse(c.reader, request)
	if err != nil {
		return fail(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fail(err)
	}
	return &Answer{response.StatusCode, response.Header, body}, nil
}
