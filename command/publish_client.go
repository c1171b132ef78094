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
	token   foundToken
}

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

// do sends a request for a path below the service. body may be nil. An answer other than
// a success is a *refusedError.
func (c *publishClient) do(ctx context.Context, method string, body *sentBody, segments ...string) (status int, answer []byte, err error) {
	u := c.service.ResolveReference(&url.URL{Path: strings.Join(segments, "/")})
	var open any
	if body != nil {
		open = body.open
	}
	r, err := retryablehttp.NewRequestWithContext(ctx, method, u.String(), open)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("User-Agent", userAgent)
	if c.token.secret != "" {
		r.Header.Set("Authorization", "Bearer "+c.token.secret)
	}
	if body != nil {
		r.ContentLength = body.file.size
		r.Header.Set("Content-Type", "application/octet-stream")
		r.Header.Set("Content-Digest", contentDigest(body.file.sha256))
		r.Header.Set("Expect", "100-continue")
	}
	response, err := c.http.Do(r)
	if err != nil {
		return 0, nil, errors.New(transportReason(err))
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode/100 != 2 {
		return response.StatusCode, nil, &refusedError{response.StatusCode, reasonsOf(response, answer)}
	}
	if err != nil {
		return response.StatusCode, nil, errors.New(transportReason(err))
	}
	return response.StatusCode, answer, nil
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
	f := body.file
	segments := []string{f.Address.Namespace, f.Address.Name, f.Version, f.Name}
	if f.Address.IsModule() {
		segments[2] = f.Address.System
	}
	status, answer, err := c.do(ctx, http.MethodPut, body, segments...)
	if err != nil {
		return status, err
	}
	// A server that has no registry under this path may answer anything with 200.
	var p wire.Publication
	if err := json.Unmarshal(answer, &p); err != nil || p.Status == "" {
		return status, errors.New("its answer is not that of a registry, so the file may be lost: check the address, and what is between here and the registry")
	}
	return status, nil
}

// state returns what is staged or published of a provider's version.
func (c *publishClient) state(ctx context.Context, a address.Address, version string) (p wire.Publication, err error) {
	_, answer, err := c.do(ctx, http.MethodGet, nil, a.Namespace, a.Name, version, "")
	if err == nil {
		err = json.Unmarshal(answer, &p)
	}
	return p, err
}

// drop discards what is staged of a provider's version, if there is something.
func (c *publishClient) drop(ctx context.Context, a address.Address, version string) error {
	_, _, err := c.do(ctx, http.MethodDelete, nil, a.Namespace, a.Name, version, "")
	var refused *refusedError
	if errors.As(err, &refused) && refused.status == http.StatusNotFound {
		return nil
	}
	return err
}

// versions returns the versions that clients are offered.
func (c *publishClient) versions(ctx context.Context, a address.Address) (map[string]bool, error) {
	segments := []string{a.Namespace, a.Name}
	if a.IsModule() {
		segments = append(segments, a.System)
	}
	_, answer, err := c.do(ctx, http.MethodGet, nil, append(segments, "versions")...)
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
