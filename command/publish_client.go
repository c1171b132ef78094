package command

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A publishClient sends requests to the service of a registry that is published to.
type publishClient struct {
	http    *retryablehttp.Client
	service *url.URL
	token   *runToken
	hint    string // about the token
}

// newPublishClient finds the token for a registry.
func newPublishClient(ctx context.Context, n registryNetwork, tokens tokenFinder) (c publishClient, err error) {
	c.http = n.client(false)
	found, err := tokens.find(ctx, c.http)
	if err != nil {
		return c, err
	}
	c.token, c.hint = &runToken{finder: tokens, client: c.http, foundToken: found}, tokens.hint(found)
	return c, nil
}

// discover finds the service of a registry.
func (c *publishClient) discover(ctx context.Context, n registryNetwork, to destination) (err error) {
	c.service, err = n.discoverService(ctx, to)
	return err
}

func (c *publishClient) close() { c.http.HTTPClient.CloseIdleConnections() }

// discoverService finds the service of a registry that is published to.
func (n registryNetwork) discoverService(ctx context.Context, to destination) (*url.URL, error) {
	failed := func(err error) (*url.URL, error) { return nil, fmt.Errorf("%s: %w", to, err) }
	d, err := n.discover(ctx, to.base)
	switch {
	case errors.Is(err, errNoTLS):
		return failed(fmt.Errorf("%w: begin --to with http:// if that is meant", err))
	case err != nil:
		return failed(err)
	}
	kind := wire.ProvidersService
	if to.address.IsModule() {
		kind = wire.ModulesService
	}
	service, err := d.service(kind)
	switch {
	case err != nil:
		return failed(err)
	case service.Scheme != "https" && to.base.Scheme == "https":
		return failed(fmt.Errorf("its services are at %s, without TLS: no token is sent there", service.Host))
	}
	return service, nil
}

// A refusedError is an answer that is not a success.
type refusedError struct {
	status  int
	reasons []string // sentences for people
}

func (e *refusedError) Error() string { return strings.Join(e.reasons, " ") }

// advice is what to do about a refusal, beside its own reasons; empty: nothing is known.
func (c *publishClient) advice(e *refusedError) string {
	switch e.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return c.hint
	case http.StatusMethodNotAllowed:
		return "It does not accept publications: its operator has to configure publish."
	}
	return ""
}

// servicePath is the path of something of an address, relative to the service. That of
// another registry is beside the services of the one that is published to.
func servicePath(a address.Address, names ...string) string {
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

// request makes a request for a path below the service.
func (c *publishClient) request(ctx context.Context, method string, body any, path string) (*retryablehttp.Request, error) {
	u := c.service.ResolveReference(&url.URL{Path: path})
	r, err := retryablehttp.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", userAgent)
	secret, err := c.token.current(ctx)
	if err != nil {
		return nil, err
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	return r, nil
}

// do sends a request for a path below the service. body may be nil. An answer other than
// a success is a *refusedError.
func (c *publishClient) do(ctx context.Context, method string, body *sentBody, path string) (status int, answer []byte, err error) {
	var open any
	if body != nil {
		open = body.open
	}
	r, err := c.request(ctx, method, open, path)
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		r.ContentLength = body.file.size
		r.Header.Set("Content-Type", "application/octet-stream")
		r.Header.Set("Content-Digest", contentDigest(body.file.sha256))
		r.Header.Set("Expect", "100-continue")
	}
	status, _, answer, err = c.send(r)
	return status, answer, err
}

// send sends a request, and reads the answer. The status is zero if there is none.
func (c *publishClient) send(r *retryablehttp.Request) (status int, header http.Header, answer []byte, err error) {
	response, err := c.http.Do(r)
	if err != nil {
		return 0, nil, nil, errors.New(transportReason(err))
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode/100 != 2 {
		return response.StatusCode, nil, nil, &refusedError{response.StatusCode, reasonsOf(response, answer)}
	}
	if err != nil {
		return response.StatusCode, nil, nil, errors.New(transportReason(err))
	}
	return response.StatusCode, response.Header, answer, nil
}

// contentDigest is the header field by which a registry knows whether it has the bytes
// already (RFC 9530).
func contentDigest(sum wire.SHA256) string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
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
			reasons = append(reasons, printable(text[:min(len(text), maxReason)]))
		}
	}
	switch to, err := answer.Location(); {
	case len(reasons) > 0:
		return reasons
	case answer.StatusCode/100 == 3 && err == nil:
		return []string{"it redirects to " + printable(to.Host) + ", where no token is sent: name that host by --to"}
	}
	return []string{fmt.Sprintf("%s answered %d %s, which is not an answer of the registry itself", answer.Request.URL.Host, answer.StatusCode, http.StatusText(answer.StatusCode))}
}

// put sends a file, and returns the status of the answer.
func (c *publishClient) put(ctx context.Context, body *sentBody) (status int, err error) {
	status, answer, err := c.do(ctx, http.MethodPut, body, filePath(body.file))
	if err == nil {
		err = checkTaken(answer)
	}
	return status, err
}

// wouldTake asks for a file without sending it, and returns the status of the answer: an
// error with 404 if its bytes are needed.
func (c *publishClient) wouldTake(ctx context.Context, f publishFile) (status int, err error) {
	r, err := c.request(ctx, http.MethodPut, nil, filePath(f))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Digest", contentDigest(f.sha256))
	r.Header.Set(headerOnly, "true")
	status, _, answer, err := c.send(r)
	if err == nil {
		err = checkTaken(answer)
	}
	return status, err
}

// filePath is where a file is sent to, below the service.
func filePath(f publishFile) string {
	if f.Address.IsModule() {
		return servicePath(f.Address, f.Name)
	}
	return servicePath(f.Address, f.Version, f.Name)
}

// checkTaken checks that the answer to a PUT is that of a registry: a server that has none
// under this path may answer anything with 200.
func checkTaken(answer []byte) error {
	var p wire.Publication
	if err := json.Unmarshal(answer, &p); err != nil || p.Status == "" {
		return errors.New("its answer is not that of a registry, so the file may be lost: check the address, and what is between here and the registry")
	}
	return nil
}

// state returns what is staged or published of a provider's version.
func (c *publishClient) state(ctx context.Context, a address.Address, version string) (p wire.Publication, err error) {
	_, answer, err := c.do(ctx, http.MethodGet, nil, servicePath(a, version, ""))
	if err == nil {
		err = json.Unmarshal(answer, &p)
	}
	return p, err
}

// drop discards what is staged of a provider's version, if there is something. Of a version
// that is published nothing is staged: what is sent then is compared with it.
func (c *publishClient) drop(ctx context.Context, a address.Address, version string) error {
	_, _, err := c.do(ctx, http.MethodDelete, nil, servicePath(a, version, ""))
	var refused *refusedError
	if errors.As(err, &refused) && (refused.status == http.StatusNotFound || refused.status == http.StatusConflict) {
		return nil
	}
	return err
}

// versions returns the versions that clients are offered.
func (c *publishClient) versions(ctx context.Context, a address.Address) (map[string]bool, error) {
	_, answer, err := c.do(ctx, http.MethodGet, nil, servicePath(a, "versions"))
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
