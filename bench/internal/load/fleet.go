package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// A Request is one of those that each client of a fleet makes.
type Request struct {
	Path   string
	Length int64
	SHA256 string
}

// runFleet has as many clients as there are Connections make the Requests, all
// at once. Like Terraform and OpenTofu, each is Go's own client, and has one
// connection for documents and another for the package, which comes last.
func runFleet(ctx context.Context, j Job) (r Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, j.Duration+grace)
	defer cancel()
	config, err := trust(j.CA)
	if err != nil {
		return r, err
	}
	// The first compares what it gets; for the others the length has to do.
	if err := visit(ctx, j, config, true); err != nil {
		return r, err
	}
	var (
		start  = make(chan struct{})
		failed = make(chan error, j.Connections)
		fleet  sync.WaitGroup
	)
	for range j.Connections {
		fleet.Go(func() {
			<-start
			if err := visit(ctx, j, config, false); err != nil {
				failed <- err
			}
		})
	}
	began, server, own := time.Now(), cpuTime(j.Server), cpuTime(os.Getpid())
	close(start)
	fleet.Wait()
	r = Result{Elapsed: time.Since(began), Server: cpuTime(j.Server) - server, Own: cpuTime(os.Getpid()) - own}
	select {
	case err := <-failed:
		return r, err
	default:
	}
	for _, request := range j.Requests {
		r.Answers += int64(j.Connections)
		r.Bytes += int64(j.Connections) * request.Length
	}
	return r, nil
}

// visit is one client from its start to its end.
func visit(ctx context.Context, j Job, config *tls.Config, compare bool) error {
	documents, packages := goClient(j, config), goClient(j, config)
	defer documents.CloseIdleConnections()
	defer packages.CloseIdleConnections()
	for i, request := range j.Requests {
		client := documents
		if i == len(j.Requests)-1 {
			client = packages
		}
		one := j
		one.Path, one.Length, one.SHA256 = request.Path, request.Length, request.SHA256
		s := &stream{ctx: ctx, job: one, client: client, read: func(int) {}}
		exchange := s.exchange
		if compare {
			exchange = s.verify
		}
		if err := exchange(); err != nil {
			return fmt.Errorf("%s: %w", request.Path, err)
		}
	}
	return nil
}

// goClient speaks the job's protocol and no other.
func goClient(j Job, config *tls.Config) *http.Client {
	transport := &http.Transport{
		TLSClientConfig:    config.Clone(),
		DisableCompression: true,
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, j.Address) },
		Protocols:          new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(j.Protocol != H2)
	transport.Protocols.SetHTTP2(j.Protocol == H2)
	return &http.Client{Transport: transport}
}
