package pages

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
)

// moduleFile answers with a file of a module's package.
//
// Anyone may have written the file. The header tells a browser to run nothing in it,
// and to believe the type that the header names.
func (v *visit) moduleFile() (*answer, error) {
	m, version, err := v.view.ModuleVersion(v.route.Address, v.route.Version)
	if err != nil {
		if status, _ := handlers.Status(err); m == nil || status != http.StatusNotFound {
			return nil, err
		}
		return nil, fs.ErrNotExist
	}
	v.version = version.Version
	file, err := v.view.ModuleFile(version, v.route.Rest)
	if errors.Is(err, content.ErrFileTooLarge) {
		return v.failedWith(http.StatusNotFound, "This file is too large to be shown. Download the package to read it."), nil
	}
	if err != nil {
		return nil, err
	}
	a := &answer{status: http.StatusOK, body: file, tag: assets.Tag(file), policy: filePolicy}
	a.contentType = assets.ImageType(v.route.Rest)
	if a.contentType == "" {
		if !utf8.Valid(file) || strings.ContainsRune(string(file), 0) {
			return v.failedWith(http.StatusNotFound, "This file is neither text nor an image. Download the package to read it."), nil
		}
		a.contentType = "text/plain; charset=utf-8"
	}
	return a, nil
}
