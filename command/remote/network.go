package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Network says how commands connect to a registry. The zero value uses the system's
// certificates.
type Network struct {
	Roots *x509.CertPool // that certificates are verified with; nil: the system's
	Pause time.Duration  // before the first retry; zero: a second
}

const (
	// publishRetries take some thirty seconds, in which a registry restarts. discoverRetries
	// find out sooner whether there is a registry.
	publishRetries  = 5
	discoverRetries = 2
	longestPause    = 30 // times the first

	// A registry answers at once whether it wants a file, unless it waits for other files of
	// the release. A server that does not know the question, such as a proxy, is sent the file
	// after this time.
	continueTimeout = 5 * time.Second

	// answerTimeout is longer than a registry takes to offer a large release.
	answerTimeout = 3 * time.Minute
)

// transport returns a transport that waits for the beginning of an answer for some time.
func (n Network) transport(answerTimeout time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: n.Roots},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: answerTimeout,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
	}
}

// Reading returns a transport for many small questions at once.
func (n Network) Reading() http.RoundTripper {
	t := n.transport(time.Minute)
	t.ForceAttemptHTTP2 = true
	return t
}

// client makes a client that retries. Only requests without a token may be redirected.
func (n Network) client(redirected bool) *retryablehttp.Client {
	t := n.transport(answerTimeout)
	t.ExpectContinueTimeout = continueTimeout
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true) // in which Go sends large bodies faster
	client := &http.Client{Transport: t}
	if !redirected {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	pause := cmp.Or(n.Pause, time.Second)
	return &retryablehttp.Client{
		HTTPClient:   client,
		RetryMax:     publishRetries,
		RetryWaitMin: pause,
		RetryWaitMax: longestPause * pause,
		Backoff: func(shortest, longest time.Duration, attempt int, answer *http.Response) time.Duration {
			return min(longest, max(shortest, retryablehttp.DefaultBackoff(shortest, longest, attempt, answer)))
		},
		CheckRetry: func(ctx context.Context, answer *http.Response, err error) (bool, error) {
			var unknown *net.DNSError
			switch {
			case answer != nil && answer.StatusCode == http.StatusInsufficientStorage,
				errors.Is(err, http.ErrSchemeMismatch),
				errors.As(err, &unknown) && unknown.IsNotFound:
				return false, nil
			}
			return retryablehttp.DefaultRetryPolicy(ctx, answer, err)
		},
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

// maxAnswer bounds how much of an answer is read, in bytes. The largest answer is the list of
// all versions of a provider.
const maxAnswer = 8 << 20

// UserAgent is sent with all requests.
const UserAgent = "caddy-terraform-registry"

// errNoTLS: the server answers without TLS.
var errNoTLS = errors.New("it has no TLS")

// A discovered is the discovery document of a registry.
type discovered struct {
	Body []byte
	at   *url.URL // of the document, after redirects
}

// A NoDiscoveryError: the server has no discovery document.
type NoDiscoveryError struct{ status int }

func (e NoDiscoveryError) Error() string {
	return fmt.Sprintf("it is not a registry: it answered %d for %s", e.status, wire.DiscoveryPath)
}

// Discover reads the discovery document of a registry, without a token.
func (n Network) Discover(ctx context.Context, base *url.URL) (d discovered, err error) {
	answer, body, err := n.get(ctx, base.JoinPath(wire.DiscoveryPath).String())
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return d, errNoTLS
	case answer == nil:
		return d, errors.New(transportReason(err))
	case answer.StatusCode != http.StatusOK:
		return d, NoDiscoveryError{answer.StatusCode}
	case err != nil:
		return d, errors.New(transportReason(err))
	}
	return discovered{body, answer.Request.URL}, nil
}

// get makes a request without a token, and reads the answer.
func (n Network) get(ctx context.Context, url string) (answer *http.Response, body []byte, err error) {
	client := n.client(true)
	client.RetryMax = discoverRetries
	defer client.HTTPClient.CloseIdleConnections()
	r, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, errors.New("it is not a host")
	}
	r.Header.Set("User-Agent", UserAgent)
	if answer, err = client.Do(r); err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer, body, err
}

// Service returns the URL of a service, which ends in a slash.
func (d discovered) Service(kind wire.Service) (*url.URL, error) {
	text, err := wire.DecodeService(d.Body, kind)
	if err != nil {
		return nil, err
	}
	service, err := d.at.Parse(text)
	if err != nil || service.Host == "" || service.User != nil {
		return nil, errors.New("its discovery document has no usable URL")
	}
	service = &url.URL{Scheme: service.Scheme, Host: service.Host, Path: service.Path, RawPath: service.RawPath}
	return service.JoinPath("/"), nil
}

// transportReason says why a request got no answer. It leaves out the URL, whose query may
// have secrets.
func transportReason(err error) string {
	var failed *url.Error
	for errors.As(err, &failed) {
		err = failed.Err
	}
	return err.Error()
}

// Refuses reports whether a registry requires a token for a URL. Without an answer it is
// not known.
func (n Network) Refuses(ctx context.Context, url string) bool {
	answer, _, _ := n.get(ctx, url)
	return answer != nil && answer.StatusCode == http.StatusUnauthorized
}
