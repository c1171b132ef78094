package handlers

import (
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// What is taken for the normal form at a glance is what the clients' own library
// makes of it.
func FuzzNormalForms(f *testing.F) {
	for _, s := range []string{
		"", "a", "acme", "google-beta", "-", "-a", "a-", "a--b", "xn--bcher-kva", "a_b", "_a", "A", "0", "1a", "é", "ａ", "terraform-x", "a.b", "a..b", ".a", "a.",
		"registry.example.com", "xn--bcher-kva.example.com", "localhost", "localhost:8443", "a:443", "a:0", "a:08", "a:99999", "127.0.0.1:9000", "a.-b.c", "[::1]",
		"0123456789012345678901234567890123456789012345678901234567890123", "01234567890123456789012345678901234567890123456789012345678901234",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if isNormalHostname(s) {
			if h, err := index.ParseHostname(s); err != nil || string(h) != s {
				t.Errorf("the hostname %q is %q, %v", s, h, err)
			}
		}
		if isNormalProviderName(s) {
			if a, err := index.ParseProviderAddress("", s, "x"); err != nil || a.Namespace != s {
				t.Errorf("the namespace %q is %q, %v", s, a.Namespace, err)
			}
			a, err := providerAddress("", "x", s)
			if b, other := index.ParseProviderAddress("", "x", s); a != b || (err == nil) != (other == nil) {
				t.Errorf("the type %q is %v, %v and %v, %v", s, a, err, b, other)
			}
		}
		if isNormalModuleName(s) {
			if a, err := index.ParseModuleAddress("", s, s, "aws"); err != nil || a.Namespace != s || a.Name != s {
				t.Errorf("the module name %q is %v, %v", s, a, err)
			}
		}
		if isNormalSystem(s) {
			if a, err := index.ParseModuleAddress("", "acme", "vpc", s); err != nil || a.System != s {
				t.Errorf("the system %q is %v, %v", s, a, err)
			}
		}
	})
}

// What stands for the HOSTNAME of hosted files is no hostname, however it is
// written, nor is any hostname normalised to it.
func TestHostedSegmentIsNoHostname(t *testing.T) {
	for _, s := range []string{hostedSegment, "－", "‐", hostedSegment + ":443", hostedSegment + ":8443"} {
		if h, err := hostname(s); err == nil && (s[0] == '-' || strings.HasPrefix(string(h), hostedSegment)) {
			t.Errorf("%q is the hostname %q", s, h)
		}
	}
}
