package handlers

import (
	"errors"
	"io/fs"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// ModuleVersion looks up a version of a module like Module. An empty version is the
// latest. A version that the tree lacks is not fetched. If only the version is missing,
// ModuleVersion returns the module with the error.
func (v *View) ModuleVersion(a address.Address, version string) (*index.Module, *index.ModuleVersion, error) {
	if err := v.resolve(KindModuleVersions, a); err != nil {
		return nil, nil, err
	}
	return v.registry.findModule(v.request, version)
}

// Describe returns the variables, outputs and other parts of a version of a module that
// was looked up.
func (v *View) Describe(m *index.ModuleVersion) (*moduledoc.Package, error) {
	p, err := v.Snapshot().Describe(v.request.Context(), m)
	return p, v.unreadable("package of the module", err)
}

// ModuleFiles lists the files of the package of a module that was looked up.
func (v *View) ModuleFiles(m *index.ModuleVersion) (*content.Files, error) {
	f, err := v.Snapshot().ListModule(v.request.Context(), m)
	return f, v.unreadable("package of the module", err)
}

// ModuleFile returns a file of the package of a module that was looked up, by its path
// from the root module. The error is fs.ErrNotExist if there is none, and
// content.ErrFileTooLarge if it is too large.
func (v *View) ModuleFile(m *index.ModuleVersion, name string) ([]byte, error) {
	text, err := v.Snapshot().ReadModuleFile(v.request.Context(), m, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, content.ErrFileTooLarge) {
		return nil, err
	}
	return text, v.unreadable("package of the module", err)
}

// ProviderRelease looks up a release of a provider like Provider. An empty version is
// the latest. A release that the tree lacks is not fetched. If only the release is missing,
// ProviderRelease returns the provider with the error.
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

// unreadable returns the answer if a part of the tree cannot be read, and nil without
// an error.
func (v *View) unreadable(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tree.ErrChanged):
		v.registry.changed()
		return errReplaced
	case v.request.Context().Err() != nil:
		return errTooSlow
	}
	return unavailable("the "+what+" cannot be read at the moment: try again in a moment", err)
}
