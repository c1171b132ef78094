package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

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
}

// Vouchers are what the descriptions of all platforms of a release have in
// common: the keys, and the hashes of all packages.
type Vouchers struct {
	// Armor has the public keys, one armor block each (checklist 43). IDs are
	// their long IDs, which no client reads (47).
	Armor, IDs []string

	// Packages are the hashes and sizes of all platforms, for OpenTofu ≥ 1.12
	// (checklist 48). They are left out if there are none, or if two platforms have a
	// hash in common, on which OpenTofu panics (49).
	Packages map[address.Platform]PackageHashes
}

// PackageHashes are the hashes and the size in bytes of a package. Each of the hashes
// begins with its scheme; those of "h1:" and "zh:" that are decoded are well-formed.
type PackageHashes struct {
	Hashes []string `json:"hashes"`
	Size   int64    `json:"package_size"`
}

// EncodeDownloads returns the documents of a release's platforms, in the order
// given. They share the encoded vouchers, which are by far the larger part.
func EncodeDownloads(downloads []Download, v Vouchers) []*Document {
	shared := v.encode()
	documents := make([]*Document, len(downloads))
	for i, d := range downloads {
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
		w.link(d.URL)
		w.WriteString(`,"shasum":`)
		w.value(d.SHA256)
		w.WriteString(`,"shasums_url":`)
		w.link(d.ChecksumsURL)
		w.WriteString(`,"shasums_signature_url":`)
		w.link(d.SignatureURL)
		documents[i] = w.document(shared)
	}
	return documents
}

func (v Vouchers) encode() *tail {
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
	for i, armor := range v.Armor {
		keys.Keys = append(keys.Keys, key{ID: v.IDs[i], Armor: armor})
	}
	var w writer
	w.WriteString(`,"signing_keys":`)
	w.value(keys)
	if len(v.Packages) > 0 && !v.hashesRepeat() {
		packages := make(map[string]PackageHashes, len(v.Packages))
		for platform, p := range v.Packages {
			packages[platform.String()] = p
		}
		w.WriteString(`,"packages":`)
		w.value(packages)
	}
	w.WriteByte('}')
	return newTail(w.Bytes())
}

// hashesRepeat reports whether two platforms have a hash in common.
func (v Vouchers) hashesRepeat() bool {
	seen := make(map[string]bool)
	for _, p := range v.Packages {
		for _, hash := range p.Hashes {
			if seen[hash] {
				return true
			}
			seen[hash] = true
		}
	}
	return false
}

// DecodeDownload reads another registry's description of the package of a
// platform. It is as strict as clients are: what they refuse is not worth
// fetching. Of the vouchers it reads the keys' armor, and of the packages, which
// Terraform does not read, those that OpenTofu accepts.
func DecodeDownload(body []byte, p address.Platform) (Download, Vouchers, error) {
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
		return Download{}, Vouchers{}, errors.New("its description of a package is not the JSON it should be")
	}
	if answer.OS != p.OS || answer.Arch != p.Arch {
		return Download{}, Vouchers{}, errors.New("it describes the package of another platform")
	}
	if answer.DownloadURL == "" || answer.SumsURL == "" || answer.SigURL == "" {
		return Download{}, Vouchers{}, errors.New("it does not link to the package, SHA256SUMS and its signature")
	}
	d := Download{
		Protocols: ValidProtocols(lenient[string](answer.Protocols)), Platform: p,
		Filename: answer.Filename, SHA256: answer.Shasum,
		URL: answer.DownloadURL, ChecksumsURL: answer.SumsURL, SignatureURL: answer.SigURL,
	}
	var v Vouchers
	for _, key := range answer.SigningKeys.Keys {
		v.Armor = append(v.Armor, key.Armor)
	}
	v.Packages = decodePackages(answer.Packages)
	return d, v, nil
}

const (
	maxHashes   = 16  // of a package
	maxHashSize = 128 // bytes
)

// decodePackages reads what is said of the packages of all platforms. A package with
// something that OpenTofu refuses is left out.
func decodePackages(raw json.RawMessage) map[address.Platform]PackageHashes {
	var entries map[string]json.RawMessage
	if json.Unmarshal(raw, &entries) != nil || len(entries) > maxPlatforms {
		return nil
	}
	packages := make(map[address.Platform]PackageHashes)
	for name, raw := range entries {
		var p PackageHashes
		os, arch, _ := strings.Cut(name, "_")
		platform, err := address.ParsePlatform(os, arch)
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
