package offer

import (
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

func TestEveryFormatOfAModuleHasAMediaType(t *testing.T) {
	for _, format := range address.DistinctModuleFormats() {
		if got := contentTypeOf("archive." + format); got == textType {
			t.Errorf("archive.%s is served as %s", format, got)
		}
	}
}
