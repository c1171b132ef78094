package upstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A gitRelay is a local server that git connects to instead of the servers of
// repositories. It sends git's requests from this process, with the origin's guard
// against private networks, its limits, and credentials that git never sees. The relay
// knows the repositories by number and serves no others.
type gitRelay struct {
	client   *Client
	secret   string // keeps other users of this machine out
	listener net.Listener
	server   *http.Server
	ended    chan struct{}

	mutex        sync.Mutex
	repositories []location // after redirects
	left         int64      // bytes that may still be received
	failed       error      // the first failure
}

// gitSecret is the header with the secret. In the URL, the secret would be among git's
// arguments, which other users of the machine can see.
const gitSecret = "X-Relay-Secret"

// gitUserAgent begins like git's own, by which some servers distinguish git from
// browsers.
const gitUserAgent = "git/2 (" + userAgent + ")"

// newGitRelay starts a relay that ends with its context, or when it is closed.
func (c *Client) newGitRelay(ctx context.Context) (*gitRelay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gitRelay{client: c, secret: rand.Text(), listener: listener, left: c.maxRepository, ended: make(chan struct{})}
	g.server = &http.Server{
		Handler:           g,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: c.origin.Timeout,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(g.ended)
		g.server.Serve(listener)
	}()
	return g, nil
}

func (g *gitRelay) close() {
	g.server.Close()
	<-g.ended
}

// header returns the header that each of git's requests must have.
func (g *gitRelay) header() string { return gitSecret + ": " + g.secret }

// add registers a repository. It returns the URL from which git fetches the repository,
// and its number.
func (g *gitRelay) add(repository location) (u string, number int) {
	base := *repository.url
	base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/"), strings.TrimSuffix(base.RawPath, "/")
	base.User, base.RawQuery, base.Fragment = nil, "", ""
	g.mutex.Lock()
	defer g.mutex.Unlock()
	number = len(g.repositories)
	g.repositories = append(g.repositories, location{&base, repository.trust})
	return fmt.Sprintf("http://%s/%d", g.listener.Addr(), number), number
}

// repository returns the location of a repository, after redirects.
func (g *gitRelay) repository(number int) location {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.repositories[number]
}

// failure returns the reason why a request of git was not answered; nil if all were.
func (g *gitRelay) failure() error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.failed
}

// A gitService is one of the two requests in git's smart protocol that read.
type gitService struct{ method, path, query, answer string }

var gitServices = []gitService{
	{http.MethodGet, "/info/refs", "service=git-upload-pack", "application/x-git-upload-pack-advertisement"},
	{http.MethodPost, "/git-upload-pack", "", "application/x-git-upload-pack-result"},
}

// gitHeaders are the headers of git's requests that belong to the protocol.
var gitHeaders = []string{"Git-Protocol", "Content-Type", "Content-Encoding", "Accept"}

// listRefs is the beginning of git's request for a list of refs in the second version
// of its protocol. In the first version, the list is in the answer to /info/refs.
const listRefs = "0014command=ls-refs\n"

