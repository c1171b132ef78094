package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Client sends requests to a service of a registry.
type Client struct {
	network Network
	http    *retryablehttp.Client
	service *url.URL
	token   *runToken
	Hint    string // what to do if the registry refuses the token, or the lack of a token
}

// NewClient finds the token for a registry.
func NewClient(ctx context.Context, n Network, tokens TokenFinder) (*Client, error) {
	c := &Client{network: n, http: n.client(false)}
	found, err := tokens.find(ctx, c.http)
	if err != nil {
		return nil, err
	}
	c.token, c.Hint = &runToken{finder: tokens, client: c.http, foundToken: found}, tokens.hint(found)
	return c, nil
}

// Connect finds the token for a registry, and the service for an address.
func Connect(ctx context.Context, n Network, tokens TokenFinder, to Destination) (*Client, error) {
	c, err := NewClient(ctx, n, tokens)
	if err != nil {
		return nil, err
	}
	return c, c.Discover(ctx, to)
}

// HasToken reports whether there is a token.
func (c *Client) HasToken() bool { return c.token.secret != "" }

// Discover finds the service for an address.
func (c *Client) Discover(ctx context.Context, to Destination) error {
	failed := func(err error) error { return fmt.Errorf("%s: %w", to, err) }
	d, err := c.network.Discover(ctx, to.Base)
	switch {
	case errors.Is(err, errNoTLS):
		return failed(fmt.Errorf("%w: begin --to with http:// if that is meant", err))
	case err != nil:
		return failed(err)
	}
	kind := wire.ProvidersService
	if to.Address.IsModule() {
		kind = wire.ModulesService
	}
	c.service, err = d.Service(kind)
	switch {
	case err != nil:
		return failed(err)
	case c.service.Scheme != "https" && to.Base.Scheme == "https":
		return failed(fmt.Errorf("its services are at %s, without TLS: no token is sent there", c.service.Host))
	}
	return nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.HTTPClient.CloseIdleConnections() }

// A RefusedError is an answer that is not a success.
type RefusedError struct {
	Status  int
	Reasons []string // sentences for people
	Advice  string   // a sentence; empty: unknown

	// Own means that the answer has the registry's own form. Any other answer may be that of
	// a server in front of it, such as a proxy, which does not know what the registry has.
	Own bool
}

func (e *RefusedError) Error() string {
	text := strings.Join(e.Reasons, " ")
	if e.Advice != "" {
		text += ". " + e.Advice
	}
	return text
}

// IsRefused reports whether an error is an answer with one of the statuses.
func IsRefused(err error, statuses ...int) bool {
	refused, ok := errors.AsType[*RefusedError](err)
	return ok && slices.Contains(statuses, refused.Status)
}

// IsRefusedByRegistry reports whether an error is the registry's own answer with one of the
// statuses. Where a status tells what the registry has, as 404 does, only its own answer counts.
func IsRefusedByRegistry(err error, statuses ...int) bool {
	refused, ok := errors.AsType[*RefusedError](err)
	return ok && refused.Own && slices.Contains(statuses, refused.Status)
}

// advice says what to do about a refusal.
func (c *Client) advice(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return c.Hint
	case http.StatusMethodNotAllowed:
		return "It does not accept publications: its operator has to configure publish."
	}
	return ""
}

// ServicePath is a path below an address, relative to the service. The paths of other
// registries are beside the services of the registry that is asked.
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
	r.Header.Set("User-Agent", UserAgent)
	secret, err := c.token.current(ctx)
	if err != nil {
		return nil, err
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	return r, nil
}

// An Answer is a success.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte

	Publication wire.Publication // of a PUT; its message can be printed
}

// Send sends a request, and reads the answer. Any answer but a success is a *RefusedError.
func (c *Client) Send(r *retryablehttp.Request) (a Answer, err error) {
	response, err := c.http.Do(r)
	if err != nil {
		return a, errors.New(transportReason(err))
	}
	defer response.Body.Close()
	a = Answer{Status: response.StatusCode, Header: response.Header}
	a.Body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case a.Status/100 != 2:
		reasons, own := reasonsOf(response, a.Body)
		return a, &RefusedError{a.Status, reasons, c.advice(a.Status), own}
	case err != nil:
		return a, errors.New(transportReason(err))
	case r.Method == http.MethodPut:
		a.Publication, err = publication(a.Body)
		return a, err
	}
	return a, nil
}

// Do sends a request without a body.
func (c *Client) Do(ctx context.Context, method, path string) (Answer, error) {
	r, err := c.Request(ctx, method, nil, path)
	if err != nil {
		return Answer{}, err
	}
	return c.Send(r)
}

// Bounds of the reasons that are printed: their number, and the length of each in bytes.
const (
	maxReasons = 20
	maxReason  = 2_000
)

// reasonsOf returns the sentences of an answer that is not a success. Answers of other
// servers, such as a proxy, have no such sentences, and are not the registry's own.
func reasonsOf(answer *http.Response, body []byte) (reasons []string, own bool) {
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
		return reasons, true
	case answer.StatusCode/100 == 3 && err == nil:
		return []string{redirection(answer.Request.URL, to)}, false
	}
	return []string{fmt.Sprintf("%s answered %d %s, which is not an answer of the registry itself", answer.Request.URL.Host, answer.StatusCode, http.StatusText(answer.StatusCode))}, false
}

// redirection says what to do about a redirect. It leaves out the query, which may have secrets.
func redirection(from, to *url.URL) string {
	switch {
	case !strings.EqualFold(from.Hostname(), to.Hostname()) || from.Scheme == to.Scheme && portOf(from) != portOf(to):
		return "it redirects to " + cli.Printable(to.Host) + ", where no token is sent: name that host by --to if it is the registry"
	case from.Scheme == "http" && to.Scheme == "https":
		return "it redirects to https://" + cli.Printable(to.Host) + ": name that by --to"
	}
	path := cmp.Or(to.EscapedPath(), "/")
	return "it redirects to " + cli.Printable(path[:min(len(path), maxReason)]) + ", as a login page in front of it does: check what is between here and the registry"
}

// portOf returns the port that a URL leads to.
func portOf(u *url.URL) string {
	if port := u.Port(); port != "" || u.Scheme != "https" {
		return cmp.Or(port, "80")
	}
	return "443"
}

// publication reads the answer of a registry to a PUT: a server without a registry at this path may
// answer 200 to anything.
func publication(answer []byte) (p wire.Publication, err error) {
	if err := json.Unmarshal(answer, &p); err != nil || p.Status == "" {
		return p, errors.New("its answer is not that of a registry, so the file may be lost: check the address, and what is between here and the registry")
	}
	p.Message = cli.Printable(p.Message[:min(len(p.Message), maxReason)])
	return p, nil
}

// Versions returns the versions that clients are offered.
func (c *Client) Versions(ctx context.Context, a address.Address) (map[string]bool, error) {
	answer, err := c.Do(ctx, http.MethodGet, ServicePath(a, "versions"))
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
	if err := json.Unmarshal(answer.Body, &document); err != nil {
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
