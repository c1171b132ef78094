package module

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

const (
	modulePath = "github.com/caddy-terraform/caddy-terraform-registry" // of go.mod
	caddyPath  = "github.com/caddyserver/caddy/v2"

	// BinaryName is the name of the program in releases.
	BinaryName = "caddy-terraform-registry"
)

// A Version describes the versions that a binary was built from.
type Version struct {
	Registry string `json:"registry"`           // such as v1.2.0; "(devel)" if it was not built from a release
	Caddy    string `json:"caddy"`              // such as v2.11.2
	Go       string `json:"go"`                 // such as go1.26.1
	Commit   string `json:"commit,omitempty"`   // of the registry; empty if Go did not record it
	Modified bool   `json:"modified,omitempty"` // there were uncommitted changes
}

// BuildVersion returns the version of this binary. If the registry is a dependency of
// another program, as in builds by xcaddy, Go records no commit.
func BuildVersion() Version {
	v := Version{Registry: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		switch m.Path {
		case modulePath:
			if m.Replace == nil {
				v.Registry = cmp.Or(m.Version, v.Registry)
			}
		case caddyPath:
			v.Caddy = m.Version
		}
	}
	if strings.HasPrefix(info.Main.Path+"/", modulePath+"/") {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	// Releases have their version in place of Caddy's: "v1.2.0 with Caddy".
	if release, _, _ := strings.Cut(caddy.CustomVersion, " "); release != "" && caddy.CustomBinaryName == BinaryName {
		v.Registry = release
	}
	return v
}
