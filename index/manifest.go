package index

import (
	"encoding/json"
	"regexp"
)

// defaultProtocols is what a provider speaks whose release has no manifest.
var defaultProtocols = []string{"5.0"}

var protocolVersion = regexp.MustCompile(`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)

// ParseManifest reads the protocol versions from a release's _manifest.json:
//
//	{"version": 1, "metadata": {"protocol_versions": ["5.0", "6.0"]}}
//
// They must be strings of the form MAJOR.MINOR: a number among them breaks the
// whole answer for clients (checklist 15).
func ParseManifest(document []byte) ([]string, error) {
	var m struct {
		Version  int `json:"version"`
		Metadata struct {
			ProtocolVersions []string `json:"protocol_versions"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(document, &m); err != nil {
		return nil, found(BadManifest, "it is not the JSON of a manifest: %v", err)
	}
	if m.Version != 1 {
		return nil, found(BadManifest, "its version is %d: only 1 is known", m.Version)
	}
	if len(m.Metadata.ProtocolVersions) == 0 {
		return nil, found(BadManifest, `it names no metadata.protocol_versions: write ["5.0"] or what the provider speaks`)
	}
	for _, p := range m.Metadata.ProtocolVersions {
		if !protocolVersion.MatchString(p) {
			return nil, found(BadManifest, "protocol version %q is not MAJOR.MINOR, like 5.0", p)
		}
	}
	return m.Metadata.ProtocolVersions, nil
}
