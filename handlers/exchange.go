package handlers

import (
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Kind is what a request asks for. There are few, so that metrics can be
// told apart by it.
type Kind int

// The kinds of requests.
const (
	KindOther Kind = iota // of the registry's paths, but nothing that is there
	KindDiscovery
	KindProviderVersions
	KindProviderDownload
	KindModuleVersions
	KindModuleDownload
	KindModuleArchive
	KindMirrorIndex
	KindMirrorArchives
	KindProviderFile

	// Kinds is how many there are.
	Kinds
)

var kindNames = [Kinds]string{
	"other", "discovery", "provider_versions", "provider_download", "module_versions",
	"module_download", "module_archive", "mirror_index", "mirror_archives", "provider_file",
}

func (k Kind) String() string { return kindNames[k] }

// An Exchange is what a request was about, and how it was answered.
type Exchange struct {
	Kind Kind

	// Version and Platform as they were asked for, of what exists; or empty.
	Version, Platform string

	// Status of the answer, and the bytes of its body as announced: a client
	// may have left before the last.
	Status int
	Bytes  int64

	provider *address.Address
	module   *address.Address
}

// Address is that of the provider or the module, if there is such a one.
func (e *Exchange) Address() string {
	switch {
	case e.provider != nil:
		return e.provider.String()
	case e.module != nil:
		return e.module.String()
	}
	return ""
}

// answered notes how it went.
func (e *Exchange) answered(r *http.Request, status int, bytes int64) {
	e.Status = status
	if r.Method != http.MethodHead {
		e.Bytes = bytes
	}
}
