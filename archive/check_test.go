package archive

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// CheckPackage agrees with a scan.
func TestCheckPackage(t *testing.T) {
	good := zipOf(binaryName, "a provider")
	f := fileOf(good)
	if _, err := f.Seek(5, io.SeekStart); err != nil { // wherever it stands
		t.Fatal(err)
	}
	linux := address.Platform{OS: "linux", Arch: "amd64"}
	d, err := CheckPackage(t.Context(), f, int64(len(good)), "demo", linux, wire.SHA256{})
	if err != nil || d.SHA256 != wire.SHA256Of(good) || len(d.PackageHashes()) != 1 || !strings.HasPrefix(d.PackageHashes()[0], "h1:") {
		t.Errorf("got %+v, %v", d, err)
	}
	if known, err := CheckPackage(t.Context(), f, int64(len(good)), "demo", linux, d.SHA256); err != nil || !reflect.DeepEqual(known, d) {
		t.Errorf("with a known sha256: got %+v, %v", known, err)
	}
	for _, test := range []struct {
		rule    string
		content []byte
		reason  tree.Reason
	}{
		{"another provider", zipOf("terraform-provider-other", "x"), tree.NoBinary},
		{"an entry that leaves", zipOf(binaryName, "x", "../x", "x"), tree.BadArchive},
		{"no zip", []byte("x"), tree.BadArchive},
		{"nothing", nil, tree.Empty},
	} {
		_, err := CheckPackage(t.Context(), fileOf(test.content), int64(len(test.content)), "demo", linux, wire.SHA256{})
		var bad *PackageError
		if !errors.As(err, &bad) || bad.Reason != test.reason || bad.Detail == "" || err.Error() != bad.Detail {
			t.Errorf("%s: got %v", test.rule, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := CheckPackage(ctx, fileOf(good), int64(len(good)), "demo", linux, wire.SHA256{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a check that is cut off: got %v", err)
	}
	var bad *PackageError
	if _, err := CheckPackage(t.Context(), failing{fileOf(good)}, int64(len(good)), "demo", linux, wire.SHA256{}); err == nil || errors.As(err, &bad) {
		t.Errorf("a disk that fails: got %v", err)
	}
}

// unseen is a package that was not watched while it arrived.
var unseen *Arriving

// CheckModule agrees with a scan.
func TestCheckModule(t *testing.T) {
	zipped, packed := zipOf("main.tf", ""), gzipOf(tarOf(tar.Header{Typeflag: tar.TypeReg, Name: "main.tf"}))
	var h1 []string
	for _, test := range []struct {
		name    string
		content []byte
	}{{"1.0.0.zip", zipped}, {"1.0.0.tar.gz", packed}, {"1.0.0.tgz", packed}} {
		f := fileOf(test.content)
		if _, err := f.Seek(5, io.SeekStart); err != nil { // wherever it stands
			t.Fatal(err)
		}
		d, err := unseen.CheckModule(t.Context(), f, int64(len(test.content)), test.name, wire.SHA256{})
		if err != nil || d.SHA256 != wire.SHA256Of(test.content) {
			t.Errorf("%s: got %+v, %v", test.name, d, err)
		}
		if known, err := unseen.CheckModule(t.Context(), f, int64(len(test.content)), test.name, d.SHA256); err != nil || !reflect.DeepEqual(known, d) {
			t.Errorf("%s with a known sha256: got %+v, %v", test.name, known, err)
		}
		h1 = append(h1, d.FileHashes.H1())
	}
	if !strings.HasPrefix(h1[0], "h1:") || h1[0] != h1[1] || h1[0] != h1[2] {
		t.Errorf("the same files have the hashes %v", h1)
	}
	for _, test := range []struct {
		rule, name string
		content    []byte
		reason     tree.Reason
	}{
		{"no module", "1.0.0.zip", zipOf("README.md", "x"), tree.NoConfiguration},
		{"an entry that leaves", "1.0.0.zip", zipOf("main.tf", "x", "../x", "x"), tree.BadArchive},
		{"another format", "1.0.0.tar.gz", zipped, tree.BadArchive},
		{"nothing", "1.0.0.tgz", nil, tree.Empty},
		{"no such name", "1.0.0.tar", packed, tree.BadName},
	} {
		_, err := unseen.CheckModule(t.Context(), fileOf(test.content), int64(len(test.content)), test.name, wire.SHA256{})
		var bad *PackageError
		if !errors.As(err, &bad) || bad.Reason != test.reason || bad.Detail == "" {
			t.Errorf("%s: got %v", test.rule, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := unseen.CheckModule(ctx, fileOf(zipped), int64(len(zipped)), "1.0.0.zip", wire.SHA256{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a check that is cut off: got %v", err)
	}
}
