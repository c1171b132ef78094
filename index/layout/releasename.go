package layout

import (
	"errors"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// VersionOf returns the version of an entry of a provider's folder, by its name alone, since the
// entry cannot be read; empty if the entry does not belong to a release. only is the version of
// the folder around it, if there is one. isPackage reports whether the entry is a package, and
// neither a document nor a folder that may have documents.
func VersionOf(p *address.ReleaseFileParser, name, only string) (version string, isPackage bool) {
	if v, err := p.ParseVersion(name); err == nil && only == "" {
		return v.String(), false
	}
	f, err := p.Parse(name)
	_, noPlatform := address.ParsePlatformName(name)
	isPlatform := noPlatform == nil
	isPackage = isPlatform || err == nil && f.Kind == address.PackageFile
	switch {
	case only == "" && err == nil:
		return f.Text, isPackage
	case only != "" && (err == nil || isPlatform || name == tree.UploadName):
		return only, isPackage
	}
	return "", false
}

// BadReleaseName returns the finding for a name that the parser of release files refuses.
func BadReleaseName(err error) *tree.Finding {
	switch {
	case errors.Is(err, address.ErrOtherProvider):
		return tree.Findingf(tree.NameMismatch, "%v", err)
	case errors.Is(err, address.ErrPackageName):
		return tree.Findingf(tree.BadName, "%v", err)
	}
	return tree.Findingf(tree.BadVersion, "%v", err)
}
