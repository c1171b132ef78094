package offer

import (
	"slices"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func TestListedArchivesAreOfTheRelease(t *testing.T) {
	sum := wire.SHA256{1}
	sums := wire.Checksums{
		"terraform-provider-null_3.2.0_linux_amd64.zip":   sum,
		"terraform-provider-null_3.2.0_darwin_arm64.zip":  sum,
		"terraform-provider-null_3.2.1_linux_amd64.zip":   sum, // another version
		"terraform-provider-other_3.2.0_linux_amd64.zip":  sum, // another provider
		"terraform-provider-null_3.2.0_manifest.json":     sum,
		"terraform-provider-null_3.2.0_LINUX_amd64.zip":   sum, // no platform
		"../terraform-provider-null_3.2.0_linux_386.zip":  sum,
		"terraform-provider-null_3.2.0_linux_386.zip.zip": sum,
	}
	var names []string
	for _, o := range listedArchives("null", "3.2.0", sums) {
		names = append(names, o.URL)
	}
	want := []string{"terraform-provider-null_3.2.0_darwin_arm64.zip", "terraform-provider-null_3.2.0_linux_amd64.zip"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}
