package changes

import (
	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	version "github.com/hashicorp/go-version"
)

// A Verdict says whether the version number tells what has changed.
type Verdict struct {
	Tone  string // the tone of a chip
	Title string
	Text  string
}

// Judge compares the changes with the number of the newer version. By semantic
// versioning a breaking change needs a new major version. Before 1.0.0 it needs, by
// custom, a new minor version.
func Judge(from, to *version.Version, changes []Change) Verdict {
	breaking, additions := 0, 0
	for _, c := range changes {
		switch {
		case c.Breaking:
			breaking++
		case c.Kind == Added && c.What != "provider":
			additions++
		}
	}
	old, now := from.Segments64(), to.Segments64()
	initial := now[0] == 0 && old[0] == 0
	major := now[0] != old[0]
	minor := major || now[1] != old[1]
	patch := minor || now[2] != old[2]

	release := "patch release"
	switch {
	case major:
		release = "major release"
	case minor:
		release = "minor release"
	case !patch:
		release = "prerelease or build of the same version"
	}
	what := humanize.Comma(int64(breaking)) + " " + english.PluralWord(breaking, "breaking change", "")
	switch {
	case breaking == 0 && len(changes) == 0:
		return Verdict{"good", "The interface is the same.", "Inputs, outputs, submodules and requirements have not changed."}
	case breaking == 0 && additions > 0 && !minor && patch && !initial:
		return Verdict{"info", "No breaking changes.", "Something was added, which calls for a new minor version."}
	case breaking == 0:
		return Verdict{"good", "No breaking changes.", ""}
	case to.Prerelease() != "" && !patch, from.Prerelease() != "" && !patch:
		return Verdict{"info", what + ".", "The interface may still change until the release."}
	case major:
		return Verdict{"info", what + ".", "The new major version announces it."}
	case initial && minor:
		return Verdict{"info", what + ".", "Before 1.0.0, a new minor version may break callers."}
	case initial:
		return Verdict{"bad", what + " in a " + release + ".", "Before 1.0.0, that calls for a new minor version."}
	}
	return Verdict{"bad", what + " in a " + release + ".", "That calls for a new major version."}
}
