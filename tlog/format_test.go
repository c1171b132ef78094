package tlog

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

const (
	h1    = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	zh    = "zh:0000000000000000000000000000000000000000000000000000000000000001"
	nonce = "9f0102030405060708090a0b0c0d0e0f"
)

func TestLeaves(t *testing.T) {
	at := time.Date(2026, 11, 24, 22, 0, 0, 0, time.UTC)
	var n [16]byte
	if _, err := hex.Decode(n[:], []byte(nonce)); err != nil {
		t.Fatal(err)
	}
	parse := func(s string) address.Address {
		a, err := address.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, test := range []struct {
		leaf Leaf
		text string
	}{
		{
			Leaf{Event: Offered, Time: at, Address: parse("acme/vpc/aws"), Version: "1.2.0", Hashes: []string{h1, zh}, Nonce: n},
			"offered 2026-11-24T22:00:00Z module acme/vpc/aws 1.2.0 " + h1 + " " + zh + " " + nonce,
		},
		{
			Leaf{Event: Found, Time: at, Address: parse("acme/vpc/aws"), Version: "1.2.0", Hashes: []string{h1, h1, zh}, Pack: 1, Nonce: n},
			"found 2026-11-24T22:00:00Z module acme/vpc/aws 1.2.0 " + h1 + " " + h1 + " " + zh + " pack:1 " + nonce,
		},
		{
			Leaf{Event: Offered, Time: at, Address: parse("registry.terraform.io/hashicorp/aws"), Version: "5.0.0-beta.1+build", Platform: address.Platform{OS: "linux", Arch: "amd64"}, Hashes: []string{h1, zh}, Key: "C5F323384ED56B62", Origin: at.Add(-time.Hour), Nonce: n},
			"offered 2026-11-24T22:00:00Z provider registry.terraform.io/hashicorp/aws 5.0.0-beta.1+build linux_amd64 " + h1 + " " + zh + " key:C5F323384ED56B62 origin:2026-11-24T21:00:00Z " + nonce,
		},
		{
			Leaf{Event: Offered, Time: at, Address: parse("acme/vpc/aws"), Version: "1.2.0", Hashes: []string{h1, zh}, Commit: strings.Repeat("0a", 20), Nonce: n},
			"offered 2026-11-24T22:00:00Z module acme/vpc/aws 1.2.0 " + h1 + " " + zh + " commit:" + strings.Repeat("0a", 20) + " " + nonce,
		},
		{
			Leaf{Event: Withdrawn, Time: at, Address: parse("acme/demo"), Version: "1.2.0", Nonce: n},
			"withdrawn 2026-11-24T22:00:00Z provider acme/demo 1.2.0 " + nonce,
		},
	} {
		if got := test.leaf.String(); got != test.text {
			t.Errorf("it is written as\n%s\nwant\n%s", got, test.text)
		}
		got, err := ParseLeaf(test.text)
		if err != nil || got.String() != test.text || got.Address != test.leaf.Address || !got.Time.Equal(at) || !slices.Equal(got.Hashes, test.leaf.Hashes) {
			t.Errorf("%s is read as %+v, %v", test.text, got, err)
		}
	}
}

func TestTextsThatAreNoLeaves(t *testing.T) {
	const good = "offered 2026-11-24T22:00:00Z provider acme/demo 1.2.0 linux_amd64 " + h1 + " " + zh + " " + nonce
	with := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("there is no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	if _, err := ParseLeaf(good); err != nil {
		t.Fatal(err)
	}
	if l, err := ParseLeaf(with(zh, zh+" later:whatever")); err != nil || len(l.Hashes) != 2 {
		t.Errorf("a field of a later version: %v", err)
	}
	for rule, text := range map[string]string{
		"nothing":                           "",
		"two spaces":                        with(" acme", "  acme"),
		"a space at the end":                good + " ",
		"a line feed":                       good + "\n",
		"an unknown event":                  with("offered", "sold"),
		"a time with a zone":                with("22:00:00Z", "23:00:00+01:00"),
		"a time with a fraction":            with("00Z", "00.5Z"),
		"a kind that the address is not of": with("provider", "module"),
		"no address":                        with("acme/demo", "acme"),
		"no version":                        with("1.2.0", "latest"),
		"no platform":                       with(" linux_amd64", ""),
		"a platform of a module":            with("provider acme/demo", "module acme/demo/aws"),
		"no h1":                             with(h1+" ", ""),
		"no zh":                             with(zh+" ", ""),
		"a zh before the h1":                with(h1+" "+zh, zh+" "+h1),
		"a zh in upper case":                with(zh, "zh:"+strings.Repeat("A", 64)),
		"a short h1":                        with(h1, "h1:AAAA"),
		"a key that is none":                with(zh, zh+" key:abc"),
		"a rule that is none":               with(zh, zh+" pack:01"),
		"a commit that is none":             with(zh, zh+" commit:"+strings.Repeat("0A", 20)),
		"a field without a name":            with(zh, zh+" word"),
		"a short nonce":                     with(nonce, nonce[2:]),
		"hashes of a version":               with("offered", "withdrawn"),
		"no UTF-8":                          with("acme", "acm\xff"),
	} {
		if l, err := ParseLeaf(text); err == nil {
			t.Errorf("%s: %+v", rule, l)
		}
	}
}

func TestPathsOfTiles(t *testing.T) {
	for path, tile := range map[string]sumdb.Tile{
		"tile/0/000":                  fullTile(0, 0),
		"tile/0/x001/x234/067":        fullTile(0, 1234067),
		"tile/3/005.p/255":            {H: 8, L: 3, N: 5, W: 255},
		"tile/entries/x001/234.p/100": {H: 8, L: -1, N: 1234, W: 100},
	} {
		if got, err := ParseTilePath(path); err != nil || got != tile {
			t.Errorf("%s is %+v, %v", path, got, err)
		}
		if got := TilePath(tile); got != path {
			t.Errorf("%+v has the path %s, want %s", tile, got, path)
		}
	}
	for _, path := range []string{
		"", "tile", "tile/", "tile/0", "tile/0/", "/tile/0/000", "tile/0/0", "tile/0/0000", "tile/00/000", "tile/-1/000", "tile/64/000x", "tile/data/000",
		"tile/0/001/234", "tile/0/x001/x234", "tile/0/000.p/0", "tile/0/000.p/256", "tile/0/000.p/01", "tile/0/x000/001", "tile/0/000/", "tile/8/0/000", "tile/entries", "tile/entries/../000",
	} {
		if tile, err := ParseTilePath(path); err == nil {
			t.Errorf("%q is read as %+v", path, tile)
		}
	}
}

func FuzzParseLeaf(f *testing.F) {
	f.Add("offered 2026-11-24T22:00:00Z provider acme/demo 1.2.0 linux_amd64 " + h1 + " " + zh + " key:C5F323384ED56B62 " + nonce)
	f.Add("withdrawn 2026-11-24T22:00:00Z module acme/vpc/aws 1.2.0 " + nonce)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLeaf(text)
		if err != nil {
			return
		}
		again, err := ParseLeaf(l.String())
		if err != nil || again.String() != l.String() {
			t.Errorf("%q is written as %q, %v", text, l, err)
		}
	})
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add(Checkpoint{Origin: origin, Size: 5}.String())
	f.Add(Checkpoint{Origin: origin, Size: 5}.String() + "extension\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCheckpoint(text)
		if err == nil && !strings.HasPrefix(text, c.String()) {
			t.Errorf("%q is written as %q", text, c)
		}
	})
}

func FuzzParseProof(f *testing.F) {
	f.Add(Proof{Index: 3, Hashes: sumdb.RecordProof{{1}, {2}}}.String())
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseProof(text)
		if err == nil && !strings.Contains(text, "\nextra ") && p.String() != text {
			t.Errorf("%q is written as %q", text, p)
		}
	})
}

func FuzzDecodeBundle(f *testing.F) {
	f.Add(EncodeBundle([]string{"a", "", "bc"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := DecodeBundle(b)
		if err == nil && string(EncodeBundle(entries)) != string(b) {
			t.Errorf("%q is written as %q", b, EncodeBundle(entries))
		}
	})
}

func FuzzParseTilePath(f *testing.F) {
	f.Add("tile/entries/x001/234.p/100")
	f.Fuzz(func(t *testing.T, path string) {
		if tile, err := ParseTilePath(path); err == nil && TilePath(tile) != path {
			t.Errorf("%q is written as %q", path, TilePath(tile))
		}
	})
}
