package upstream

import (
	"net/netip"
	"time"
)

// What the tests of this package use.
const (
	FailuresInARow    = failuresInARow
	BreakerPause      = breakerPause
	MinRate           = minRate
	RateWindow        = rateWindow
	DiscoveryLifetime = discoveryLifetime
	MaxDocuments      = maxDocuments
	MaxChecksums      = maxChecksums
)

func CheckIP(ip netip.Addr) error { return checkIP(ip) }

// LimitPackages replaces MaxPackage.
func LimitPackages(c *Client, bytes int64) { c.maxPackage = bytes }

type Pace = pace

func (p *pace) TooSlow(n int, took time.Duration) bool { return p.tooSlow(n, took) }
