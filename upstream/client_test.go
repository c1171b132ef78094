package upstream_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A signed release comes through a registry as its publisher made it.
func TestRegistry(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	tree := indextest.New(t)
	tree.Provider("acme/demo", "1.10.0-rc.1", "linux_amd64").Signed(publisher)
	tree.Provider("acme/demo", "1.9.0", "linux_amd64").Signed(publisher)
	release := tree.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Manifest("5.0", "6.0").Signed(publisher)
	tree.Keys("acme", publisher)
	s := newSite(t, tree)
	c := s.Client(t, upstream.Origin{})

	list, err := c.Versions(background(), demo)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(list.Versions); got != "[{1.10.0-rc.1 [5.0] [linux_amd64]} {1.9.0 [5.0] [linux_amd64]} {1.0.0 [5.0 6.0] [darwin_arm64 linux_amd64]}]" {
		t.Errorf("versions are %s", got)
	}
	for _, v := range []wire.ProviderVersion{list.Versions[2], {Version: "1.0.0"}, {Version: "1.0.0", Platforms: []address.Platform{{OS: "plan9", Arch: "arm"}, linux}}} {
		r, err := c.Release(background(), demo, v, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Signed() || r.SignedBy.ID != publisher.ID() || r.Keys[0].Armor != publisher.PublicKey() {
			t.Errorf("signed by %q, keys %v", r.SignedBy.ID, r.Keys)
		}
		if string(r.Checksums) != tree.Read(release.ChecksumsName()) || string(r.Signature) != tree.Read(release.ChecksumsName()+".sig") {
			t.Error("SHA256SUMS or its signature is not the publisher's")
		}
		if fmt.Sprint(r.Protocols) != "[5.0 6.0]" || len(r.Packages) != 2 || r.Address != demo {
			t.Errorf("the release is %+v", r)
		}
		mustDownload(t, c, r, tree.Read("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"))
	}
	for _, r := range s.Asked() {
		want := 2 // but for packages
		if strings.HasSuffix(r.URL.Path, ".zip") {
			want = 1
		}
		if r.ProtoMajor != want || r.UserAgent() != "caddy-terraform-registry" {
			t.Errorf("%s was asked for with %s by %q", r.URL, r.Proto, r.UserAgent())
		}
	}
}

// The same comes through a mirror that keeps the publisher's files; only the
// keys have to be known.
func TestMirror(t *testing.T) {
	tree, publisher := acme(t)
	zip := tree.Read("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip")
	pinned, _ := signing.ReadKeyring([]byte(publisher.PublicKey()))
	s := newSite(t, tree)
	c := s.Client(t, upstream.Origin{Mirror: strings.TrimSuffix(mirrorBase, "/")})
	list, err := c.Versions(background(), demo)
	if err != nil || fmt.Sprint(list.Versions) != "[{1.0.0 [] []}]" {
		t.Fatalf("versions are %v, %v", list, err)
	}
	t.Run("pinned keys verify it", func(t *testing.T) {
		r, err := c.Release(background(), demo, v1, pinned)
		if err != nil || !r.Signed() || len(r.Packages) != 2 {
			t.Fatalf("got %+v, %v", r, err)
		}
		mustDownload(t, c, r, zip)
	})
	t.Run("without them it is unsigned", func(t *testing.T) {
		r, err := c.Release(background(), demo, v1, nil)
		if err != nil || r.Signed() || len(r.Signature) == 0 {
			t.Fatalf("got %+v, %v", r, err)
		}
		mustDownload(t, c, r, zip)
	})
	t.Run("without SHA256SUMS its hashes are those of the protocol", func(t *testing.T) {
		for _, code := range []int{403, 404} {
			s.Fault(sumsFile, status(code))
			r, err := c.Release(background(), demo, v1, pinned)
			if err != nil || r.Signed() || r.Checksums != nil {
				t.Fatalf("got %+v, %v", r, err)
			}
			if p, _ := r.Package(linux); err != nil || p.SHA256 != sha256.Sum256([]byte(zip)) || p.H1 != nil {
				t.Errorf("the package is %+v", p)
			}
			mustDownload(t, c, r, zip)
		}
		s.Fault(sumsFile, nil)
	})
	t.Run("hashes that differ from SHA256SUMS", func(t *testing.T) {
		s.Fault(files+"1.0.0.json", s.Edited(fmt.Sprintf("%x", sha256.Sum256([]byte(zip))), strings.Repeat("0", 64)))
		_, err := c.Release(background(), demo, v1, pinned)
		mustFail(t, err, upstream.ErrBadChecksum, "not the one SHA256SUMS lists")
		s.Fault(files+"1.0.0.json", nil)
	})
	t.Run("a version it does not hold", func(t *testing.T) {
		_, err := c.Release(background(), demo, wire.ProviderVersion{Version: "2.0.0"}, pinned)
		mustFail(t, err, upstream.ErrNotFound, "does not hold")
	})
	t.Run("only h1 is left to the caller", func(t *testing.T) {
		s.Fault(sumsFile, status(404))
		s.Fault(files+"1.0.0.json", body(`{"archives":{"linux_amd64":{"url":"terraform-provider-demo_1.0.0_linux_amd64.zip","hashes":["h1:`+strings.Repeat("A", 43)+`=","new:x"]}}}`))
		r, err := c.Release(background(), demo, v1, nil)
		if err != nil || r.Packages[0].SHA256 != (wire.SHA256{}) || len(r.Packages[0].H1) != 1 {
			t.Fatalf("got %+v, %v", r, err)
		}
		mustDownload(t, c, r, zip)
	})
	t.Run("when it was published", func(t *testing.T) {
		_, err := c.Published(background(), demo, "1.0.0")
		mustFail(t, err, upstream.ErrNotFound, "does not tell")
	})
}

func mustDownload(t testing.TB, c *upstream.Client, r *upstream.Release, want string) {
	t.Helper()
	var got bytes.Buffer
	digest, err := c.Download(background(), r, linux, &got)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != want || digest.Size != int64(len(want)) || digest.SHA256 != sha256.Sum256([]byte(want)) {
		t.Errorf("downloaded %d bytes, %+v, want %d", got.Len(), digest, len(want))
	}
}

// A mirror fails in its own ways.
func TestMirrorIsRefused(t *testing.T) {
	for _, test := range []struct {
		rule, path string
		answer     http.HandlerFunc
		kind       error
	}{
		{"an unknown provider", files + "index.json", status(404), upstream.ErrNotFound},
		{"a list that is none", files + "index.json", body("[]"), upstream.ErrMalformed},
		{"archives that are none", files + "1.0.0.json", body("<html>"), upstream.ErrMalformed},
		{"no archives", files + "1.0.0.json", status(404), upstream.ErrNotFound},
		{"no archive that was signed", files + "1.0.0.json", body(`{"archives":{"plan9_arm":{"url":"a.zip"}}}`), upstream.ErrMalformed},
		{"SHA256SUMS out of order", sumsFile, status(501), upstream.ErrUnavailable},
		{"SHA256SUMS that is a web page", sumsFile, body("<html>"), upstream.ErrMalformed},
		{"a signature out of order", sigFile, status(501), upstream.ErrUnavailable},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(test.path, test.answer)
			c := s.Client(t, upstream.Origin{Mirror: mirrorBase})
			_, err := c.Versions(background(), demo)
			if test.path != files+"index.json" {
				_, err = c.Release(background(), demo, v1, nil)
			}
			mustFail(t, err, test.kind, "")
		})
	}
}

