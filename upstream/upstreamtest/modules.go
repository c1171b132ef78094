package upstreamtest

import (
	"bytes"
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// VPC is the module of ModuleService.
var VPC = address.Address{Hostname: Host, Namespace: "acme", Name: "vpc", System: "aws"}

// The paths of VPC.
const (
	ModulePath         = "/v1/modules/acme/vpc/aws"
	ModuleVersionsPath = ModulePath + "/versions"
	ModuleDownloadPath = ModulePath + "/1.0.0/download"
	ModuleArchivePath  = "/files/vpc-1.0.0.tar.gz"
)

// ModuleService makes the site answer as a module registry that has only VPC 1.0.0,
// whose files are at a location.
func (s *Site) ModuleService(location string) {
	s.Fault(ModuleVersionsPath, Body(`{"modules":[{"versions":[{"version":"1.0.0"}]}]}`))
	s.Fault(ModuleDownloadPath, Location(location))
}

// ModuleArchive is like ModuleService, with an archive. more is appended to its
// location: a folder, or a query.
func (s *Site) ModuleArchive(packed, more string) {
	s.ModuleService(ModuleArchivePath + more)
	s.Fault(ModuleArchivePath, Content(packed))
}

// Location answers as a module registry with the location of a package.
func Location(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Terraform-Get", location)
		w.WriteHeader(http.StatusNoContent)
	}
}

// Content answers with a file, and supports ranges.
func Content(file string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"1"`)
		http.ServeContent(w, r, "", indextest.Born, bytes.NewReader([]byte(file)))
	}
}
