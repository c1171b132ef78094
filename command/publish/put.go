package publish

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// do sends a request for a path below the service. body may be nil. An answer other than
// a success is a *refusedError.
func (s *sender) do(ctx context.Context, method string, body *sentBody, path string) (status int, answer []byte, err error) {
	var open any
	if body != nil {
		open = body.open
	}
	r, err := s.Request(ctx, method, open, path)
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		r.ContentLength = body.file.size
		r.Header.Set("Content-Type", "application/octet-stream")
		r.Header.Set("Content-Digest", contentDigest(body.file.sha256))
		r.Header.Set("Expect", "100-continue")
	}
	status, _, answer, err = s.Client.Send(r)
	return status, answer, err
}

// contentDigest is the header field by which a registry knows whether it has the bytes
// already (RFC 9530).
func contentDigest(sum wire.SHA256) string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// put sends a file, and returns the status of the answer.
func (s *sender) put(ctx context.Context, body *sentBody) (status int, err error) {
	status, answer, err := s.do(ctx, http.MethodPut, body, filePath(body.file))
	if err == nil {
		err = remote.CheckTaken(answer)
	}
	return status, err
}

// wouldTake asks for a file without sending it, and returns the status of the answer: an
// error with 404 if its bytes are needed.
func (s *sender) wouldTake(ctx context.Context, f publishFile) (status int, err error) {
	r, err := s.Request(ctx, http.MethodPut, nil, filePath(f))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Digest", contentDigest(f.sha256))
	r.Header.Set(headerOnly, "true")
	status, _, answer, err := s.Client.Send(r)
	if err == nil {
		err = remote.CheckTaken(answer)
	}
	return status, err
}

// filePath is where a file is sent to, below the service.
func filePath(f publishFile) string {
	if f.Address.IsModule() {
		return remote.ServicePath(f.Address, f.Name)
	}
	return remote.ServicePath(f.Address, f.Version, f.Name)
}

// state returns what is staged or published of a provider's version.
func (s *sender) state(ctx context.Context, a address.Address, version string) (p wire.Publication, err error) {
	_, answer, err := s.do(ctx, http.MethodGet, nil, remote.ServicePath(a, version, ""))
	if err == nil {
		err = json.Unmarshal(answer, &p)
	}
	return p, err
}

// drop discards what is staged of a provider's version, if there is something. Of a version
// that is published nothing is staged: what is sent then is compared with it.
func (s *sender) drop(ctx context.Context, a address.Address, version string) error {
	_, _, err := s.do(ctx, http.MethodDelete, nil, remote.ServicePath(a, version, ""))
	var refused *remote.RefusedError
	if errors.As(err, &refused) && (refused.Status == http.StatusNotFound || refused.Status == http.StatusConflict) {
		return nil
	}
	return err
}
