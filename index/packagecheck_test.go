package index

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// CheckPackage says of a package what a scan would.
func TestCheckPackage(t *testing.T) {
	good := zipOf(binaryName, "a provider")
	f := fileOf(good)
	if _, err := f.Seek(5, io.SeekStart); err != nil { // wherever it stands
		t.Fatal(err)
	}
	linux := address.Platform{OS: "linux", Arch: "amd64"}
	d, err := CheckPackage(t.Context(), f, int64(len(good)), "demo", linux)
	if err != nil || d.SHA256 != sha256Of(good) || len(d.H1) != 1 || !strings.HasPrefix(d.H1[0], "h1:") {
		t.Errorf("got %+v, %v", d, err)
	}
	for _, test := range []struct {
		rule    string
		content []byte
		reason  Reason
	}{
		{"another provider", zipOf("terraform-provider-other", "x"), NoBinary},
		{"an entry that leaves", zipOf(binaryName, "x", "../x", "x"), BadArchive},
		{"no zip", []byte("x"), BadArchive},
		{"nothing", nil, Empty},
	} {
		_, err := CheckPackage(t.Context(), fileOf(test.content), int64(len(test.content)), "demo", linux)
		var bad *PackageError
		if !errors.As(err, &bad) || bad.Reason != test.reason || bad.Detail == "" || err.Error() != bad.Detail {
			t.Errorf("%s: got %v", test.rule, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := CheckPackage(ctx, fileOf(good), int64(len(good)), "demo", linux); !errors.Is(err, context.Canceled) {
		t.Errorf("a check that is cut off: got %v", err)
	}
	var bad *PackageError
	if _, err := CheckPackage(t.Context(), failing{fileOf(good)}, int64(len(good)), "demo", linux); err == nil || errors.As(err, &bad) {
		t.Errorf("a disk that fails: got %v", err)
	}
}