func (g *gitRelay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get(gitSecret)), []byte(g.secret)) != 1 {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	number, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	i, err := strconv.Atoi(number)
	g.mutex.Lock()
	known := err == nil && i >= 0 && i < len(g.repositories)
	g.mutex.Unlock()
	for _, service := range gitServices {
		if known && r.Method == service.method && "/"+path == service.path && r.URL.RawQuery == service.query {
			if err := g.pass(w, r, i, service); err != nil {
				if !errors.Is(err, errGitLeft) && r.Context().Err() == nil {
					g.fail(err)
				}
				if w.Header().Get("Content-Type") != "" { // a started answer must not look complete
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(http.StatusBadGateway)
			}
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

func (g *gitRelay) fail(err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.failed == nil {
		g.failed = err
	}
}

// pass sends a request of git to the server of a repository, and its answer to git.
func (g *gitRelay) pass(w http.ResponseWriter, r *http.Request, repository int, service gitService) error {
	base := g.repository(repository)
	u := *base.url
	u.Path += service.path
	if u.RawPath != "" {
		u.RawPath += service.path
	}
	u.RawQuery = service.query
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxGitRequest))
	if err != nil {
		return fail(&u, ErrTooLarge, "a request for more than %d bytes of names would be needed", maxGitRequest)
	}
	header := http.Header{"User-Agent": {gitUserAgent}}
	h, _ := g.client.credentials(base)
	for _, name := range gitHeaders {
		if values := r.Header.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	stalled := time.AfterFunc(g.client.origin.Timeout, func() { cancel(errTimeout) })
	defer stalled.Stop()
	var answer *http.Response
	if err := g.client.guarded(ctx, &u, func() error {
		answer, err = g.client.send(ctx, g.client.packages.http, service.method, location{&u, base.trust}, h, body, header)
		return err
	}); err != nil {
		// Code hosts do not distinguish repositories that need credentials from missing ones.
		const missing = "the repository does not exist"
		return g.client.advised(err, base, missing, missing+", or it needs another token: configure that for this host")
	}
	defer answer.Body.Close()
	if answer.Header.Get("Content-Type") != service.answer {
		return fail(answer.Request.URL, ErrMalformed, "there is no git repository, or it has only git's old protocol of single files")
	}
	if err := g.moved(repository, g.client.answeredAt(answer), service); err != nil {
		return err
	}
	limit := g.client.maxRepository
	if service.method == http.MethodGet || bytes.HasPrefix(body, []byte(listRefs)) {
		limit = min(limit, g.client.maxRefs)
	}
	w.Header().Set("Content-Type", service.answer)
	return g.stream(ctx, w, answer, limit, stalled)
}

// moved remembers the location to which the first request for a repository was
// redirected: git sends the other requests there as well.
func (g *gitRelay) moved(repository int, to location, service gitService) error {
	base := *to.url
	path, ok := strings.CutSuffix(to.url.Path, service.path)
	if !ok || to.url.RawQuery != service.query {
		return fail(to.url, ErrMalformed, "it redirects to what is not a git repository")
	}
	base.Path, base.RawPath = path, strings.TrimSuffix(to.url.RawPath, service.path)
	base.User, base.RawQuery = nil, ""
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.repositories[repository] = location{&base, to.trust}
	return nil
}

// errGitLeft means that git has ended before the answer. Git itself reports the reason.
var errGitLeft = errors.New("git no longer reads")

// stream writes an answer of at most limit bytes to git, as long as it keeps coming.
func (g *gitRelay) stream(ctx context.Context, w http.ResponseWriter, answer *http.Response, limit int64, stalled *time.Timer) error {
	p := pace{patience: rateWindow}
	left := limit
	buffer := make([]byte, 64<<10)
	for {
		stalled.Reset(g.client.origin.Timeout)
		began := time.Now()
		n, failed := answer.Body.Read(buffer)
		stalled.Stop() // the time that git takes does not count
		slow := p.tooSlow(n, time.Since(began))
		if left -= int64(n); left < 0 && limit < g.client.maxRepository {
			return fail(answer.Request.URL, ErrTooLarge, "the limit for the list of a repository's branches and tags is %d bytes", limit)
		}
		if !g.take(int64(n)) {
			return fail(answer.Request.URL, ErrTooLarge, "the limit for a repository is %d bytes", g.client.maxRepository)
		}
		if _, err := w.Write(buffer[:n]); err != nil {
			return errGitLeft
		}
		switch {
		case failed != nil && ctx.Err() != nil, failed != nil && failed != io.EOF: // also at a proper end: see Client.ask
			return transportFailure(ctx, answer.Request.URL, failed)
		case failed == io.EOF:
			return nil
		case slow:
			return fail(answer.Request.URL, ErrTimeout, "it sends less than %d bytes a second", minRate)
		}
		// Git processes the received bytes while the server prepares the rest.
		if err := http.NewResponseController(w).Flush(); err != nil {
			return errGitLeft
		}
	}
}

// take counts received bytes, and reports whether they are within the limit.
func (g *gitRelay) take(n int64) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.left -= n
	return g.left >= 0
}

// received returns how many bytes of repositories have been received.
func (g *gitRelay) received() int64 {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.client.maxRepository - g.left
}
