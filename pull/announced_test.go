package pull

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var linuxAMD64, darwinARM64 = address.Platform{OS: "linux", Arch: "amd64"}, address.Platform{OS: "darwin", Arch: "arm64"}

// announcing returns a release of two platforms whose origin announces the hashes of
// both.
func announcing() *upstream.Release {
	r := &upstream.Release{
		Address: address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"}, Version: "1.0.0",
		Sums: make(wire.Checksums), Protocols: []string{"5.0", "6.0"}, Announced: make(map[address.Platform]wire.PackageHashes),
	}
	for i, p := range []address.Platform{linuxAMD64, darwinARM64} {
		sum := wire.SHA256{byte(i + 1)}
		r.Sums[address.PackageName("demo", "1.0.0", p)] = sum
		r.Announced[p] = wire.PackageHashes{Hashes: []string{"h1:" + strings.Repeat("A", 43) + "=", "zh:" + sum.String()}, Size: 1000}
	}
	return r
}

// Kept hashes are announced again for packages that have not changed.
func TestAnnouncedHashesAreKept(t *testing.T) {
	r := announcing()
	content := string(encodeAnnounced(r))
	if encodeAnnounced(&upstream.Release{Protocols: r.Protocols}) != nil {
		t.Error("something is kept where nothing is announced")
	}
	both := []address.Platform{darwinARM64, linuxAMD64}
	for _, test := range []struct {
		rule string
		edit [2]string // of the content: an old and a new text
		want []address.Platform
	}{
		{"as they were written", [2]string{}, both},
		{"not with another sum", [2]string{"zh:01", "zh:03"}, both[:1]},
		{"not without a size", [2]string{`"package_size":1000}}`, `"package_size":0}}`}, both[:1]},
		{"not with a negative size", [2]string{`"package_size":1000}}`, `"package_size":-1}}`}, both[:1]},
		{"not with a hash of another kind", [2]string{`"h1:`, `"h9:`}, both[1:]},
		{"not of a platform that is not listed", [2]string{"linux_amd64", "linux_arm64"}, both[:1]},
		{"not of what is no platform", [2]string{"linux_amd64", "linux"}, both[:1]},
		{"nothing of another format", [2]string{`"format":1`, `"format":2`}, nil},
		{"nothing of a damaged file", [2]string{"{", "["}, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			now := announcing()
			now.Announced, now.Protocols = nil, nil
			decodeAnnounced([]byte(strings.Replace(content, test.edit[0], test.edit[1], 1)), now)
			got := slices.SortedFunc(maps.Keys(now.Announced), address.Platform.Compare)
			if !slices.Equal(got, test.want) {
				t.Errorf("they are told of %v, want %v", got, test.want)
			}
			if test.edit == [2]string{} && !reflect.DeepEqual(now, r) {
				t.Errorf("it was %+v, and is now %+v", r, now)
			}
		})
	}
}

func FuzzDecodeAnnounced(f *testing.F) {
	f.Add(encodeAnnounced(announcing()))
	f.Add([]byte(`{"format":1,"packages":{"linux_amd64":{}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		r := announcing()
		r.Announced = nil
		decodeAnnounced(content, r)
		for p, hashes := range r.Announced {
			if !agreesWithSums(hashes, p, r) {
				t.Errorf("%s has %+v", p, hashes)
			}
		}
	})
}
