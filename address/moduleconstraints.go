package address

import (
	"errors"
	"fmt"
	"strings"

	version "github.com/hashicorp/go-version"
)

// ModuleConstraints are the constraints of a module call. Clients read them with
// go-version, unlike the constraints of providers: there ~> 1 allows 2.0. The zero
// value allows any release.
type ModuleConstraints struct {
	text string
	all  version.Constraints
}

// maxConstraints limits the text of constraints, in bytes.
const maxConstraints = 1024

// ParseModuleConstraints parses the constraints of a module call.
func ParseModuleConstraints(text string) (c ModuleConstraints, err error) {
	c.text = strings.TrimSpace(text)
	switch {
	case c.text == "":
		return c, nil
	case len(c.text) > maxConstraints:
		return c, errors.New("the version constraints are too long")
	}
	if c.all, err = version.NewConstraint(c.text); err != nil {
		return c, fmt.Errorf("%q is not a version constraint: write an operator and a version, like ~> 1.2, and a comma before the next one", c.text)
	}
	return c, nil
}

// Allow reports whether clients select a version. They select a pre-release only if
// exactly that version is named, which they determine as for providers.
func (c ModuleConstraints) Allow(v *version.Version) bool {
	if v.Prerelease() != "" {
		as, err := ParseConstraints(c.text)
		if err != nil || !as.Allow(v) {
			return false
		}
	}
	return c.all.Check(v)
}

// String returns the constraints as they are written.
func (c ModuleConstraints) String() string { return c.text }
