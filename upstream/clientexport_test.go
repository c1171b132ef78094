package upstream

import (
	"context"
	"net"
	"net/netip"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Through has a test see every connection that is made, with the dialer that
// was chosen for it.
func Through(f func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error)) Option {
	return func(s *settings) { s.connect = f }
}

func CheckIP(ip netip.Addr) error { return checkIP(ip) }

const (
	FailuresInARow = failuresInARow
	MaxResumes     = maxResumes
	DiscoveryLife  = discoveryLife
	MaxDiscovery   = maxDiscovery
	MostDownloads  = mostDownloads
	MostDocuments  = mostDocuments
	MostWaiting    = mostWaiting
	MostVersions   = wire.MaxVersions
	Spare          = spare
	MostReleases   = mostReleases
	MaxChecksums   = maxChecksums
	MaxSignature   = maxSignature
	MaxManifest    = maxManifest
)
