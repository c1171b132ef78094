package wire

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Download describes the package of one platform: the answer to
// {providers.v1}/NAMESPACE/TYPE/VERSION/download/OS/ARCH.
type Download struct {
	Protocols []string
	Platform  address.Platform

	// Filename of the package, as SHA256SUMS lists it.
	Filename string

	// SHA256 of the package, in hexadecimal.
	SHA256 string

	// URLs of the package, of SHA256SUMS and of its signature. To be encoded,
	// they are bare names of files.
	URL, ChecksumsURL, SignatureURL string

	// Issuer is the ID of the key that has signed SHA256SUMS, in hexadecimal. If it is not
	// empty, the encoded URLs of SHA256SUMS and of its signature have it in their query.
	Issuer string
}

// IssuerParameter is the parameter in the query of a URL that has an Issuer.
const IssuerParameter = "signed_by"

// Evidence is the part of a release's descriptions that clients verify packages with:
// the public keys, and the hashes of all packages. It is the same for all platforms.
type Evidence struct {
	// Armor has the public keys, one armor block each (checklist 43). IDs has their
	// long IDs, which no client reads (47).
	Armor, IDs []string

	// Packages has the hashes and sizes of all platforms, for OpenTofu ≥ 1.12
	// (checklist 48). It is left out if it is empty, or if two platforms have a hash in
	// common, since OpenTofu then panics (49).
	Packages map[address.Platform]PackageHashes
}

// PackageHashes has the hashes and the size in bytes of a package. Each hash begins
// with its scheme. Decoded hashes with the schemes "h1:" and "zh:" are well-formed.
type PackageHashes struct {
	Hashes []string `json:"hashes"`
	Size   int64    `json:"package_size"`
}

// EncodeDownloads returns the documents for the platforms of a release, in the given
// order. They share the encoded evidence, which is by far the larger part.
func EncodeDownloads(downloads []Download, e Evidence) []*Document {
	shared := e.encode()
	documents := make([]*Document, len(downloads))
	for i, d := range downloads {
		query := ""
		if d.Issuer != "" {
			query = "?" + IssuerParameter + "=" + d.Issuer
		}
		var w writer
		w.WriteString(`{"protocols":`)
		w.value(d.Protocols)
		w.WriteString(`,"os":`)
		w.value(d.Platform.OS)
		w.WriteString(`,"arch":`)
		w.value(d.Platform.Arch)
		w.WriteString(`,"filename":`)
		w.value(d.Filename)
		w.WriteString(`,"download_url":`)
		w.link(d.URL, "")
		w.WriteString(`,"shasum":`)
		w.value(d.SHA256)
		w.WriteString(`,"shasums_url":`)
		w.link(d.ChecksumsURL, query)
		w.WriteString(`,"shasums_signature_url":`)
		w.link(d.SignatureURL, query)
		documents[i] = w.document(shared)
	}
	return documents
}

func (e Evidence) encode() *tail {
	type key struct {
		ID             string `json:"key_id"`
		Armor          string `json:"ascii_armor"`
		TrustSignature string `json:"trust_signature"` // empty: checklist 44
		Source         string `json:"source"`
		SourceURL      string `json:"source_url"`
	}
	var keys struct {
		Keys []key `json:"gpg_public_keys"`
	}
	for i, armor := range e.Armor {
		keys.Keys = append(keys.Keys, key{ID: e.IDs[i], Armor: armor})
	}
	var w writer
	w.WriteString(`,"signing_keys":`)
	w.value(keys)
	if len(e.Packages) > 0 && !e.hashesRepeat() {
		packages := make(map[string]PackageHashes, len(e.Packages))
		for platform, p := range e.Packages {
			packages[platform.String()] = p
		}
		w.WriteString(`,"packages":`)
		w.value(packages)
	}
	w.WriteByte('}')
	return newTail(w.Bytes())
}

// hashesRepeat reports whether two platforms have a hash in common.
func (e Evidence) hashesRepeat() bool {
	seen := make(map[string]bool)
	for _, p := range e.Packages {
		for _, hash := range p.Hashes {
			if seen[hash] {
				return true
			}
			seen[hash] = true
		}
	}
	return false
}

// DecodeDownload reads another registry's description of the package for a platform. It
// is as strict as clients are, since a package that they refuse is not worth fetching.
// The returned Evidence has no IDs. It has only the packages that OpenTofu accepts;
// Terraform does not read them.
func DecodeDownload(body []byte, p address.Platform) (Download, Evidence, error) {
	var answer struct {
		Protocols   json.RawMessage `json:"protocols"`
		OS          string          `json:"os"`
		Arch        string          `json:"arch"`
		Filename    string          `json:"filename"`
		DownloadURL string          `json:"download_url"`
		Shasum      string          `json:"shasum"`
		SumsURL     string          `json:"shasums_url"`
		SigURL      string          `json:"shasums_signature_url"`
		SigningKeys struct {
			Keys []struct {
				Armor string `json:"ascii_armor"`
			} `json:"gpg_public_keys"`
		} `json:"signing_keys"`
		Packages json.RawMessage `json:"packages"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return Download{}, Evidence{}, errors.New("its description of a package is not the JSON it should be")
	}
	if answer.OS != p.OS || answer.Arch != p.Arch {
		return Download{}, Evidence{}, errors.New("it describes the package of another platform")
	}
	if answer.DownloadURL == "" || answer.SumsURL == "" || answer.SigURL == "" {
		return Download{}, Evidence{}, errors.New("it does not link to the package, SHA256SUMS and its signature")
	}
	d := Download{
		Protocols: ValidProtocols(lenient[string](answer.Protocols)), Platform: p,
		Filename: answer.Filename, SHA256: answer.Shasum,
		URL: answer.DownloadURL, ChecksumsURL: answer.SumsURL, SignatureURL: answer.SigURL,
	}
	var e Evidence
	for _, key := range answer.SigningKeys.Keys {
		e.Armor = append(e.Armor, key.Armor)
	}
	e.Packages = decodePackages(answer.Packages)
	return d, e, nil
}

const (
	maxHashes   = 16  // of a package
	maxHashSize = 128 // bytes
)

// decodePackages reads the hashes and sizes of the packages for all platforms. It
// leaves out packages that OpenTofu refuses.
func decodePackages(raw json.RawMessage) map[address.Platform]PackageHashes {
	var entries map[string]json.RawMessage
	if json.Unmarshal(raw, &entries) != nil || len(entries) > maxPlatforms {
		return nil
	}
	packages := make(map[address.Platform]PackageHashes)
	for name, raw := range entries {
		var p PackageHashes
		platform, err := address.ParsePlatformName(name)
		if err == nil && json.Unmarshal(raw, &p) == nil && p.wellFormed() {
			packages[platform] = p
		}
	}
	return packages
}

func (p PackageHashes) wellFormed() bool {
	return p.Size > 0 && len(p.Hashes) <= maxHashes && !slices.ContainsFunc(p.Hashes, func(hash string) bool {
		_, err := checkHash(hash)
		return err != nil || len(hash) > maxHashSize
	})
}
