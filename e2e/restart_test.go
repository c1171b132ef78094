package e2e_test

import (
	"strings"
	"testing"
)

// After a restart, clients get the same bytes: existing lock files remain
// valid, even if the registry itself signs and packs.
func TestRestart(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("acme/demo", "1.0.0").
		Module("acme/vpc/aws", "1.0.0", asFolder)
	s := site("registry.example.com", files)
	registry := startRegistry(t, s)
	urls := []string{
		"https://registry.example.com/v1/providers/acme/demo/1.0.0/download/" + strings.ReplaceAll(thisPlatform, "_", "/"),
		"https://registry.example.com/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS",
		"https://registry.example.com/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS.sig",
		"https://registry.example.com/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz",
	}
	before := map[string]Response{}
	for _, url := range urls {
		if before[url] = registry.Get(t, url); before[url].Status != 200 {
			t.Fatalf("%s: %d %s", url, before[url].Status, before[url].Body)
		}
	}

	registry.Restart(t, s)
	for _, url := range urls {
		after := registry.Get(t, url)
		if after.Body != before[url].Body {
			t.Errorf("%s has other bytes after the restart", url)
		}
		if got, want := after.Header.Get("ETag"), before[url].Header.Get("ETag"); got != want {
			t.Errorf("%s has the ETag %s after the restart, before: %s", url, got, want)
		}
	}
}
