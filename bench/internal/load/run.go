package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// counters of one connection, on a cache line of their own.
type counters struct {
	answers, bytes atomic.Int64
	_              [112]byte
}

// An exchanger asks once each time it is called.
type exchanger func() error

// run does a job.
func run(ctx context.Context, j Job) (r Result, err error) {
	if len(j.Requests) > 0 {
		return runFleet(ctx, j)
	}
	ctx, cancel := context.WithTimeout(ctx, j.Warmup+j.Duration+grace)
	defer cancel()
	counts := make([]counters, j.Connections)
	exchangers, hangUp, err := connect(ctx, j, counts)
	defer hangUp()
	if err != nil {
		return r, err
	}

	var (
		stop    atomic.Bool
		clients sync.WaitGroup
		failed  = make(chan error, j.Connections)
	)
	for i, exchange := range exchangers {
		clients.Go(func() {
			for !stop.Load() {
				if err := exchange(); err != nil {
					failed <- err
					return
				}
				counts[i].answers.Add(1)
			}
		})
	}
	defer clients.Wait()
	defer stop.Store(true)

	reading := func(after time.Duration) (sample, error) {
		select {
		case <-time.After(after):
			return read(counts, j.Server), nil
		case err := <-failed:
			return sample{}, err
		case <-ctx.Done():
			return sample{}, ctx.Err()
		}
	}
	first, err := reading(j.Warmup)
	if err != nil {
		return r, err
	}
	last, err := reading(j.Duration)
	if err != nil {
		return r, err
	}
	return Result{
		Answers: last.answers - first.answers, Bytes: last.bytes - first.bytes,
		Elapsed: last.at.Sub(first.at),
		Server:  last.server - first.server, Own: last.own - first.own,
	}, nil
}

// A sample is the counters at one time.
type sample struct {
	at             time.Time
	answers, bytes int64
	server, own    time.Duration
}

func read(counts []counters, server int) sample {
	s := sample{at: time.Now(), server: cpuTime(server), own: cpuTime(os.Getpid())}
	for i := range counts {
		s.answers += counts[i].answers.Load()
		s.bytes += counts[i].bytes.Load()
	}
	return s
}

// connect makes the connections and has each answer once. What it returns to
// hang up is never nil.
func connect(ctx context.Context, j Job, counts []counters) (exchangers []exchanger, hangUp func(), err error) {
	var closers []io.Closer
	hangUp = func() {
		for _, c := range closers {
			c.Close()
		}
	}
	config, err := trust(j.CA)
	if err != nil {
		return nil, hangUp, err
	}
	if j.Protocol == H2 {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig:    config,
			ForceAttemptHTTP2:  true,
			DisableCompression: true,
			DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, j.Address) },
		}}
		closers = append(closers, idle{client})
		for i := range counts {
			s := &stream{ctx: ctx, job: j, client: client, read: func(n int) { counts[i].bytes.Add(int64(n)) }}
			if err := s.verify(); err != nil {
				return nil, hangUp, err
			}
			exchangers = append(exchangers, s.exchange)
		}
		return exchangers, hangUp, nil
	}
	for i := range counts {
		conn, err := dial(ctx, j.Address)
		if err != nil {
			return nil, hangUp, err
		}
		closers = append(closers, conn)
		deadline, _ := ctx.Deadline()
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, hangUp, err
		}
		if j.Protocol == HTTPS {
			config := config.Clone()
			config.ServerName = j.Host
			config.NextProtos = []string{"http/1.1"}
			conn = tls.Client(conn, config)
		}
		c := newConnection(conn, j, func(n int) { counts[i].bytes.Add(int64(n)) })
		if err := c.verify(j); err != nil {
			return nil, hangUp, err
		}
		exchangers = append(exchangers, func() error { return c.exchange(j.Length, nil) })
	}
	return exchangers, hangUp, nil
}

// dial connects, on this machine only.
func dial(ctx context.Context, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !net.ParseIP(host).IsLoopback() {
		return nil, fmt.Errorf("%s is not on this machine", address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

func trust(file string) (*tls.Config, error) {
	config := &tls.Config{}
	if file == "" {
		return config, nil
	}
	certificate, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(certificate) {
		return nil, errors.New("there is no certificate to trust")
	}
	return config, nil
}
