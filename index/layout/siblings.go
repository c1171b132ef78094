package layout

import (
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Siblings are the entries of a folder, for looking up the names that a stray file among
// them should have. There may be any number of entries and stray files.
type Siblings struct {
	entries []tree.Entry

	configuration string          // the file that a report names in place of all configuration here
	names         map[string]bool // nil until the first look-up
	versions      map[string]bool // versions with packages; nil until the first look-up
}

// NewSiblings returns the Siblings with these entries.
func NewSiblings(entries []tree.Entry) *Siblings {
	return &Siblings{entries: entries, configuration: firstConfiguration(entries)}
}

// firstConfiguration returns the name of the file that a report names for a module; empty if
// there is no configuration.
func firstConfiguration(entries []tree.Entry) string {
	first := ""
	for _, e := range entries {
		if !e.Info.IsDir() && moduledoc.IsConfiguration(e.Name) && (first == "" || e.Name == "main.tf") {
			first = e.Name
		}
	}
	return first
}

// represented reports whether a report names another file of the same module instead of this
// one.
func (s *Siblings) represented(name string) bool {
	return moduledoc.IsConfiguration(name) && name != s.configuration
}

// has reports whether there is a file or folder of that name.
func (s *Siblings) has(name string) bool {
	if s.names == nil {
		s.names = make(map[string]bool, len(s.entries))
		for _, e := range s.entries {
			s.names[e.Name] = true
		}
	}
	return s.names[name]
}

// packaged reports whether there are packages of a version, or of any version if it is
// empty. The names of the packages begin with prefix.
func (s *Siblings) packaged(prefix, version string) bool {
	if s.versions == nil {
		s.versions = make(map[string]bool)
		for _, e := range s.entries {
			rest, ok := strings.CutPrefix(e.Name, prefix)
			if v, _, cut := strings.Cut(rest, "_"); ok && cut && strings.HasSuffix(rest, ".zip") {
				s.versions[v], s.versions[""] = true, true
			}
		}
	}
	return s.versions[version]
}
