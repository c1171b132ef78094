package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var (
	linux  = address.Platform{OS: "linux", Arch: "amd64"}
	darwin = address.Platform{OS: "darwin", Arch: "arm64"}

	h1 = "h1:" + strings.Repeat("A", 43) + "="
	zh = "zh:" + strings.Repeat("0a", 32)
)

// text returns a document as clients receive it.
func text(d *wire.Document) []byte { return slices.Concat(d.Head, d.Tail) }

// Decoding an encoded document returns the same values.
func TestRoundTrip(t *testing.T) {
	versions := []wire.ProviderVersion{
		{Version: "1.1.0-rc.1", Protocols: []string{"5.0", "6.0"}, Platforms: []address.Platform{darwin, linux}},
		{Version: "1.0.0+build.5", Protocols: []string{"5.0"}, Platforms: []address.Platform{linux}},
	}
	if got, err := wire.DecodeProviderVersions(text(wire.EncodeProviderVersions(versions, nil))); err != nil || !reflect.DeepEqual(got, versions) {
		t.Errorf("versions are %+v, %v", got, err)
	}
	moduleVersions := []wire.ModuleVersion{{Version: "1.1.0-rc.1"}, {Version: "1.0.0", Deprecation: &wire.Deprecation{Reason: "old"}}}
	if got, err := wire.DecodeModuleVersions(text(wire.EncodeModuleVersions(moduleVersions, "https://example.com/vpc"))); err != nil || !slices.Equal(got, []string{"1.1.0-rc.1", "1.0.0"}) {
		t.Errorf("the module's versions are %v, %v", got, err)
	}
	index := []wire.ProviderVersion{{Version: "1.1.0-rc.1"}, {Version: "1.0.0+build.5"}}
	if got, err := wire.DecodeMirrorIndex(text(wire.EncodeMirrorIndex([]string{"1.1.0-rc.1", "1.0.0+build.5"}))); err != nil || !reflect.DeepEqual(got, index) {
		t.Errorf("the mirror's versions are %+v, %v", got, err)
	}
	archives := []wire.Archive{{Platform: darwin, URL: "b.zip"}, {Platform: linux, URL: "a.zip", Hashes: []string{h1, zh}}}
	if got, err := wire.DecodeArchives(text(wire.EncodeArchives(archives))); err != nil || !reflect.DeepEqual(got, archives) {
		t.Errorf("archives are %+v, %v", got, err)
	}
	downloads := []wire.Download{{Protocols: []string{"5.0"}, Platform: linux, Filename: "a.zip", SHA256: zh[3:], URL: "a.zip", ChecksumsURL: "sums", SignatureURL: "sums.sig"}}
	evidence := wire.Evidence{Armor: []string{"one", "two"}, IDs: []string{"1", "2"}, Packages: map[address.Platform]wire.PackageHashes{linux: {Hashes: []string{zh}, Size: 7}}}
	d, v, err := wire.DecodeDownload(text(wire.EncodeDownloads(downloads, evidence)[0]), linux)
	if err != nil || !reflect.DeepEqual(d, downloads[0]) || !slices.Equal(v.Armor, evidence.Armor) || !reflect.DeepEqual(v.Packages, evidence.Packages) {
		t.Errorf("the download is %+v, %+v, %v", d, v, err)
	}
	discovery := wire.Discovery{Modules: "/v1/modules/", Providers: "/v1/providers/"}
	if url, err := wire.DecodeService(text(discovery.Encode()), wire.ProvidersService); err != nil || url != "/v1/providers/" {
		t.Errorf("the provider registry is at %q, %v", url, err)
	}
	if url, err := wire.DecodeService(text(discovery.Encode()), wire.ModulesService); err != nil || url != "/v1/modules/" {
		t.Errorf("the module registry is at %q, %v", url, err)
	}
}

