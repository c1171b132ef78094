package upstream_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A registry's signed release is fetched as its publisher made it.
func TestRegistry(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	folders := indextest.New(t)
	folders.Provider("acme/demo", "1.10.0-rc.1", "linux_amd64").Signed(publisher)
	folders.Provider("acme/demo", "1.9.0", "linux_amd64").Signed(publisher)
	release := folders.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Manifest("5.0", "6.0").Signed(publisher)
	folders.Keys("acme", publisher)
	s := newSite(t, folders)
	c := s.Client(t, upstream.Origin{})

	list, err := c.Versions(background(), demo)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(list); got != "[{1.10.0-rc.1 [5.0] [linux_amd64]} {1.9.0 [5.0] [linux_amd64]} {1.0.0 [5.0 6.0] [darwin_arm64 linux_amd64]}]" {
		t.Errorf("versions are %s", got)
	}
	for _, v := range []wire.ProviderVersion{list[2], {Version: "1.0.0"}, {Version: "1.0.0", Platforms: []address.Platform{{OS: "plan9", Arch: "arm"}, linux}}} {
		r, err := c.Release(background(), demo, v, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Signed() || r.Keys[0].ID != publisher.ID() || r.Keys[0].Armor != publisher.PublicKey() {
			t.Errorf("signed by %v", r.Keys)
		}
		if string(r.Checksums) != folders.Read(release.ChecksumsName()) || string(r.Signature) != folders.Read(release.ChecksumsName()+".sig") {
			t.Error("SHA256SUMS or its signature is not the publisher's")
		}
		if len(r.Packages) != 2 || r.Address != demo {
			t.Errorf("the release is %+v", r)
		}
		mustDownload(t, c, r, folders.Read("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"))
	}
	for _, r := range s.Asked() {
		want := 2 // documents over HTTP/2, packages without
		if strings.HasSuffix(r.URL.Path, ".zip") {
			want = 1
		}
		if r.ProtoMajor != want || r.UserAgent() != "caddy-terraform-registry" {
			t.Errorf("%s was requested with %s by %q", r.URL, r.Proto, r.UserAgent())
		}
	}
}

// Documents that do not authenticate a release.
func TestReleaseIsRefused(t *testing.T) {
	otherKeys, _ := signing.ReadKeyring([]byte(indextest.NewPublisher(t).PublicKey()))
	tests := []struct {
		rule   string
		path   string
		answer func(*site) http.HandlerFunc
		pinned *signing.Keyring
		kind   error
		says   string
	}{
		{rule: "a key other than the pinned one", pinned: otherKeys, kind: upstream.ErrBadSignature, says: "key ID"},
		{rule: "a signature of another document", path: sumsFile, answer: func(s *site) http.HandlerFunc { return s.Edited("darwin", "plan9") }, kind: upstream.ErrBadSignature, says: "the signature does not match"},
		{rule: "a signature that does not parse", path: sigFile, answer: func(*site) http.HandlerFunc { return body("-----BEGIN PGP SIGNATURE-----") }, kind: upstream.ErrBadSignature},
		{rule: "a key that does not parse", path: metadata, answer: func(s *site) http.HandlerFunc { return s.Edited("PGP PUBLIC", "PGP ELSE") }, kind: upstream.ErrBadSignature, says: "its keys cannot be used"},
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
		{rule: "no known platform", path: metadata, answer: func(*site) http.HandlerFunc { return status(404) }, kind: upstream.ErrNotFound, says: host + " answered 404"},
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
	t.Run("the error is also that of the keyring", func(t *testing.T) {
		_, err := newAcme(t).Client(t, upstream.Origin{}).Release(background(), demo, v1, otherKeys)
		if !errors.Is(err, signing.ErrUnknownKey) {
			t.Errorf("got %v", err)
		}
	})
}

// The public OpenTofu registry lacks the keys of some namespaces.
func TestRegistryWithoutKeys(t *testing.T) {
	folders, publisher := acme(t)
	s := newSite(t, folders)
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

// Names that no tree can have are refused, although clients accept them.
func TestPackagesOfOtherNames(t *testing.T) {
	folders, publisher := acme(t)
	sums := fmt.Sprintf("%064x  demo.zip\n", 1)
	s := newSite(t, folders)
	s.Fault(metadata, body(fmt.Sprintf(`{"os":"linux","arch":"amd64","filename":"demo.zip","shasum":"%064x","download_url":"/demo.zip",
		"shasums_url":"/sums","shasums_signature_url":"/sig","signing_keys":{"gpg_public_keys":[{"ascii_armor":%q}]}}`, 1, publisher.PublicKey())))
	s.Fault("/sums", body(sums))
	s.Fault("/sig", body(publisher.Sign(sums)))
	_, err := s.Client(t, upstream.Origin{}).Release(background(), demo, v1, nil)
	mustFail(t, err, upstream.ErrMalformed, "other names than terraform-provider-demo_1.0.0_OS_ARCH.zip")
}

func TestManifest(t *testing.T) {
	const manifest = `{"version":1,"metadata":{"protocol_versions":["6.0"]}}`
	folders, publisher := acme(t)
	const name = "providers/acme/demo/terraform-provider-demo_1.0.0_"
	sums := folders.Read(name+"SHA256SUMS") + fmt.Sprintf("%x  terraform-provider-demo_1.0.0_manifest.json\n", sha256.Sum256([]byte(manifest)))
	folders.Write(name+"SHA256SUMS", sums).Write(name+"SHA256SUMS.sig", publisher.Sign(sums))
	s := newSite(t, folders)
	c := s.Client(t, upstream.Origin{})
	for _, test := range []struct {
		rule, served, want string
	}{
		{"as it was released", manifest, manifest},
		{"with another checksum", manifest + " ", ""},
		{"empty", "", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s.Fault(files+"terraform-provider-demo_1.0.0_manifest.json", body(test.served))
			r, err := c.Release(background(), demo, v1, nil)
			if err != nil || string(r.Manifest) != test.want {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

// A release is complete without a manifest that the origin does not have. One that the origin cannot send at the
// moment is waited for.
func TestManifestsThatAreNotSent(t *testing.T) {
	folders, publisher := acme(t)
	const name = "providers/acme/demo/terraform-provider-demo_1.0.0_"
	sums := folders.Read(name+"SHA256SUMS") + strings.Repeat("0", 64) + "  terraform-provider-demo_1.0.0_manifest.json\n"
	folders.Write(name+"SHA256SUMS", sums).Write(name+"SHA256SUMS.sig", publisher.Sign(sums))
	for _, mirror := range []string{"", upstreamtest.MirrorURL} {
		for _, test := range []struct {
			rule   string
			answer http.HandlerFunc
			kind   error // nil: there is a release
		}{
			{"it is not there", status(404), nil},
			{"the store of a mirror refuses what is not there", status(403), nil},
			{"it is never to be had", status(400), nil},
			{"the server fails", status(501), upstream.ErrUnavailable},
			{"the connection breaks off", upstreamtest.BreakOff, upstream.ErrUnavailable},
			{"the server is silent", upstreamtest.Silence, upstream.ErrTimeout},
		} {
			t.Run(test.rule+mirror, func(t *testing.T) {
				s := newSite(t, folders)
				s.Fault(files+"terraform-provider-demo_1.0.0_manifest.json", test.answer)
				s.InBubble(t, upstream.Origin{Mirror: mirror}, func(t *testing.T, c *upstream.Client) {
					r, err := c.Release(background(), demo, v1, nil)
					if test.kind != nil {
						mustFail(t, err, test.kind, "")
					} else if err != nil || r.Manifest != nil {
						t.Errorf("got %+v, %v", r, err)
					}
				})
			})
		}
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
		{"a date that does not parse", body(`{"published_at":"yesterday"}`), upstream.ErrMalformed},
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

func TestDiscoveryIsCached(t *testing.T) {
	s := newAcme(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		request := func(discoveries int) {
			t.Helper()
			if _, err := c.Versions(background(), demo); err != nil {
				t.Error(err)
			}
			if n := s.Count(discovery); n != discoveries {
				t.Errorf("got %d discoveries, want %d", n, discoveries)
			}
		}
		request(1)
		time.Sleep(upstream.DiscoveryLifetime - time.Millisecond)
		request(1)
		time.Sleep(time.Millisecond)
		request(2)
		time.Sleep(upstream.DiscoveryLifetime)
		s.Fault(discovery, status(501)) // the cached URL is used
		request(3)
		s.Fault(discovery, status(404)) // it is no longer a registry
		_, err := c.Versions(background(), demo)
		mustFail(t, err, upstream.ErrMalformed, "not a registry")
	})
}
