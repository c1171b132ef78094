package upstream

import (
	"encoding/json"
	"errors"
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

// parseVersions reads a registry's list of versions. Clients differ in what they
// forgive; here an entry that some refuse is left out and the others stay.
func parseVersions(body []byte) (Listing, error) {
	var list struct {
		Versions []json.RawMessage `json:"versions"`
		Warnings json.RawMessage   `json:"warnings"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return Listing{}, errors.New("its list of versions is not the JSON it should be")
	}
	var versions []Version
	for _, raw := range list.Versions {
		var entry struct {
			Version   string          `json:"version"`
			Protocols json.RawMessage `json:"protocols"`
			Platforms json.RawMessage `json:"platforms"`
		}
		if json.Unmarshal(raw, &entry) != nil {
			continue
		}
		v := Version{Version: entry.Version, Protocols: protocolsOf(lenient[string](entry.Protocols))}
		for _, p := range lenient[index.Platform](entry.Platforms) {
			if p, err := index.ParsePlatform(p.OS, p.Arch); err == nil && !slices.Contains(v.Platforms, p) {
				v.Platforms = append(v.Platforms, p)
			}
		}
		versions = append(versions, v)
	}
	return Listing{Versions: newestFirst(versions), Warnings: lenient[string](list.Warnings)}, nil
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