// The links of a document are the positions of its escaped file names.
func TestLinks(t *testing.T) {
	d := wire.EncodeArchives([]wire.Archive{{Platform: linux, URL: "a b.zip"}, {Platform: darwin, URL: "c.zip"}})
	var names []string
	for _, l := range d.Links {
		names = append(names, string(d.Head[l.Start:l.End]))
	}
	if !slices.Equal(names, []string{"a%20b.zip", "c.zip"}) {
		t.Errorf("links are %q", names)
	}
}

// Entries that some client would refuse are left out, and the others are ordered.
func TestDecodeProviderVersions(t *testing.T) {
	for _, test := range []struct{ rule, document, want string }{
		{"newest first", `{"versions":[{"version":"1.9.0"},{"version":"1.10.0"}]}`, "1.10.0 1.9.0"},
		{"the plain one of several builds first", `{"versions":[{"version":"1.0.0+a"},{"version":"1.0.0"},{"version":"1.0.0+b"}]}`, "1.0.0 1.0.0+b 1.0.0+a"},
		{"short forms are written out, once", `{"versions":[{"version":"1"},{"version":"1.0"},{"version":"1.0.0"}]}`, "1.0.0"},
		{"other texts than versions are left out", `{"versions":[{"version":"v1.0.0"},{"version":"latest"},{"version":1},{"version":"2.0.0"}]}`, "2.0.0"},
		{"a version of any length is left out", `{"versions":[{"version":"1.0.0-` + strings.Repeat("a", 300) + `"},{"version":"2.0.0"}]}`, "2.0.0"},
		{"protocols that are not MAJOR.MINOR are left out", `{"versions":[{"version":"1.0.0","protocols":["5","5.0",6.0,null]}]}`, "1.0.0[5.0]"},
		{"platforms that no client requests are left out, and none is listed twice", `{"versions":[{"version":"1.0.0","platforms":[{"os":"Linux","arch":"amd64"},{"os":"linux","arch":"amd64"},{"os":"linux","arch":"amd64"},3]}]}`, "1.0.0[linux_amd64]"},
		{"names in any case, and other members", `{"id":"x","Versions":[{"version":"1.0.0"}],"warnings":[1]}`, "1.0.0"},
		{"no versions", `{"versions":[]}`, ""},
		{"null", `{"versions":null}`, "error"},
		{"an error for a list", `{"errors":["upstream request timeout"]}`, "error"},
		{"not an object", `[]`, "error"},
		{"two objects", `{"versions":[]}{}`, "error"},
		{"cut off", `{"versions":[{"version":"1.0.0"}`, "error"},
		{"versions that are not an array", `{"versions":{}}`, "error"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			list, err := wire.DecodeProviderVersions([]byte(test.document))
			var got []string
			for _, v := range list {
				s := v.Version
				if len(v.Protocols) > 0 {
					s += fmt.Sprint(v.Protocols)
				}
				if len(v.Platforms) > 0 {
					s += fmt.Sprint(v.Platforms)
				}
				got = append(got, s)
			}
			if err != nil {
				got = []string{"error"}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
	many := `{"versions":[` + strings.TrimSuffix(strings.Repeat(`{"version":"1.0.0"},`, wire.MaxVersions+1), ",") + `]}`
	if _, err := wire.DecodeProviderVersions([]byte(many)); !errors.Is(err, wire.ErrTooManyVersions) {
		t.Errorf("for too many versions, the error is %v", err)
	}
}

// An object without a list is not an empty list.
func TestDecodeMirrorIndex(t *testing.T) {
	for _, test := range []struct{ rule, document, want string }{
		{"newest first", `{"versions":{"1.9.0":{},"1.10.0":{}}}`, "[{1.10.0 [] []} {1.9.0 [] []}]"},
		{"no versions", `{"Versions":{}}`, "[]"},
		{"null", `{"versions":null}`, "error"},
		{"an error for a list", `{"message":"Internal server error"}`, "error"},
		{"an empty object", `{}`, "error"},
		{"versions that are not an object", `{"versions":[]}`, "error"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			list, err := wire.DecodeMirrorIndex([]byte(test.document))
			got := fmt.Sprint(list)
			if err != nil {
				got = "error"
			}
			if got != test.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

// A mirror's list of archives is refused where clients refuse it (checklist 68).
func TestDecodeArchives(t *testing.T) {
	entry := func(hashes ...string) string {
		list, _ := json.Marshal(hashes)
		return `{"archives":{"linux_amd64":{"url":"a.zip","hashes":` + string(list) + `}}}`
	}
	for _, test := range []struct{ rule, document, want, says string }{
		{"both schemes", entry(h1, zh), h1 + " " + zh, ""},
		{"a scheme of later clients is left out", entry("h2:x", zh), zh, ""},
		{"no hashes", `{"archives":{"linux_amd64":{"url":"a.zip"}}}`, "", ""},
		{"unknown schemes alone", entry("h2:x"), "", "schemes that clients do not know"},
		{"no scheme", entry("x"), "", "does not begin with its scheme"},
		{"not an h1", entry("h1:AAAA"), "", "h1 is not one"},
		{"not a zh", entry("zh:00"), "", "zh is not one"},
		{"no link", `{"archives":{"linux_amd64":{}}}`, "", "does not link"},
		{"a hash that is a number", `{"archives":{"linux_amd64":{"url":"a.zip","hashes":[1]}}}`, "", "not the JSON"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			archives, err := wire.DecodeArchives([]byte(test.document))
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %+v, %v, want %q", archives, err, test.says)
				}
				return
			}
			if err != nil || len(archives) != 1 || strings.Join(archives[0].Hashes, " ") != test.want {
				t.Errorf("got %+v, %v, want %q", archives, err, test.want)
			}
		})
	}
	if archives, err := wire.DecodeArchives([]byte(`{"archives":{"LINUX":{},"linux_amd64":{"url":"a.zip"}}}`)); err != nil || len(archives) != 1 {
		t.Errorf("beside a platform that no client requests, got %+v, %v", archives, err)
	}
}

// Clients accept whatever is decoded, whatever an origin answers.
func FuzzDecode(f *testing.F) {
	for _, document := range []string{
		`{"versions":[{"version":"1.0","protocols":["5.0"],"platforms":[{"os":"linux","arch":"amd64"}]}]}`, `{"versions":{"1.0.0":{}}}`,
		`{"archives":{"linux_amd64":{"url":"a.zip","hashes":["` + h1 + `"]}}}`, `{"providers.v1":"/v1/"}`,
		`{"os":"linux","arch":"amd64","download_url":"a","shasums_url":"b","shasums_signature_url":"c","packages":{"linux_amd64":{"package_size":-1}}}`,
	} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, decode := range []func([]byte) ([]wire.ProviderVersion, error){wire.DecodeProviderVersions, wire.DecodeMirrorIndex} {
			list, err := decode(document)
			if err != nil {
				continue
			}
			for _, v := range list {
				if _, err := address.ParseProviderVersion(v.Version); err != nil {
					t.Errorf("decoded is %+v: %v", v, err)
				}
			}
			if again := wire.NormalVersions(list); !reflect.DeepEqual(again, list) {
				t.Errorf("%+v is not in normal form, which is %+v", list, again)
			}
		}
		if archives, err := wire.DecodeArchives(document); err == nil {
			for _, a := range archives {
				if a.URL == "" || len(a.OfFiles())+len(a.SHA256()) != len(a.Hashes) {
					t.Errorf("decoded is %+v", a)
				}
			}
		}
		if d, v, err := wire.DecodeDownload(document, linux); err == nil && (d.URL == "" || d.Platform != linux || v.Packages[linux].Size < 0) {
			t.Errorf("decoded is %+v, %+v", d, v)
		}
		_, _ = wire.DecodeService(document, wire.ProvidersService)
	})
}