// What a release said is compared with what the origin says when it comes to
// the package.
func TestOriginThatChangesItsMind(t *testing.T) {
	for _, test := range []struct {
		rule   string
		origin upstream.Origin
		path   string
		answer func(*site) http.HandlerFunc
		kind   error
		says   string
	}{
		{"another checksum", upstream.Origin{}, metadata, func(s *site) http.HandlerFunc { return s.Edited(`"shasum":"`, `"shasum":"0`) }, upstream.ErrBadChecksum, "another package"},
		{"another platform's file", upstream.Origin{}, metadata, func(s *site) http.HandlerFunc { return s.Edited(`_linux_amd64.zip"`, `_darwin_arm64.zip"`) }, upstream.ErrMalformed, "otherwise than"},
		{"no such package", upstream.Origin{}, metadata, func(*site) http.HandlerFunc { return status(404) }, upstream.ErrNotFound, ""},
		{"no such version", upstream.Origin{Mirror: mirrorBase}, files + "1.0.0.json", func(*site) http.HandlerFunc { return body(`{"archives":{}}`) }, upstream.ErrNotFound, ""},
		{"no such archive", upstream.Origin{Mirror: mirrorBase}, files + "1.0.0.json", func(*site) http.HandlerFunc { return body(`{"archives":{"plan9_arm":{"url":"a.zip"}}}`) }, upstream.ErrNotFound, "this platform"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			c := s.Client(t, test.origin)
			r, err := c.Release(background(), demo, v1, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.Fault(test.path, test.answer(s))
			_, err = c.Download(background(), r, linux, io.Discard)
			mustFail(t, err, test.kind, test.says)
		})
	}
	t.Run("a platform that was never there", func(t *testing.T) {
		c := newAcme(t).Client(t, upstream.Origin{})
		r, err := c.Release(background(), demo, v1, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Download(background(), r, address.Platform{OS: "plan9", Arch: "arm"}, io.Discard)
		mustFail(t, err, upstream.ErrNotFound, "plan9_arm")
	})
}

// Names that no tree holds are refused, though clients would not mind.
func TestPackagesOfOtherNames(t *testing.T) {
	tree, publisher := acme(t)
	sums := fmt.Sprintf("%064x  demo.zip\n", 1)
	s := newSite(t, tree)
	s.Fault(metadata, body(fmt.Sprintf(`{"os":"linux","arch":"amd64","filename":"demo.zip","shasum":"%064x","download_url":"/demo.zip",
		"shasums_url":"/sums","shasums_signature_url":"/sig","signing_keys":{"gpg_public_keys":[{"ascii_armor":%q}]}}`, 1, publisher.PublicKey())))
	s.Fault("/sums", body(sums))
	s.Fault("/sig", body(publisher.Sign(sums)))
	_, err := s.Client(t, upstream.Origin{}).Release(background(), demo, v1, nil)
	mustFail(t, err, upstream.ErrMalformed, "other names than terraform-provider-demo_1.0.0_OS_ARCH.zip")
}

func TestConcurrentUse(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			r, err := c.Release(background(), demo, v1, nil)
			if err == nil {
				_, err = c.Download(background(), r, linux, io.Discard)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// What vouches for a release fails in one way after another.
func TestReleaseIsRefused(t *testing.T) {
	stranger, _ := signing.ReadKeyring([]byte(indextest.NewPublisher(t).PublicKey()))
	tests := []struct {
		rule   string
		path   string
		answer func(*site) http.HandlerFunc
		pinned *signing.Keyring
		kind   error
		says   string
	}{
		{rule: "a key other than the pinned one", pinned: stranger, kind: upstream.ErrBadSignature, says: "key ID"},
		{rule: "a signature of something else", path: sumsFile, answer: func(s *site) http.HandlerFunc { return s.Edited("darwin", "plan9") }, kind: upstream.ErrBadSignature, says: "the signature does not match"},
		{rule: "a signature that is none", path: sigFile, answer: func(*site) http.HandlerFunc { return body("-----BEGIN PGP SIGNATURE-----") }, kind: upstream.ErrBadSignature},
		{rule: "a key that is none", path: metadata, answer: func(s *site) http.HandlerFunc { return s.Edited("PGP PUBLIC", "PGP ELSE") }, kind: upstream.ErrBadSignature},
		{rule: "a blank line in SHA256SUMS", path: sumsFile, answer: func(s *site) http.HandlerFunc { return s.Edited("\n", "\n\n") }, kind: upstream.ErrMalformed, says: "line 2 of SHA256SUMS is blank"},
		{rule: "no SHA256SUMS", path: sumsFile, answer: func(*site) http.HandlerFunc { return status(404) }, kind: upstream.ErrMalformed, says: "answered 404: its answer is not usable: the origin links to a SHA256SUMS"},
		{rule: "no signature", path: sigFile, answer: func(*site) http.HandlerFunc { return status(404) }, kind: upstream.ErrMalformed, says: "links to a signature"},
		{rule: "another checksum than the signed one", path: metadata, answer: func(s *site) http.HandlerFunc { return s.Edited(`"shasum":"`, `"shasum":"0`) }, kind: upstream.ErrBadChecksum},
		{rule: "another platform", path: metadata, answer: func(s *site) http.HandlerFunc { return s.Edited(`"amd64"`, `"arm64"`) }, kind: upstream.ErrMalformed, says: "another platform"},
		{rule: "a file that is not listed", path: metadata, answer: func(s *site) http.HandlerFunc { return s.Edited(`"filename":"`, `"filename":"../`) }, kind: upstream.ErrMalformed, says: "does not list"},
		{rule: "no links", path: metadata, answer: func(*site) http.HandlerFunc { return body(`{"os":"linux","arch":"amd64"}`) }, kind: upstream.ErrMalformed, says: "does not link"},
		{rule: "a password in a link", path: metadata, answer: func(s *site) http.HandlerFunc {
			return s.Edited(`"shasums_url":"`, `"shasums_url":"https://a:secret@example.com`)
		}, kind: upstream.ErrMalformed, says: "password"},
		{rule: "a link to a file", path: metadata, answer: func(s *site) http.HandlerFunc { return s.Edited(`"shasums_url":"`, `"shasums_url":"file://`) }, kind: upstream.ErrMalformed, says: "not on a web server"},
		{rule: "no TLS", path: metadata, answer: func(s *site) http.HandlerFunc { return s.Edited(`"shasums_url":"`, `"shasums_url":"http://`+host) }, kind: upstream.ErrUnsafe, says: "without TLS"},
		{rule: "a web page", path: metadata, answer: func(*site) http.HandlerFunc { return body("<html>") }, kind: upstream.ErrMalformed},
		{rule: "no platform that is known of", path: metadata, answer: func(*site) http.HandlerFunc { return status(404) }, kind: upstream.ErrNotFound, says: host + " answered 404"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			if test.answer != nil {
				s.Fault(test.path, test.answer(s))
			}
			_, err := s.Client(t, upstream.Origin{Token: "secret"}).Release(background(), demo, wire.ProviderVersion{Version: "1.0.0", Platforms: []address.Platform{linux}}, test.pinned)
			mustFail(t, err, test.kind, test.says)
		})
	}
	t.Run("the reason is that of the keyring, too", func(t *testing.T) {
		_, err := newAcme(t).Client(t, upstream.Origin{}).Release(background(), demo, v1, stranger)
		if !errors.Is(err, signing.ErrUnknownKey) {
			t.Errorf("got %v", err)
		}
	})
}

// The public OpenTofu registry has no keys of some namespaces.
func TestOriginWithoutKeys(t *testing.T) {
	tree, publisher := acme(t)
	s := newSite(t, tree)
	s.Fault(metadata, s.Edited(`"gpg_public_keys":[{`, `"gpg_public_keys":[],"none":[{`))
	c := s.Client(t, upstream.Origin{})
	r, err := c.Release(background(), demo, v1, nil)
	if err != nil || r.Signed() || len(r.Packages) != 2 || len(r.Signature) == 0 {
		t.Errorf("without keys got %+v, %v", r, err)
	}
	pinned, _ := signing.ReadKeyring([]byte(publisher.PublicKey()))
	if r, err = c.Release(background(), demo, v1, pinned); err != nil || !r.Signed() {
		t.Errorf("with pinned keys got %+v, %v", r, err)
	}
	s.Fault(sigFile, status(404))
	if r, err = c.Release(background(), demo, v1, nil); err != nil || r.Signed() {
		t.Errorf("without a signature got %+v, %v", r, err)
	}
}

func TestManifest(t *testing.T) {
	const manifest = `{"version":1,"metadata":{"protocol_versions":["6.0"]}}`
	tree, publisher := acme(t)
	const name = "providers/acme/demo/terraform-provider-demo_1.0.0_"
	sums := tree.Read(name+"SHA256SUMS") + fmt.Sprintf("%x  terraform-provider-demo_1.0.0_manifest.json\n", sha256.Sum256([]byte(manifest)))
	tree.Write(name+"SHA256SUMS", sums).Write(name+"SHA256SUMS.sig", publisher.Sign(sums))
	s := newSite(t, tree)
	c := s.Client(t, upstream.Origin{})
	for _, test := range []struct {
		rule, served, kept string
	}{
		{"as it was released", manifest, manifest},
		{"another", manifest + " ", ""},
		{"none", "", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s.Fault(files+"terraform-provider-demo_1.0.0_manifest.json", body(test.served))
			r, err := c.Release(background(), demo, v1, nil)
			if err != nil || string(r.Manifest) != test.kept {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

func TestPublished(t *testing.T) {
	for _, test := range []struct {
		rule string
		says http.HandlerFunc
		kind error
	}{
		{"the public registry's answer", body(`{"id":"acme/demo/1.0.0","published_at":"2026-05-04T03:02:01Z","docs":[]}`), nil},
		{"an origin without details", status(404), upstream.ErrNotFound},
		{"details without a date", body(`{}`), upstream.ErrNotFound},
		{"a date that is none", body(`{"published_at":"yesterday"}`), upstream.ErrMalformed},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault("/v1/providers/acme/demo/1.0.0", test.says)
			when, err := s.Client(t, upstream.Origin{}).Published(background(), demo, "1.0.0")
			if test.kind != nil {
				mustFail(t, err, test.kind, "")
				return
			}
			if err != nil || !when.Equal(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)) {
				t.Errorf("got %v, %v", when, err)
			}
		})
	}
}

// Nothing is asked of an origin that is not an address, or another's.
func TestAddressesAreChecked(t *testing.T) {
	s := newAcme(t)
	c := s.Client(t, upstream.Origin{})
	_, err := c.Versions(background(), address.Address{Hostname: "other.example.com", Namespace: "acme", Name: "demo"})
	if err == nil {
		t.Error("it was asked for the provider of another origin")
	}
	_, err = c.Versions(background(), address.Address{Namespace: "..", Name: "demo"})
	mustFail(t, err, upstream.ErrNotFound, "not the address of a provider")
	_, err = c.Release(background(), demo, wire.ProviderVersion{Version: "../1.0.0"}, nil)
	mustFail(t, err, upstream.ErrNotFound, "not a version")
	if len(s.Asked()) != 0 {
		t.Errorf("%d requests were made", len(s.Asked()))
	}
}

func TestCallerGivesUp(t *testing.T) {
	s := newAcme(t)
	ctx, cancel := context.WithCancel(context.Background())
	s.Fault(versions, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	_, err := s.Client(t, upstream.Origin{}).Versions(ctx, demo)
	mustFail(t, err, context.Canceled, "")
}
