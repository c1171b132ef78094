package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// A Version is one version of a provider, as an origin lists it. Nothing of it
// is verified.
type Version struct {
	// Version is in the normal form that clients ask for it by.
	Version string

	// Protocols it speaks, MAJOR.MINOR; empty where the origin does not tell, as
	// mirrors do not.
	Protocols []string

	// Platforms there is a package for; empty where the origin does not tell.
	Platforms []index.Platform
}

// A Listing is all versions of a provider, newest first, each once.
type Listing struct {
	Versions []Version

	// Warnings are for those who use the provider: clients show them.
	Warnings []string
}

// What a list may have. The largest of the public registry has some 700 versions
// for 16 platforms each.
const (
	mostVersions  = 10_000
	maxVersion    = 256 // bytes
	mostPlatforms = 256 // of a version, and of its protocols
	mostWarnings  = 16
	maxWarning    = 4 << 10
)

// errTooManyVersions is ErrTooLarge, whatever the bytes of a list.
var errTooManyVersions = fmt.Errorf("it lists more than %d versions of the provider", mostVersions)

// parseVersions reads a registry's list of versions. Clients differ in what they
// forgive; here an entry that some refuse is left out and the others stay. What
// versions have in common is kept once.
func parseVersions(body []byte) (Listing, error) {
	var versions []Version
	var warnings []string
	shared := sharing{platforms: make(map[string][]index.Platform), words: make(map[string]string)}
	err := eachMember(body, func(name string, d *json.Decoder) error {
		switch {
		case strings.EqualFold(name, "versions"):
			versions = nil
			return eachElement(d, func(raw json.RawMessage) error {
				if len(versions) == mostVersions {
					return errTooManyVersions
				}
				if v, ok := shared.version(raw); ok {
					versions = append(versions, v)
				}
				return nil
			})
		case strings.EqualFold(name, "warnings"):
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				return err
			}
			warnings = lenient[string](raw)
			return nil
		}
		return d.Decode(new(json.RawMessage))
	})
	switch {
	case errors.Is(err, errTooManyVersions):
		return Listing{}, err
	case err != nil:
		return Listing{}, errors.New("its list of versions is not the JSON it should be")
	}
	warnings = slices.DeleteFunc(warnings, func(w string) bool { return len(w) > maxWarning })
	return Listing{Versions: newestFirst(versions), Warnings: slices.Clone(warnings[:min(len(warnings), mostWarnings)])}, nil
}

// eachMember reads a JSON object member by member, so that the whole of a large one
// is never in memory twice.
func eachMember(body []byte, read func(name string, d *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return errNoObject
	}
	if err := members(d, read); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errNoObject
	}
	return nil
}

var errNoObject = errors.New("it is not one JSON object")

func members(d *json.Decoder, read func(name string, d *json.Decoder) error) error {
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		if err := read(token.(string), d); err != nil { // a name is a string, or an error before
			return err
		}
	}
	_, err := d.Token()
	return err
}

// eachElement reads an array; null is an empty one.
func eachElement(d *json.Decoder, read func(json.RawMessage) error) error {
	switch token, err := d.Token(); {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != json.Delim('['):
		return errNoObject
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if err := read(raw); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// sharing has versions share what is the same.
type sharing struct {
	platforms map[string][]index.Platform // by how they are written
	words     map[string]string
}

// version reads an entry; not ok: no client could use it.
func (s *sharing) version(raw json.RawMessage) (v Version, ok bool) {
	var entry struct {
		Version   string          `json:"version"`
		Protocols json.RawMessage `json:"protocols"`
		Platforms json.RawMessage `json:"platforms"`
	}
	if json.Unmarshal(raw, &entry) != nil || len(entry.Version) > maxVersion {
		return v, false
	}
	v.Version = entry.Version
	for _, p := range protocolsOf(lenient[string](entry.Protocols)) {
		if len(v.Protocols) < mostPlatforms {
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

func (s *sharing) readPlatforms(raw json.RawMessage) (platforms []index.Platform) {
	for _, p := range lenient[index.Platform](raw) {
		p, err := index.ParsePlatform(p.OS, p.Arch)
		if err == nil && len(platforms) < mostPlatforms && !slices.Contains(platforms, p) {
			platforms = append(platforms, index.Platform{OS: s.word(p.OS), Arch: s.word(p.Arch)})
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

// lenient reads the elements of an array that are of type T.
func lenient[T any](raw json.RawMessage) (list []T) {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return nil
	}
	for _, element := range elements {
		var v *T // nil for null
		if json.Unmarshal(element, &v) == nil && v != nil {
			list = append(list, *v)
		}
	}
	return list
}

var protocolVersion = regexp.MustCompile(`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)

// protocolsOf keeps what is a protocol version: anything else would break the
// answers it is passed on in (checklist 15).
func protocolsOf(list []string) []string {
	return slices.DeleteFunc(list, func(p string) bool { return !protocolVersion.MatchString(p) })
}

// newestFirst brings the versions into their normal form and order, and leaves
// out what is no version or there already.
func newestFirst(list []Version) []Version {
	type parsed struct {
		Version
		value *version.Version
	}
	var kept []parsed
	seen := make(map[string]bool)
	for _, v := range list {
		value, err := index.ParseModuleVersion(v.Version) // which takes 1.0 for 1.0.0
		if err != nil || strings.HasPrefix(v.Version, "v") {
			continue
		}
		v.Version = value.String()
		if _, err := index.ParseProviderVersion(v.Version); err != nil || seen[v.Version] {
			continue
		}
		seen[v.Version] = true
		kept = append(kept, parsed{v, value})
	}
	slices.SortStableFunc(kept, func(a, b parsed) int {
		if c := b.value.Compare(a.value); c != 0 {
			return c
		}
		return strings.Compare(b.Version.Version, a.Version.Version)
	})
	sorted := make([]Version, len(kept))
	for i, k := range kept {
		sorted[i] = k.Version
	}
	return sorted
}
