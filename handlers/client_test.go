package handlers_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"golang.org/x/mod/sumdb/dirhash"
)

// The steps of Terraform and OpenTofu after the registry's answers, with their own
// libraries: if a test passes here, a client can install.

// service resolves a service URL as clients do: against the URL of the discovery
// document, without adding a slash at its end. A client of another registry has the URL
// in its configuration.
func (s *site) service(id string) *url.URL {
	s.t.Helper()
	if s.original != "" {
		return s.resolve(home, "/v1/registries/"+s.original+"/"+strings.TrimSuffix(id, ".v1")+"/")
	}
	const document = home + "/.well-known/terraform.json"
	var services map[string]any
	s.json(document, &services)
	text, ok := services[id].(string)
	if !ok {
		s.t.Fatalf("no URL of %s in %v", id, services)
	}
	return s.resolve(document, text)
}

func (s *site) resolve(base, reference string) *url.URL {
	s.t.Helper()
	b, err := url.Parse(base)
	if err != nil {
		s.t.Fatal(err)
	}
	u, err := b.Parse(reference)
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// A versionList has the fields of a provider's versions that clients read.
type versionList struct {
	Versions []struct {
		Version   string   `json:"version"`
		Protocols []string `json:"protocols"`
		Platforms []struct {
			OS   string `json:"os"`
			Arch string `json:"arch"`
		} `json:"platforms"`
	} `json:"versions"`
	Warnings []string `json:"warnings"`
}

func (l versionList) names() (names []string) {
	for _, v := range l.Versions {
		names = append(names, v.Version)
	}
	return names
}

func (s *site) versions(address string) (l versionList) {
	s.t.Helper()
	s.json(s.resolve(s.service("providers.v1").String(), address+"/versions").String(), &l)
	return l
}

// A download has the fields of the answer for one platform that clients read, and its
// URL.
type download struct {
	url string

	Protocols           []string `json:"protocols"`
	OS                  string   `json:"os"`
	Arch                string   `json:"arch"`
	Filename            string   `json:"filename"`
	DownloadURL         string   `json:"download_url"`
	SHA256              string   `json:"shasum"`
	SHA256SumsURL       string   `json:"shasums_url"`
	SHA256SumsSignature string   `json:"shasums_signature_url"`
	SigningKeys         struct {
		Keys []struct {
			ID             string  `json:"key_id"`
			Armor          string  `json:"ascii_armor"`
			TrustSignature *string `json:"trust_signature"`
		} `json:"gpg_public_keys"`
	} `json:"signing_keys"`
	Packages map[string]struct {
		Hashes []string `json:"hashes"`
		Size   int64    `json:"package_size"`
	} `json:"packages"`
}

// download asks for "ns/type/version/download/os/arch".
func (s *site) download(path string) (d download) {
	s.t.Helper()
	d.url = s.resolve(s.service("providers.v1").String(), path).String()
	s.json(d.url, &d)
	return d
}

// fetch gets a file that the document names, anonymously.
func (s *site) fetch(base, reference string) string {
	s.t.Helper()
	a := s.get(s.resolve(base, reference).String())
	if a.StatusCode != 200 {
		s.t.Fatalf("%s: got %d %s", reference, a.StatusCode, a.body)
	}
	return a.body
}

// install takes the steps of a client from the document to the verified
// package, and returns the hashes that land in the lock file.
func (s *site) install(path string) (zip string, locked []string) {
	s.t.Helper()
	d := s.download(path)
	platform := strings.ReplaceAll(path[strings.Index(path, "/download/")+len("/download/"):], "/", "_")
	if d.OS+"_"+d.Arch != platform {
		s.t.Fatalf("registry response to request for %s archive has incorrect target %s_%s", platform, d.OS, d.Arch)
	}
	sums := s.fetch(d.url, d.SHA256SumsURL)
	signature := s.fetch(d.url, d.SHA256SumsSignature)
	zip = s.fetch(d.url, d.DownloadURL)

	var armors []string
	for _, k := range d.SigningKeys.Keys {
		armors = append(armors, k.Armor)
	}
	for _, check := range []error{
		checkPackages(d, zip),
		matchingChecksum([]byte(sums), d.Filename, d.SHA256),
		archiveChecksum(zip, d.SHA256),
		checkSignature(armors, sums, signature),
	} {
		if check != nil {
			s.t.Fatalf("%s: %v", path, check)
		}
	}
	return zip, acceptableHashes([]byte(sums))
}

// matchingChecksum is matchingChecksumAuthentication: the line of a file, by
// its second field.
func matchingChecksum(document []byte, filename, sha string) error {
	for line := range bytes.SplitSeq(document, []byte("\n")) {
		fields := bytes.Fields(line)
		if len(fields) > 1 && string(fields[1]) == filename {
			listed, err := hex.DecodeString(string(fields[0]))
			if err != nil {
				return fmt.Errorf("checksum list has invalid SHA256 hash %q: %w", fields[0], err)
			}
			wanted, err := hex.DecodeString(sha)
			if err != nil || len(wanted) != sha256.Size {
				return fmt.Errorf("registry response includes invalid SHA256 hash %q", sha)
			}
			if !bytes.Equal(listed, wanted) {
				return fmt.Errorf("checksum list has unexpected SHA-256 hash %x (expected %x)", listed, wanted)
			}
			return nil
		}
	}
	return fmt.Errorf("checksum list has no SHA-256 hash for %q", filename)
}

// acceptableHashes reads the hashes of all platforms. Like the clients' it
// panics on a blank line and drops the whole list for a malformed one.
func acceptableHashes(document []byte) (hashes []string) {
	document = bytes.TrimSuffix(document, []byte("\n"))
	for line := range bytes.SplitSeq(document, []byte("\n")) {
		fields := bytes.Fields(line)
		if sum, err := hex.DecodeString(string(fields[0])); len(fields) < 2 || err != nil || len(sum) != sha256.Size {
			return nil
		}
		hashes = append(hashes, "zh:"+string(fields[0]))
	}
	return hashes
}

func archiveChecksum(zip, sha string) error {
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(zip))); got != sha {
		return fmt.Errorf("archive has incorrect checksum zh:%s (expected zh:%s)", got, sha)
	}
	return nil
}

