package upstream_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A mirror that keeps the publisher's files has the same release, but no keys.
func TestMirror(t *testing.T) {
	folders, publisher := acme(t)
	zip := folders.Read("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip")
	pinned, _ := signing.ReadKeyring([]byte(publisher.PublicKey()))
	s := newSite(t, folders)
	c := s.Client(t, upstream.Origin{Mirror: strings.TrimSuffix(mirrorBase, "/")})
	list, err := c.Versions(background(), demo)
	if err != nil || fmt.Sprint(list) != "[{1.0.0 [] []}]" {
		t.Fatalf("versions are %v, %v", list, err)
	}
	t.Run("verified with pinned keys", func(t *testing.T) {
		r, err := c.Release(background(), demo, v1, pinned)
		if err != nil || !r.Signed() || len(r.Packages) != 2 {
			t.Fatalf("got %+v, %v", r, err)
		}
		mustDownload(t, c, r, zip)
	})
	t.Run("unsigned without them", func(t *testing.T) {
		r, err := c.Release(background(), demo, v1, nil)
		if err != nil || r.Signed() || len(r.Signature) == 0 {
			t.Fatalf("got %+v, %v", r, err)
		}
		mustDownload(t, c, r, zip)
	})
	t.Run("without SHA256SUMS it has the hashes of the protocol", func(t *testing.T) {
		for _, code := range []int{400, 403, 404, 405, 409} { // hermitcrab answers 400 for a file that is not in the protocol
			s.Fault(sumsFile, status(code))
			r, err := c.Release(background(), demo, v1, pinned)
			if err != nil || r.Signed() || r.Checksums != nil {
				t.Fatalf("got %+v, %v", r, err)
			}
			if p, _ := r.Package(linux); err != nil || p.SHA256 != sha256.Sum256([]byte(zip)) || p.FileHashes != nil {
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
	t.Run("the caller checks h1", func(t *testing.T) {
		s.Fault(sumsFile, status(404))
		s.Fault(files+"1.0.0.json", body(`{"archives":{"linux_amd64":{"url":"terraform-provider-demo_1.0.0_linux_amd64.zip","hashes":["h1:`+strings.Repeat("A", 43)+`=","new:x"]}}}`))
		r, err := c.Release(background(), demo, v1, nil)
		if err != nil || r.Packages[0].SHA256 != (wire.SHA256{}) || len(r.Packages[0].FileHashes) != 1 {
			t.Fatalf("got %+v, %v", r, err)
		}
		mustDownload(t, c, r, zip)
	})
	t.Run("publication date", func(t *testing.T) {
		_, err := c.Published(background(), demo, "1.0.0")
		mustFail(t, err, upstream.ErrNotFound, "does not say")
	})
}

func TestMirrorFailures(t *testing.T) {
	for _, test := range []struct {
		rule, path string
		answer     http.HandlerFunc
		kind       error
	}{
		{"an unknown provider", files + "index.json", status(404), upstream.ErrNotFound},
		{"a list that does not parse", files + "index.json", body("[]"), upstream.ErrMalformed},
		{"archives that do not parse", files + "1.0.0.json", body("<html>"), upstream.ErrMalformed},
		{"no archives", files + "1.0.0.json", status(404), upstream.ErrNotFound},
		{"no archive that SHA256SUMS lists", files + "1.0.0.json", body(`{"archives":{"plan9_arm":{"url":"a.zip"}}}`), upstream.ErrMalformed},
		{"an error for SHA256SUMS", sumsFile, status(501), upstream.ErrUnavailable},
		{"SHA256SUMS that is a web page", sumsFile, body("<html>"), upstream.ErrMalformed},
		{"an error for the signature", sigFile, status(501), upstream.ErrUnavailable},
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
