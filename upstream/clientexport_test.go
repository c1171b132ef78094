package upstream

import (
	"net/netip"
)

func CheckIP(ip netip.Addr) error { return checkIP(ip) }

const (
	FailuresInARow = failuresInARow
	MaxResumes     = maxResumes
	DiscoveryLife  = discoveryLife
	MaxDiscovery   = maxDiscovery
	MaxChecksums   = maxChecksums
	MaxSignature   = maxSignature
	MaxManifest    = maxManifest
)
