package publish

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// put sends a file.
func (s *sender) put(ctx context.Context, body *sentBody) (remote.Answer, error) {
	r, err := s.request(ctx, body.open, body.file)
	if err != nil {
		return remote.Answer{}, err
	}
	r.ContentLength = body.file.size
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("Expect", "100-continue")
	return s.Client.Send(r)
}

// wouldTake asks for a file without sending it. The answer is 404 if the registry needs the bytes
// of the file.
func (s *sender) wouldTake(ctx context.Context, f upload) (remote.Answer, error) {
	r, err := s.request(ctx, nil, f)
	if err != nil {
		return remote.Answer{}, err
	}
	r.Header.Set(headerOnly, "true")
	return s.Client.Send(r)
}

// request makes a PUT of a file. By its digest (RFC 9530), a registry knows whether it has
// the bytes already.
func (s *sender) request(ctx context.Context, body any, f upload) (*retryablehttp.Request, error) {
	r, err := s.Client.Request(ctx, http.MethodPut, body, filePath(f))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(f.sha256[:])+":")
	return r, nil
}

// filePath is the path of a file below the service.
func filePath(f upload) string {
	if f.Address.IsModule() {
		return remote.ServicePath(f.Address, f.Name)
	}
	return remote.ServicePath(f.Address, f.Version, f.Name)
}

// state returns what is staged or published of a provider's version.
func (s *sender) state(ctx context.Context, a address.Address, version string) (p wire.Publication, err error) {
	answer, err := s.Do(ctx, http.MethodGet, remote.ServicePath(a, version, ""))
	if err == nil {
		err = json.Unmarshal(answer.Body, &p)
	}
	return p, err
}

// drop discards what is staged of a provider's version. Nothing is staged of a version that
// is published: files that are sent are compared with it.
func (s *sender) drop(ctx context.Context, a address.Address, version string) error {
	_, err := s.Do(ctx, http.MethodDelete, remote.ServicePath(a, version, ""))
	if remote.IsRefusedByRegistry(err, http.StatusNotFound, http.StatusConflict) {
		return nil
	}
	return err
}
