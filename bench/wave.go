package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// A wave runs `init` in many clients at once. Each has Go's own client, as Terraform
// and OpenTofu use it: one connection for documents and another for the package. They
// follow the links in the answers.

// A step is a request of an init. The last step requests the package.
type step struct {
	path          string             // empty: link returns it
	link          func(links) string // a link in the documents before
	authorization string             // header, if any
}

// links are the links in documents of both protocols.
type links struct {
	Archives map[string]struct {
		URL string `json:"url"`
	} `json:"archives"`
	Package   string `json:"download_url"`
	Checksums string `json:"shasums_url"`
	Signature string `json:"shasums_signature_url"`
}

// A server is the server of a wave. Several processes may serve together.
type server struct {
	name    string
	address string
	pids    []int
	caddy   *caddy // nil: it cannot be profiled
	tls     *tls.Config
	inits   []initialization // the clients take turns
}

// title returns the name of the server in the table, even if it is not installed.
func (s *server) title() string {
	if s == nil {
		return nginxTitle
	}
	return s.name
}

// An initialization has the requests of one client, and the right answers.
type initialization struct {
	steps   []step
	answers []target
}

// A waveUsage is the cost of a wave.
type waveUsage struct {
	cpu    time.Duration   // of the server
	memory int64           // of the server at its peak, in bytes
	own    int64           // memory without files, such as the program, at its peak, in bytes
	times  []time.Duration // of the clients, the fastest first
}

// within returns the time in seconds after which a part of the clients had finished.
func (u waveUsage) within(part float64) float64 {
	return u.times[int(part*float64(len(u.times)-1))].Seconds()
}

// wave measures that many clients, which start together. One client goes before them
// and compares the answers as a whole. The others compare their status and length.
func wave(ctx context.Context, s server, clients int, http2 bool) (u waveUsage, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for _, i := range s.inits {
		if err := s.check(ctx, i, http2, true); err != nil {
			return u, err
		}
	}
	for _, pid := range s.pids {
		if err := resetPeakMemory(pid); err != nil {
			return u, err
		}
	}
	var (
		start  = make(chan struct{})
		failed = make(chan error, clients)
		all    sync.WaitGroup
	)
	u.times = make([]time.Duration, clients)
	own := watchOwnMemory(s.pids)
	before := s.cpuTime()
	for n := range clients {
		all.Go(func() {
			<-start
			began := time.Now()
			if err := s.check(ctx, s.inits[n%len(s.inits)], http2, false); err != nil {
				failed <- err
			}
			u.times[n] = time.Since(began)
		})
	}
	close(start)
	all.Wait()
	u.cpu = s.cpuTime() - before
	u.own = own()
	for _, pid := range s.pids {
		u.memory += peakMemory(pid)
	}
	slices.Sort(u.times)
	select {
	case err := <-failed:
		return u, err
	default:
		return u, nil
	}
}

func (s server) cpuTime() (sum time.Duration) {
	for _, pid := range s.pids {
		sum += cpuTime(pid)
	}
	return sum
}

// record runs an init once over HTTP/1.1 and returns the answers and the requested
// paths.
func (s server) record(ctx context.Context, steps []step) (answers []*answer, paths []string, err error) {
	err = s.run(ctx, steps, false, func(_ int, path string, response *http.Response) ([]byte, error) {
		body, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("GET %s: %s: %s", path, response.Status, body)
		}
		answers = append(answers, &answer{response.StatusCode, response.Header, body})
		paths = append(paths, path)
		return body, err
	})
	return answers, paths, err
}

// check runs an init and compares the answers: all of each, or the status and the
// length.
func (s server) check(ctx context.Context, i initialization, http2, whole bool) error {
	return s.run(ctx, i.steps, http2, func(n int, path string, response *http.Response) ([]byte, error) {
		right := i.answers[n]
		right.path = path
		var document bytes.Buffer
		var sum hash.Hash
		to := io.Discard
		if n < len(i.steps)-1 {
			to = &document
		}
		if whole {
			sum = sha256.New()
			to = io.MultiWriter(to, sum)
		}
		length, err := io.Copy(to, response.Body)
		if err != nil {
			return nil, fmt.Errorf("GET %s: %w", path, err)
		}
		return document.Bytes(), right.check(response, length, sum)
	})
}

// run makes the requests of an init. It calls read with each answer, and read returns
// the document.
func (s server) run(ctx context.Context, steps []step, http2 bool, read func(n int, path string, response *http.Response) ([]byte, error)) error {
	documents, packages := s.client(http2), s.client(http2)
	defer documents.CloseIdleConnections()
	defer packages.CloseIdleConnections()
	var found links
	at := &url.URL{Scheme: "https", Host: host}
	for n, step := range steps {
		client := documents
		if n == len(steps)-1 {
			client = packages
		}
		reference := step.path
		if step.link != nil {
			reference = step.link(found)
		}
		next, err := at.Parse(reference)
		if err != nil || reference == "" {
			return errors.Join(fmt.Errorf("%s: there is no link to the next file", at.Path), err)
		}
		at = next
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		if err != nil {
			return err
		}
		if step.authorization != "" {
			request.Header.Set("Authorization", step.authorization)
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		body, err := read(n, at.Path, response)
		response.Body.Close()
		if err != nil {
			return err
		}
		if len(body) > 0 && body[0] == '{' {
			if err := json.Unmarshal(body, &found); err != nil {
				return fmt.Errorf("GET %s: %w", at.Path, err)
			}
		}
	}
	return nil
}

// client returns a client that reaches the server as host, with its own connection.
func (s server) client(http2 bool) *http.Client {
	transport := &http.Transport{
		TLSClientConfig:    s.tls.Clone(),
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.address)
		},
		Protocols: new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetHTTP2(http2)
	return &http.Client{Transport: transport}
}
