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

// A ProviderVersion is one version in a provider registry's list.
type ProviderVersion struct {
	// Version in the normal form by which clients request it.
	Version string `json:"version"`

	// Protocols it speaks, MAJOR.MINOR. Decoded, it is empty where the origin
	// does not tell.
	Protocols []string `json:"protocols"`

	// Platforms with a package. Decoded, it is empty where the origin does not
	// tell.
	Platforms []address.Platform `json:"platforms"`
}

// EncodeProviderVersions is the answer to {providers.v1}/NAMESPACE/TYPE/versions.
// It returns nil for an empty list, which gives clients a worse message than a
// 404 does (checklist 18). Clients print all warnings at each init that asks for the
// list, whichever version they install (checklist 22).
func EncodeProviderVersions(versions []ProviderVersion, warnings []string) *Document {
	if len(versions) == 0 {
		return nil
	}
	var w writer
	w.value(struct {
		Versions []ProviderVersion `json:"versions"`
		Warnings []string          `json:"warnings,omitempty"`
	}{versions, warnings})
	return w.document(nil)
}

// MaxVersions is how many versions of one provider or module are read. The largest
// provider of the public registry has some 700.
const MaxVersions = 10_000

const (
	maxVersionSize = 256 // bytes
	maxPlatforms   = 256 // of a version; also its protocols
)

// ErrTooManyVersions means that a list has more than MaxVersions.
var ErrTooManyVersions = fmt.Errorf("it lists more than %d versions", MaxVersions)

var errBadVersions = errors.New("its list of versions is not the JSON it should be")

// DecodeProviderVersions reads a registry's list of versions, newest first, each
// once. Clients differ in what they tolerate; an entry that some refuse is left
// out and the others stay. Equal parts of different versions share memory. The
// error is ErrTooManyVersions or says what is wrong.
func DecodeProviderVersions(body []byte) ([]ProviderVersion, error) {
	var versions []ProviderVersion
	shared := sharing{platforms: make(map[string][]address.Platform), words: make(map[string]string)}
	err := eachMember(body, func(name string, d *json.Decoder) error {
		if !strings.EqualFold(name, "versions") {
			return d.Decode(new(json.RawMessage))
		}
		versions = nil
		return eachElement(d, func(raw json.RawMessage) error {
			if len(versions) == MaxVersions {
				return ErrTooManyVersions
			}
			if v, ok := shared.version(raw); ok {
				versions = append(versions, v)
			}
			return nil
		})
	})
	return decodedVersions(versions, err)
}

// decodedVersions ends the decoding of a list.
func decodedVersions(versions []ProviderVersion, err error) ([]ProviderVersion, error) {
	switch {
	case errors.Is(err, ErrTooManyVersions):
		return nil, err
	case err != nil:
		return nil, errBadVersions
	}
	return NormalVersions(versions), nil
}

// NormalVersions brings versions into their normal form and order, newest first,
// and leaves out duplicates and what clients do not accept as a version.
func NormalVersions(list []ProviderVersion) []ProviderVersion {
	type parsed struct {
		ProviderVersion
		value *version.Version
	}
	var kept []parsed
	seen := make(map[string]bool)
	for _, v := range list {
		value, err := address.ParseModuleVersion(v.Version) // which accepts 1.0 for 1.0.0
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

// sharing makes versions share equal platforms and words: an origin repeats them
// in thousands of entries.
type sharing struct {
	platforms map[string][]address.Platform // by the JSON they are written in
	words     map[string]string
}

// version reads an entry; it reports false if no client could use it.
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
