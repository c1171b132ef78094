package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// EncodeMirrorIndex returns a mirror's index.json. Its values are objects
// (checklist 64).
func EncodeMirrorIndex(versions []string) *Document {
	var w writer
	w.WriteString(`{"versions":{`)
	for i, v := range versions {
		if i > 0 {
			w.WriteByte(',')
		}
		w.value(v)
		w.WriteString(`:{}`)
	}
	w.WriteString(`}}`)
	return w.document(nil)
}

// DecodeMirrorIndex reads the versions of a mirror's index.json, newest first and
// without duplicates. The error is ErrTooManyVersions or describes the problem, as for
// DecodeProviderVersions.
func DecodeMirrorIndex(body []byte) ([]ProviderVersion, error) {
	var versions []ProviderVersion
	found := false
	err := eachMember(body, func(name string, d *json.Decoder) error {
		if !strings.EqualFold(name, "versions") {
			return d.Decode(new(json.RawMessage))
		}
		switch token, err := d.Token(); {
		case err != nil:
			return err
		case token != json.Delim('{'):
			return errNoObject
		}
		found = true
		return members(d, func(version string, d *json.Decoder) error {
			if len(versions) == MaxVersions {
				return ErrTooManyVersions
			}
			if len(version) <= maxVersionSize {
				versions = append(versions, ProviderVersion{Version: version})
			}
			return d.Decode(new(json.RawMessage))
		})
	})
	// The JSON object has no order, and the first of two spellings of a version counts.
	slices.SortFunc(versions, func(a, b ProviderVersion) int { return strings.Compare(a.Version, b.Version) })
	return decodedVersions(versions, found, err)
}

// An Archive is the package of one platform in a mirror's VERSION.json.
type Archive struct {
	Platform address.Platform

	// URL of the package. For encoding, it is the bare name of a file beside the
	// document.
	URL string

	// Hashes are "h1:…" and "zh:…". They are optional, and clients accept any of them.
	// Decoded hashes are well-formed.
	Hashes []string
}

// SHA256 returns the digests in the "zh:" hashes.
func (a Archive) SHA256() (sums []SHA256) {
	for _, hash := range a.Hashes {
		if sum, ok := ParseZH(hash); ok {
			sums = append(sums, sum)
		}
	}
	return sums
}

// OfFiles returns the hashes of the package's files.
func (a Archive) OfFiles() (hashes []string) {
	for _, hash := range a.Hashes {
		if IsOfFiles(hash) {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}

// EncodeArchives returns a mirror's VERSION.json.
func EncodeArchives(archives []Archive) *Document {
	var w writer
	w.WriteString(`{"archives":{`)
	for i, a := range archives {
		if i > 0 {
			w.WriteByte(',')
		}
		w.value(a.Platform.String())
		w.WriteString(`:{`)
		if a.Hashes != nil {
			w.WriteString(`"hashes":`)
			w.value(a.Hashes)
			w.WriteByte(',')
		}
		w.WriteString(`"url":`)
		w.link(a.URL, "")
		w.WriteByte('}')
	}
	w.WriteString(`}}`)
	return w.document(nil)
}

// DecodeArchives reads a mirror's VERSION.json, ordered by platform. It is as
// strict as clients are.
func DecodeArchives(body []byte) ([]Archive, error) {
	var list struct {
		Archives map[string]struct {
			URL    string   `json:"url"`
			Hashes []string `json:"hashes"`
		} `json:"archives"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, errors.New("its list of archives is not the JSON it should be")
	}
	var archives []Archive
	for name, entry := range list.Archives {
		platform, err := address.ParsePlatformName(name)
		if err != nil {
			continue // no client asks for it
		}
		if entry.URL == "" {
			return nil, errors.New("it does not link to the archive")
		}
		a := Archive{Platform: platform, URL: entry.URL}
		for _, hash := range entry.Hashes {
			known, err := checkHash(hash)
			if err != nil {
				return nil, err
			}
			if known {
				a.Hashes = append(a.Hashes, hash)
			}
		}
		if len(entry.Hashes) > 0 && len(a.Hashes) == 0 {
			return nil, errors.New("all its hashes are of schemes that clients do not know")
		}
		archives = append(archives, a)
	}
	slices.SortFunc(archives, func(a, b Archive) int { return a.Platform.Compare(b.Platform) })
	return archives, nil
}
