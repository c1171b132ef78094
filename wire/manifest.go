package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// DefaultProtocols returns the protocols of a provider whose release has no manifest.
func DefaultProtocols() []string { return []string{"5.0"} }

var protocolVersion = regexp.MustCompile(`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)

// ValidProtocols removes elements that are not protocol versions, MAJOR.MINOR, from
// list: anything else makes the whole answer unreadable for clients (checklist 15).
func ValidProtocols(list []string) []string {
	return slices.DeleteFunc(list, func(p string) bool { return !protocolVersion.MatchString(p) })
}

// DecodeManifest reads the protocol versions from a release's _manifest.json:
//
//	{"version": 1, "metadata": {"protocol_versions": ["5.0", "6.0"]}}
//
// The versions must be strings of the form MAJOR.MINOR: a number among them makes the
// whole answer unreadable for clients (checklist 15).
func DecodeManifest(document []byte) ([]string, error) {
	var m struct {
		Version  int `json:"version"`
		Metadata struct {
			ProtocolVersions []string `json:"protocol_versions"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(document, &m); err != nil {
		return nil, fmt.Errorf("it is not the JSON of a manifest: %w", err)
	}
	if m.Version != 1 {
		return nil, fmt.Errorf("its version is %d: only 1 is known", m.Version)
	}
	if len(m.Metadata.ProtocolVersions) == 0 {
		return nil, errors.New(`it names no metadata.protocol_versions: write ["5.0"] or what the provider speaks`)
	}
	for _, p := range m.Metadata.ProtocolVersions {
		if !protocolVersion.MatchString(p) {
			return nil, fmt.Errorf("protocol version %q is not MAJOR.MINOR, like 5.0", p)
		}
	}
	return m.Metadata.ProtocolVersions, nil
}
