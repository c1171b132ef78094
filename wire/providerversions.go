package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A ProviderVersion is a version in a provider registry's list.
type ProviderVersion struct {
	// Version in the normal form by which clients request it.
	Version string `json:"version"`

	// Protocols of the provider, MAJOR.MINOR. After decoding, the list is empty if the
	// origin does not say.
	Protocols []string `json:"protocols"`

	// Platforms with a package. After decoding, the list is empty if the origin does
	// not say.
	Platforms []address.Platform `json:"platforms"`
}

// EncodeProviderVersions returns the answer to {providers.v1}/NAMESPACE/TYPE/versions.
// It returns nil for an empty list, because clients then print a worse message than for
// a 404 (checklist 18). Clients print all warnings at each init that asks for the list,
// whichever version they install (checklist 22).
func EncodeProviderVersions(versions []ProviderVersion, warnings []string) *Document {
	if len(versions) == 0 {
		return nil
	}
	return documentOf(struct {
		Versions []ProviderVersion `json:"versions"`
		Warnings []string          `json:"warnings,omitempty"`
	}{versions, warnings})
}

// MaxVersions is the maximum number of versions of one provider or module. The largest
// provider of the public registry has some 700.
const MaxVersions = 10_000

const (
	maxVersionSize = 256 // bytes
	maxPlatforms   = 256 // of a version; also the maximum number of its protocols
)

// ErrTooManyVersions means that a list has more than MaxVersions.
var ErrTooManyVersions = fmt.Errorf("it lists more than %d versions", MaxVersions)

var errBadVersions = errors.New("its list of versions is not the JSON it should be")

// DecodeProviderVersions reads a registry's list of versions, newest first and without
// duplicates. Clients differ in what they tolerate: an entry that some client refuses
// is left out, and the others stay. Equal parts of different versions share memory. The
// error is ErrTooManyVersions or describes the problem: an object without a list, as
// servers send it with an error, is not an empty list.
func DecodeProviderVersions(body []byte) ([]ProviderVersion, error) {
	var versions []ProviderVersion
	shared := sharing{platforms: make(map[string][]address.Platform), words: make(map[string]string)}
	found := false
	err := eachMember(body, func(name string, d *json.Decoder) (err error) {
		if !strings.EqualFold(name, "versions") {
			return d.Decode(new(json.RawMessage))
		}
		versions = nil
		found, err = eachElement(d, func(raw json.RawMessage) error {
			if len(versions) == MaxVersions {
				return ErrTooManyVersions
			}
			if v, ok := shared.version(raw); ok {
				versions = append(versions, v)
			}
			return nil
		})
		return err
	})
	return decodedVersions(versions, found, err)
}

// decodedVersions returns the result of decoding a list.
func decodedVersions(versions []ProviderVersion, found bool, err error) ([]ProviderVersion, error) {
	switch {
	case errors.Is(err, ErrTooManyVersions):
		return nil, err
	case err != nil || !found:
		return nil, errBadVersions
	}
	return NormalVersions(versions), nil
}

// NormalVersions returns versions in their normal form, newest first. It leaves out
// duplicates and entries that clients do not accept as versions.
func NormalVersions(list []ProviderVersion) []ProviderVersion {
	type parsed struct {
		ProviderVersion
		value *version.Version
	}
	var kept []parsed
	seen := make(map[string]bool)
	for _, v := range list {
		value, err := address.ParseModuleVersion(v.Version) // accepts 1.0 for 1.0.0
		if err != nil || strings.HasPrefix(v.Version, "v") {
			continue
		}
		v.Version = value.String()
		if _, err := address.ParseProviderVersion(v.Version); err != nil || seen[v.Version] {
			continue
		}
		seen[v.Version] = true
		kept = append(kept, parsed{v, value})
	}
	address.SortNewestFirst(kept, func(p parsed) *version.Version { return p.value })
	sorted := make([]ProviderVersion, len(kept))
	for i, k := range kept {
		sorted[i] = k.ProviderVersion
	}
	return sorted
}

// sharing lets versions share equal platforms and words, since an origin repeats them
// in thousands of entries.
type sharing struct {
	platforms map[string][]address.Platform // by the JSON they are written in
	words     map[string]string
}

// version reads an entry. It returns false if no client could use the entry.
func (s *sharing) version(raw json.RawMessage) (v ProviderVersion, ok bool) {
	var entry struct {
		Version   string          `json:"version"`
		Protocols json.RawMessage `json:"protocols"`
		Platforms json.RawMessage `json:"platforms"`
	}
	if json.Unmarshal(raw, &entry) != nil || len(entry.Version) > maxVersionSize {
		return v, false
	}
	v.Version = entry.Version
	for _, p := range ValidProtocols(lenient[string](entry.Protocols)) {
		if len(v.Protocols) < maxPlatforms {
			v.Protocols = append(v.Protocols, s.word(p))
		}
	}
	written := string(entry.Platforms)
	platforms, known := s.platforms[written]
	if !known {
		platforms = s.readPlatforms(entry.Platforms)
		s.platforms[written] = platforms
	}
	v.Platforms = platforms
	return v, true
}

func (s *sharing) readPlatforms(raw json.RawMessage) (platforms []address.Platform) {
	for _, p := range lenient[address.Platform](raw) {
		p, err := address.ParsePlatform(p.OS, p.Arch)
		if err == nil && len(platforms) < maxPlatforms && !slices.Contains(platforms, p) {
			platforms = append(platforms, address.Platform{OS: s.word(p.OS), Arch: s.word(p.Arch)})
		}
	}
	return platforms
}

func (s *sharing) word(w string) string {
	if known, ok := s.words[w]; ok {
		return known
	}
	w = strings.Clone(w)
	s.words[w] = w
	return w
}