// checkSignature is signatureAuthentication. It tries the keys in their order, uses the
// first armor block of each string, and skips unknown issuers.
func checkSignature(armors []string, document, signature string) error {
	for _, armor := range armors {
		keyring, err := openpgp.ReadArmoredKeyRing(strings.NewReader(armor))
		if err != nil {
			return fmt.Errorf("error decoding signing key: %w", err)
		}
		_, err = openpgp.CheckDetachedSignature(keyring, strings.NewReader(document), strings.NewReader(signature), nil)
		if err == nil {
			return nil
		}
		if !errors.Is(err, pgperrors.ErrUnknownIssuer) {
			return fmt.Errorf("error checking signature: %w", err)
		}
	}
	return errors.New("authentication signature from unknown issuer")
}

// checkPackages checks the packages field as OpenTofu ≥ 1.12 does.
func checkPackages(d download, zip string) error {
	if d.Packages == nil {
		return nil
	}
	seen := make(map[string]string)
	for platform, p := range d.Packages {
		if !regexp.MustCompile(`^[^_]+_[^_]+$`).MatchString(platform) {
			return fmt.Errorf("invalid platform %q", platform)
		}
		for _, hash := range p.Hashes {
			if other, twice := seen[hash]; twice && strings.HasPrefix(hash, "zh:") {
				return fmt.Errorf("conflicting platforms %s and %s", platform, other)
			}
			seen[hash] = platform
		}
	}
	p, ok := d.Packages[d.OS+"_"+d.Arch]
	if !ok {
		return fmt.Errorf("registry response missing package with platform %s_%s", d.OS, d.Arch)
	}
	if p.Size != int64(len(zip)) {
		return fmt.Errorf("registry response indicates a package of size %d, but received %d", p.Size, len(zip))
	}
	if !slices.Contains(p.Hashes, "zh:"+d.SHA256) {
		return errors.New("registry response does not contain matching sha256sum package entry and is invalid")
	}
	return nil
}

// packageHash is packageHashAuthentication of the mirror: hashes must have a scheme,
// and a hash with a known scheme must be the package's.
func packageHash(t testing.TB, hashes []string, zip string) error {
	t.Helper()
	for _, hash := range hashes {
		scheme, value, ok := strings.Cut(hash, ":")
		if !ok {
			return fmt.Errorf("hash string %q must start with a scheme keyword followed by a colon", hash)
		}
		switch scheme {
		case "h1":
			if hash == dirhashOf(t, zip) {
				return nil
			}
		case "zh":
			if value == fmt.Sprintf("%x", sha256.Sum256([]byte(zip))) {
				return nil
			}
		}
	}
	return errors.New("provider package doesn't match any of the expected checksums")
}

// dirhashOf returns Go's h1: of a zip, by the library that clients use.
func dirhashOf(t testing.TB, zip string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "package.zip")
	if err := os.WriteFile(name, []byte(zip), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := dirhash.HashZip(name, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// decode reads JSON into generic values, numbers as they are written.
func decode(t testing.TB, body string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("there is more than one value in %s", body)
	}
	return v
}
