package handlers

import (
	"errors"
	"io/fs"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// ProviderRelease looks up a release of a provider like Provider; an empty version is
// the latest. One that an Upstream has is fetched if it is not in the tree. If there is
// the provider without that version, it is returned with the error.
func (v *View) ProviderRelease(a address.Address, version string) (*index.Provider, *index.Release, error) {
	if err := v.resolve(KindProviderVersions, a); err != nil {
		return nil, nil, err
	}
	return v.registry.findRelease(v.request, version)
}

// Docs lists the documentation of a release that was looked up; nil if there is none.
func (v *View) Docs(r *index.Release) (*index.Docs, error) {
	d, err := v.Snapshot().Docs(v.request.Context(), r)
	return d, v.unreadable("documentation of the release", err)
}

// ReadDoc returns the text of a page of that documentation. It is cut if it is too
// long. The error is fs.ErrNotExist if it is no longer there.
func (v *View) ReadDoc(p *index.DocPage) (text string, cut bool, err error) {
	text, cut, err = v.Snapshot().ReadDoc(v.request.Context(), p)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	return text, cut, v.unreadable("documentation of the release", err)
}
