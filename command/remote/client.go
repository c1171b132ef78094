package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Client sends requests to the service of a registry that is published to.
type Client struct {
	http    *retryablehttp.Client
	service *url.URL
	Token   *runToken
	Hint    string // about the token
}

// NewClient finds the token for a registry.
func NewClient(ctx context.Context, n Network, tokens TokenFinder) (c Client, err error) {
	c.http = n.client(false)
	found, err := tokens.find(ctx, c.http)
	if err != nil {
		return c, err
	}
	c.Token, c.Hint = &runToken{finder: tokens, client: c.http, foundToken: found}, tokens.hint(found)
	return c, nil
}

// Discover finds the service of a registry.
func (c *Client) Discover(ctx context.Context, n Network, to Destination) (err error) {
	c.service, err = n.discoverService(ctx, to)
	return err
}

func (c *Client) Close() { c.http.HTTPClient.CloseIdleConnections() }

// A RefusedError is an answer that is not a success.
type RefusedError struct {
	Status  int
	Reasons []string // sentences for people
}

func (e *RefusedError) Error() string { return strings.Join(e.Reasons, " ") }

// Advice is what to do about a refusal, beside its own reasons; empty: nothing is known.
func (c *Client) Advice(e *RefusedError) string {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return c.Hint
	case http.StatusMethodNotAllowed:
		return "It does not accept publications: its operator has to configure publish."
	}
	return ""
}

// ServicePath is the path of something of an address, relative to the service. That of
// another registry is beside the services of the one that is published to.
func ServicePath(a address.Address, names ...string) string {
	path := []string{a.Namespace, a.Name}
	service := "providers"
	if a.IsModule() {
		service, path = "modules", append(path, a.System)
	}
	if a.Hostname != "" {
		path = append([]string{"..", "registries", string(a.Hostname), service}, path...)
	}
	return strings.Join(append(path, names...), "/")
}

// Request makes a request for a path below the service.
func (c *Client) Request(ctx context.Context, method string, body any, path string) (*retryablehttp.Request, error) {
	u := c.service.ResolveReference(&url.URL{Path: path})
	r, err := retryablehttp.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", userAgent)
	secret, err := c.Token.current(ctx)
	if err != nil {
		return nil, err
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	return r, nil
}

// Send sends a request, and reads the answer. The status is zero if there is none.
func (c *Client) Send(r *retryablehttp.Request) (status int, header http.Header, answer []byte, err error) {
	response, err := c.http.Do(r)
	if err != nil {
		return 0, nil, nil, errors.New(transportReason(err))
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode/100 != 2 {
		return response.StatusCode, nil, nil, &RefusedError{response.StatusCode, reasonsOf(response, answer)}
	}
	if err != nil {
		return response.StatusCode, nil, nil, errors.New(transportReason(err))
	}
	return response.StatusCode, response.Header, answer, nil
}

// The reasons of an answer that are printed, and how much of each in bytes.
const (
	maxReasons = 20
	maxReason  = 2_000
)

// reasonsOf are the sentences of an answer that is not a success. What other servers on
// the way answer has none of ours.
func reasonsOf(answer *http.Response, body []byte) (reasons []string) {
	var document struct {
		Errors []json.RawMessage `json:"errors"`
	}
	_ = json.Unmarshal(body, &document) // there are none in another document
	for _, raw := range document.Errors[:min(len(document.Errors), maxReasons)] {
		var text string
		var object struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &object) == nil {
			text = object.Message
		}
		if text != "" {
			reasons = append(reasons, cli.Printable(text[:min(len(text), maxReason)]))
		}
	}
	switch to, err := answer.Location(); {
	case len(reasons) > 0:
		return reasons
	case answer.StatusCode/100 == 3 && err == nil:
		return []string{"it redirects to " + cli.Printable(to.Host) + ", where no token is sent: name that host by --to"}
	}
	return []string{fmt.Sprintf("%s answered %d %s, which is not an answer of the registry itself", answer.Request.URL.Host, answer.StatusCode, http.StatusText(answer.StatusCode))}
}

// CheckTaken checks that the answer to a PUT is that of a registry: a server that has none
// under this path may answer anything with 200.
func CheckTaken(answer []byte) error {
	var p wire.Publication
	if err := json.Unmarshal(answer, &p); err != nil || p.Status == "" {
		return errors.New("its answer is not that of a registry, so the file may be lost: check the address, and what is between here and the registry")
	}
	return nil
}

// Versions returns the versions that clients are offered.
func (c *Client) Versions(ctx context.Context, a address.Address) (map[string]bool, error) {
	r, err := c.Request(ctx, http.MethodGet, nil, ServicePath(a, "versions"))
	if err != nil {
		return nil, err
	}
	_, _, answer, err := c.Send(r)
	if err != nil {
		return nil, err
	}
	type versions []struct {
		Version string `json:"version"`
	}
	var document struct {
		Versions versions `json:"versions"` // of a provider
		Modules  []struct {
			Versions versions `json:"versions"`
		} `json:"modules"`
	}
	if err := json.Unmarshal(answer, &document); err != nil {
		return nil, errors.New("its list of versions is not JSON")
	}
	listed := make(map[string]bool)
	for _, m := range document.Modules {
		document.Versions = append(document.Versions, m.Versions...)
	}
	for _, v := range document.Versions {
		listed[v.Version] = true
	}
	return listed, nil
}
