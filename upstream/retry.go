package upstream

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Few tries and short waits: a client waits for us, and asks again by itself.
const (
	maxRetries = 2
	minWait    = 250 * time.Millisecond
	maxWait    = 2 * time.Second
)

// newRetrying sends requests by the clients' own rules: again after a broken
// connection, a 429 or a server error, but not after a certificate that does not
// verify. Unlike theirs it does not let the other side say how long to wait.
func newRetrying(client *http.Client, timeout time.Duration) *retryablehttp.Client {
	longest := min(maxWait, timeout/4)
	backoff := func(shortest, longest time.Duration, attempt int, answer *http.Response) time.Duration {
		return min(longest, max(min(shortest, longest), retryablehttp.DefaultBackoff(shortest, longest, attempt, answer)))
	}
	return &retryablehttp.Client{
		HTTPClient:   client,
		RetryMax:     maxRetries,
		RetryWaitMin: minWait,
		RetryWaitMax: longest,
		Backoff:      backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
		CheckRetry: func(ctx context.Context, answer *http.Response, err error) (bool, error) {
			var unsafe *unsafeAddress
			deadline, limited := ctx.Deadline()
			switch {
			case errors.As(err, &unsafe), errors.Is(err, errRedirects):
				return false, nil
			case limited && time.Until(deadline) <= longest:
				return false, nil // the answer there is says more than that time is up
			case answer != nil && busyFor(answer) > longest:
				return false, nil // it said that we would come too early
			}
			return retryablehttp.DefaultRetryPolicy(ctx, answer, err)
		},
	}
}

// busyFor is how long an answer says to stay away.
func busyFor(answer *http.Response) time.Duration {
	wait := retryablehttp.DefaultBackoff(0, 0, 0, answer)
	if wait < 0 { // so many seconds that they overflow
		return time.Duration(1<<63 - 1)
	}
	return wait
}
