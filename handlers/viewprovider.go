package handlers

import (
	"errors"
	"io/fs"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
)

// ProviderRelease looks up a release of a provider like Provider. An empty version is
// the latest. A release that the tree lacks is fetched if an Upstream has it. If only
// the release is missing, ProviderRelease returns the provider with the error.
func (v *View) ProviderRelease(a address.Address, version string) (*index.Provider, *index.Release, error) {
	if err := v.resolve(KindProviderVersions, a); err != nil {
		return nil, nil, err
	}
	return v.registry.findRelease(v.request, version)
}

// Docs lists the documentation of a release that was looked up, or returns nil if there
// is none.
func (v *View) Docs(r *index.Release) (*content.Docs, error) {
	d, err := v.Snapshot().Docs(v.request.Context(), r)
	return d, v.unreadable("documentation of the release", err)
}

// ReadDoc returns the text of a page of that documentation, cut if it is too long. The
// error is fs.ErrNotExist if the page is gone.
func (v *View) ReadDoc(p *content.DocPage) (text string, cut bool, err error) {
	text, cut, err = v.Snapshot().ReadDoc(v.request.Context(), p)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	return text, cut, v.unreadable("documentation of the release", err)
}
