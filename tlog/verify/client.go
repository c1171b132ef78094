package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/go-retryablehttp"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Client asks registries and their logs.
type Client struct {
	Transport http.RoundTripper

	// Token returns the token that clients send to a host; empty: none.
	Token func(context.Context, svchost.Hostname) (string, error)

	Cache     *Cache
	Pause     time.Duration // before the first retry; zero: a second
	UserAgent string

	mu   sync.Mutex
	down map[string]error     // hosts that cannot be reached
	kept map[string]time.Time // hosts without an answer, and when the oldest kept one came
}

// An UnansweredError means that a registry gave no answer that could be used.
type UnansweredError struct {
	Host, Why string
	network   bool // the host cannot be reached
}

func (e *UnansweredError) Error() string { return e.Host + ": " + e.Why }

func unanswered(u *url.URL, format string, args ...any) error {
	return &UnansweredError{Host: u.Host, Why: fmt.Sprintf(format, args...)}
}

// An answer has the status 200, 404 or 410.
type answer struct {
	status int
	body   []byte
	at     *url.URL // after redirects
	kept   bool     // it came earlier
}

// A question is a URL to ask for, and the maximum size of the answer, in bytes.
type question struct {
	url   *url.URL
	hosts []svchost.Hostname // whose token may be sent, the first that there is
	limit int64
	fresh bool // no kept answer counts, and a host is asked that could not be reached before
}

// ask asks a question. If the host cannot be reached, its last answer counts.
func (c *Client) ask(ctx context.Context, q question) (a answer, err error) {
	host := q.url.Host
	c.mu.Lock()
	if q.fresh {
		delete(c.down, host)
	}
	err = c.down[host]
	c.mu.Unlock()
	if err == nil {
		a, err = c.request(ctx, q)
	}
	if err == nil {
		if a.status == http.StatusOK {
			c.Cache.keepAnswer(q.url.String(), a.at.String(), a.body)
		}
		return a, nil
	}
	if failed, ok := errors.AsType[*UnansweredError](err); !ok || !failed.network || ctx.Err() != nil {
		return a, err
	}
	last, ok := c.Cache.answer(q.url.String())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == nil {
		c.down, c.kept = make(map[string]error), make(map[string]time.Time)
	}
	c.down[host] = err
	if q.fresh {
		return a, err
	}
	at, bad := url.Parse(last.At)
	if !ok || bad != nil || int64(len(last.Body)) > q.limit {
		return a, err
	}
	if oldest, known := c.kept[host]; !known || last.Time.Before(oldest) {
		c.kept[host] = last.Time
	}
	return answer{http.StatusOK, last.Body, at, true}, nil
}

// askAgain has hosts asked again that could not be reached.
func (c *Client) askAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.down)
}

// answered returns the last answer to a question, without asking.
func (c *Client) answered(q question) ([]byte, bool) {
	last, ok := c.Cache.answer(q.url.String())
	return last.Body, ok && int64(len(last.Body)) <= q.limit
}

func (c *Client) request(ctx context.Context, q question) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	response, err := c.do(ctx, q)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a = answer{status: response.StatusCode, at: response.Request.URL}
	a.body, err = io.ReadAll(io.LimitReader(response.Body, q.limit+1))
	switch {
	case a.status != http.StatusOK && a.status != http.StatusNotFound && a.status != http.StatusGone:
		return a, unanswered(q.url, "%s", refusal(a.status, a.body))
	case err != nil:
		return a, unanswered(q.url, "the answer broke off: %s", transportReason(err))
	case int64(len(a.body)) > q.limit:
		return a, unanswered(q.url, "the answer has more than %d bytes", q.limit)
	}
	return a, nil
}

// do sends a request. Tokens are sent with TLS alone.
func (c *Client) do(ctx context.Context, q question) (*http.Response, error) {
	r, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, q.url.String(), nil)
	if err != nil {
		return nil, unanswered(q.url, "it is no URL")
	}
	r.Header.Set("User-Agent", c.UserAgent)
	for _, host := range q.hosts {
		token, err := c.Token(ctx, host)
		if err != nil {
			return nil, err
		}
		if token != "" && q.url.Scheme == "https" {
			r.Header.Set("Authorization", "Bearer "+token)
			break
		}
	}
	response, err := c.retrying().Do(r)
	if err != nil {
		return nil, &UnansweredError{q.url.Host, transportReason(err), true}
	}
	return response, nil
}

const (
	retries      = 2
	maxRedirects = 5

	// answerTimeout is for an answer, with all attempts.
	answerTimeout = 2 * time.Minute
)

func (c *Client) retrying() *retryablehttp.Client {
	pause := cmp.Or(c.Pause, time.Second)
	return &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: c.Transport, CheckRedirect: checkRedirect},
		RetryMax:     retries,
		RetryWaitMin: pause,
		RetryWaitMax: 5 * pause,
		Backoff: func(shortest, longest time.Duration, attempt int, answer *http.Response) time.Duration {
			return min(longest, retryablehttp.DefaultBackoff(shortest, longest, attempt, answer)) // whatever Retry-After says
		},
		CheckRetry: func(ctx context.Context, answer *http.Response, err error) (bool, error) {
			var dial *net.OpError
			if errors.As(err, &dial) && dial.Op == "dial" || errors.Is(err, errRedirect) {
				return false, nil
			}
			return retryablehttp.DefaultRetryPolicy(ctx, answer, err)
		},
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

var errRedirect = errors.New("it redirects too often, or to a URL without TLS")

// wait waits before a question is asked again.
func (c *Client) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(cmp.Or(c.Pause, time.Second)):
		return nil
	}
}

// checkRedirect sends no token to another server, whatever it is called.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > maxRedirects || r.URL.Scheme != "https" && r.URL.Scheme != first.Scheme {
		return errRedirect
	}
	if r.URL.Host != first.Host || r.URL.Scheme != first.Scheme {
		r.Header.Del("Authorization")
	}
	return nil
}

// maxReason bounds the text of an answer that is printed, in bytes.
const maxReason = 500

// refusal says why there is no answer, in the registry's own words if it has some.
func refusal(status int, body []byte) string {
	text := fmt.Sprintf("it answered %d %s", status, http.StatusText(status))
	if why := reasonOf(body); why != "" {
		text += ": " + why
	}
	return text
}

// reasonOf returns the first sentence of an answer that is an error; empty: it has none.
func reasonOf(body []byte) string {
	var document struct {
		Errors []string `json:"errors"`
	}
	if json.Unmarshal(body, &document) != nil || len(document.Errors) == 0 {
		return ""
	}
	return shortened(document.Errors[0], maxReason)
}

// shortened returns the beginning of a text of others, without characters that would change
// the look of a terminal.
func shortened(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// transportReason leaves out the URL.
func transportReason(err error) string {
	var failed *url.Error
	for errors.As(err, &failed) {
		err = failed.Err
	}
	return err.Error()
}

// Kept returns the hosts that could not be reached, with the time of the oldest kept answer
// that was used.
func (c *Client) Kept() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		return map[string]time.Time{}
	}
	return c.kept
}

// hostnameOf returns the host of a URL as clients compare hosts; empty for no hostname.
func hostnameOf(u *url.URL) svchost.Hostname {
	host := u.Host
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	}
	h, err := address.ParseHostname(host)
	if err != nil {
		return ""
	}
	return h
}
