package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A ModuleVersion is a version in a module registry's list.
type ModuleVersion struct {
	Version     string
	Deprecation *Deprecation // nil: it is not deprecated

	// Hashes of the package, one "h1:" of its files and one "zh:" of its bytes, and its size
	// in bytes; empty if they are not known. No client reads them so far: the form is the
	// form of a provider's packages (checklist 48), as drafts of OpenTofu propose it.
	Hashes []string
	Size   int64

	// Published is when it was first offered; zero if that is not known.
	Published time.Time
}

// A Deprecation says why a version of a module is deprecated, in the form of HCP
// Terraform's registry. No client reads it so far.
type Deprecation struct {
	Reason string `json:"reason"`
	Link   string `json:"link"`
}

// EncodeModuleVersions returns the answer to
// {modules.v1}/NAMESPACE/NAME/SYSTEM/versions. Its list of modules has exactly one
// element (checklist 75). source is the URL of the module's source code, in which tools
// look for changes; it may be empty. If a version is deprecated, the other versions
// state that they are not.
func EncodeModuleVersions(versions []ModuleVersion, source string) *Document {
	deprecated := slices.ContainsFunc(versions, func(v ModuleVersion) bool { return v.Deprecation != nil })
	var w writer
	w.WriteString(`{"modules":[{`)
	if source != "" {
		w.WriteString(`"source":`)
		w.value(source)
		w.WriteByte(',')
	}
	w.WriteString(`"versions":[`)
	for i, v := range versions {
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString(`{"version":`)
		w.value(v.Version)
		if deprecated {
			w.WriteString(`,"deprecation":`)
			w.value(v.Deprecation)
		}
		if !v.Published.IsZero() {
			w.WriteString(`,"published_at":`)
			w.value(publishedAt(v.Published))
		}
		if len(v.Hashes) > 0 {
			w.WriteString(`,"hashes":`)
			w.value(v.Hashes)
			w.WriteString(`,"package_size":`)
			w.value(v.Size)
		}
		w.WriteByte('}')
	}
	w.WriteString(`]}]}`)
	return w.document(nil)
}

// DecodeModuleVersions reads the versions of a module registry's list in their normal
// form, newest first and without duplicates. Like clients it reads only the first
// element of modules, and skips entries that are not versions. The error is
// ErrTooManyVersions or describes the problem.
func DecodeModuleVersions(body []byte) ([]string, error) {
	var versions []string
	found := false
	add := func(raw json.RawMessage) error {
		if len(versions) == MaxVersions {
			return ErrTooManyVersions
		}
		var entry struct {
			Version string `json:"version"`
		}
		if json.Unmarshal(raw, &entry) == nil && len(entry.Version) <= maxVersionSize {
			versions = append(versions, entry.Version)
		}
		return nil
	}
	err := eachMember(body, func(name string, d *json.Decoder) error {
		if !strings.EqualFold(name, "modules") {
			return d.Decode(new(json.RawMessage))
		}
		if token, err := d.Token(); err != nil || token != json.Delim('[') {
			return errNoObject
		}
		if d.More() {
			if token, err := d.Token(); err != nil || token != json.Delim('{') {
				return errNoObject
			}
			found = true
			err := members(d, func(name string, d *json.Decoder) error {
				if !strings.EqualFold(name, "versions") {
					return d.Decode(new(json.RawMessage))
				}
				_, err := eachElement(d, add)
				return err
			})
			if err != nil {
				return err
			}
		}
		for d.More() {
			if err := d.Decode(new(json.RawMessage)); err != nil {
				return err
			}
		}
		_, err := d.Token()
		return err
	})
	switch {
	case errors.Is(err, ErrTooManyVersions):
		return nil, err
	case err != nil || !found:
		return nil, errBadVersions
	}
	return normalModuleVersions(versions), nil
}

// normalModuleVersions returns versions in their normal form, newest first. It leaves
// out duplicates and entries that are not versions.
func normalModuleVersions(list []string) []string {
	var values []*version.Version
	seen := make(map[string]bool)
	for _, text := range list {
		v, err := address.ParseModuleVersion(text)
		if err != nil || seen[v.String()] {
			continue
		}
		seen[v.String()] = true
		values = append(values, v)
	}
	address.SortNewestFirst(values, func(v *version.Version) *version.Version { return v })
	versions := make([]string, len(values))
	for i, v := range values {
		versions[i] = v.String()
	}
	return versions
}
