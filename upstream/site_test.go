package upstream_test

import (
	"context"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// The origin of the tests.
type site = upstreamtest.Site

var (
	newSite   = upstreamtest.NewSite
	newAcme   = upstreamtest.NewAcme
	acme      = upstreamtest.AcmeTree
	status    = upstreamtest.Status
	body      = upstreamtest.Body
	redirect  = upstreamtest.Redirect
	demo      = upstreamtest.Demo
	linux     = upstreamtest.Linux
	v1        = upstreamtest.V1
	roots     = upstreamtest.Roots
	resolving = upstreamtest.Resolving
	newClient = upstreamtest.NewClient
	mustFail  = upstreamtest.MustFail
)

const (
	host       = upstreamtest.Host
	discovery  = upstreamtest.DiscoveryPath
	versions   = upstreamtest.VersionsPath
	metadata   = upstreamtest.DownloadPath
	files      = upstreamtest.FilesPath
	zipFile    = upstreamtest.ZipPath
	sumsFile   = upstreamtest.ChecksumsPath
	sigFile    = upstreamtest.SignaturePath
	mirrorBase = upstreamtest.MirrorURL
)

func background() context.Context { return context.Background() }
