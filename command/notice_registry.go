package command

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// registryNotices are the notices that a registry has about a provider or module.
type registryNotices struct {
	client *remote.Client
	to     remote.Destination
	etag   string // of the content that was read; empty: there was none
}

// openRegistryNotices finds the registry that --to names, and the token for it.
func openRegistryNotices(ctx context.Context, network remote.Network, fl caddycmd.Flags, text string) (*registryNotices, error) {
	to, names, err := remote.ParseRegistry(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--to: %w", err)
	case len(names) == 0:
		return nil, fmt.Errorf("--to: %q is a registry: name the address as well, as in %s/acme/vpc/aws", text, to)
	}
	if to.Address, err = parseAddress(strings.Join(names, "/")); err != nil {
		return nil, fmt.Errorf("--to: %w", err)
	}
	client, err := remote.Connect(ctx, network, remote.TokenFlags(fl, to.Hostname), to)
	return &registryNotices{client: client, to: to}, err
}

func (r *registryNotices) name() string  { return tree.MetadataName + " of " + r.about() }
func (r *registryNotices) about() string { return r.to.String() + "/" + r.to.Address.String() }
func (r *registryNotices) close()        { r.client.Close() }

// lock does nothing: the registry compares what it has with what was read.
func (r *registryNotices) lock(context.Context) (unlock func(), err error) { return func() {}, nil }

func (r *registryNotices) read(ctx context.Context) ([]byte, error) {
	answer, err := r.exchange(ctx, http.MethodGet, nil)
	switch {
	case remote.IsRefusedByRegistry(err, http.StatusNotFound):
		r.etag = ""
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", r.name(), err)
	}
	if r.etag = answer.Header.Get("ETag"); r.etag == "" {
		return nil, fmt.Errorf("%s: the answer has no ETag, so that it cannot be changed safely: check what is between here and the registry", r.name())
	}
	return answer.Body, nil
}

func (r *registryNotices) write(ctx context.Context, _, content []byte) error {
	if len(bytes.TrimSpace(content)) == 0 {
		content = []byte("\n") // removes the file; the registry takes an empty body for an interrupted request
	}
	_, err := r.exchange(ctx, http.MethodPut, content)
	if remote.IsRefused(err, http.StatusPreconditionFailed) {
		return tree.ErrMetadataChanged
	}
	return err
}

// exchange reads the file. With a body, it replaces the file unless the file has changed since
// it was read.
func (r *registryNotices) exchange(ctx context.Context, method string, body []byte) (remote.Answer, error) {
	var sent any
	if body != nil {
		sent = body
	}
	q, err := r.client.Request(ctx, method, sent, remote.ServicePath(r.to.Address, tree.MetadataName))
	if err != nil {
		return remote.Answer{}, err
	}
	switch {
	case body == nil:
		q.Header.Set("Accept-Encoding", "identity") // a proxy that compresses makes the ETag a weak one
	case r.etag == "":
		q.Header.Set("If-None-Match", "*")
	default:
		q.Header.Set("If-Match", r.etag)
	}
	return r.client.Send(q)
}

// known returns the versions that the registry offers. It may not tell: the right to withdraw
// does not include the right to read.
func (r *registryNotices) known(ctx context.Context) (k knownVersions) {
	k.where, k.offered, k.more = "that is offered there", true, r.to.Address.Hostname != ""
	listed, err := r.client.Versions(ctx, r.to.Address)
	switch {
	case remote.IsRefusedByRegistry(err, http.StatusNotFound):
		k.absent = "Nothing of it is offered there, or the token may not read it: check that the address is right."
	case err == nil:
		k.known = true
		for text := range listed {
			if v, err := address.ParseModuleVersion(text); err == nil {
				k.versions = append(k.versions, v)
			}
		}
		address.SortNewestFirst(k.versions, func(v *version.Version) *version.Version { return v })
	}
	return k
}
