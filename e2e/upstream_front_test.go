package e2e_test

import (
	"bytes"
	"encoding/pem"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Front is a proxy in front of an origin: it counts requests, and fails as
// configured. To a mirror, each of its hostnames is a separate origin that
// publishes everything that the origin behind it does.
type Front struct {
	origin http.Handler

	mu     sync.Mutex
	faults map[string]Fault // by hostname
	asked  map[string]int   // by hostname and path
	sent   map[string]int64 // bytes of bodies by hostname
}

// A Fault answers a request, or lets the origin answer it.
type Fault func(w http.ResponseWriter, r *http.Request, origin http.Handler)

// Front starts one for these hostnames, each HOST.example.com.
func (o *Outside) Front(t *testing.T, hostnames ...string) *Front {
	t.Helper()
	client, err := o.Origin.client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return o.serve(t, &httputil.ReverseProxy{
		Transport: client.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "https", Host: "origin.example.com"})
			r.SetXForwarded() // so the origin, which does not trust it, has relative URLs
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(t.Output(), "", 0),
	}, hostnames...)
}

// serve starts a Front with another handler behind it.
func (o *Outside) serve(t *testing.T, origin http.Handler, hostnames ...string) *Front {
	t.Helper()
	f := &Front{origin: origin, faults: map[string]Fault{}, asked: map[string]int{}, sent: map[string]int64{}}
	server := httptest.NewUnstartedServer(f)
	server.Config.ErrorLog = log.New(t.Output(), "", 0)
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	o.trusted += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for _, hostname := range hostnames {
		o.Proxy.Route(hostname+":443", endpoint{"tcp", server.Listener.Addr().String()})
	}
	return f
}

// Fails makes a hostname fail from now on. Nil ends that.
func (f *Front) Fails(hostname string, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[hostname] = fault
}

// Asked returns how often each path of a hostname with a suffix was requested.
func (f *Front) Asked(hostname, end string) map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := maps.Clone(f.asked)
	maps.DeleteFunc(asked, func(path string, _ int) bool {
		return !strings.HasPrefix(path, hostname+"/") || !strings.HasSuffix(path, end)
	})
	return asked
}

// Sent returns how many bytes of a hostname have been sent, without headers.
func (f *Front) Sent(hostname string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[hostname]
}

// A countingWriter counts what a Front sends.
type countingWriter struct {
	http.ResponseWriter
	count func(bytes int)
}

func (w countingWriter) Write(p []byte) (int, error) {
	w.count(len(p))
	return w.ResponseWriter.Write(p)
}

func (w countingWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// times returns the sum of these counts.
func times(asked map[string]int) (n int) {
	for times := range maps.Values(asked) {
		n += times
	}
	return n
}

func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked[r.Host+r.URL.Path]++
	fault := f.faults[r.Host]
	f.mu.Unlock()
	w = countingWriter{w, func(bytes int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sent[r.Host] += int64(bytes)
	}}
	if fault == nil {
		f.origin.ServeHTTP(w, r)
		return
	}
	fault(w, r, f.origin)
}

// onPaths limits a fault to paths that end in one of these.
func onPaths(fault Fault, ends ...string) Fault {
	return func(w http.ResponseWriter, r *http.Request, origin http.Handler) {
		if !slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(r.URL.Path, end) }) {
			origin.ServeHTTP(w, r)
			return
		}
		fault(w, r, origin)
	}
}

// hangUp closes the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// keepWaiting does not answer until the client gives up.
func keepWaiting(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }

// answers answers with a status and, unless it is empty, a Retry-After.
func answers(status int, retryAfter string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		http.Error(w, "internal.example.com:5432 says no", status)
	}
}

// edited changes the body of the origin's answer.
func edited(edit func([]byte) []byte) Fault {
	return func(w http.ResponseWriter, r *http.Request, origin http.Handler) {
		answer := ask(origin, r)
		body := edit(answer.Body.Bytes())
		maps.Copy(w.Header(), answer.Result().Header)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(answer.Code)
		w.Write(body)
	}
}

// cutOff sends half of the announced body, waits, and closes the connection.
func cutOff(wait func()) Fault {
	return func(w http.ResponseWriter, r *http.Request, origin http.Handler) {
		answer := ask(origin, r)
		maps.Copy(w.Header(), answer.Result().Header)
		w.WriteHeader(answer.Code)
		body := answer.Body.Bytes()
		w.Write(body[:len(body)/2])
		w.(http.Flusher).Flush()
		wait()
		panic(http.ErrAbortHandler)
	}
}

func ask(origin http.Handler, r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	origin.ServeHTTP(answer, r)
	return answer
}

// flipped inverts one bit in the middle.
func flipped(body []byte) []byte {
	body = bytes.Clone(body)
	body[len(body)/2] ^= 1
	return body
}
