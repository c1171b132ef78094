package verify

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
)

// A stuckServer sends nothing after the header.
type stuckServer struct{}

func (stuckServer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: stuckBody{r.Context()}, Request: r}, nil
}

type stuckBody struct{ ctx context.Context }

func (b stuckBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (stuckBody) Close() error { return nil }

// A registry that sends no package does not hold up the command for ever.
func TestDownloadsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{Transport: stuckServer{}, Token: func(context.Context, svchost.Hostname) (string, error) { return "", nil }}
		began := time.Now()
		_, err := c.download(t.Context(), question{url: &url.URL{Scheme: "https", Host: "a"}, limit: 1}, io.Discard)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "deadline") || took != packageTimeout {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
