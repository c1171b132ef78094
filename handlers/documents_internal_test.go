package handlers

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// No spelling of a hostname equals the segment that stands for one, and no hostname is
// normalised to it.
func TestHostedSegmentIsNotAHostname(t *testing.T) {
	for _, s := range []string{hostedSegment, "－", "‐", hostedSegment + ":443", hostedSegment + ":8443"} {
		if h, err := address.ParseHostname(s); err == nil && (s[0] == '-' || strings.HasPrefix(string(h), hostedSegment)) {
			t.Errorf("%q is the hostname %q", s, h)
		}
	}
}
