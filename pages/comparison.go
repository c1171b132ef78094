package pages

import version "github.com/hashicorp/go-version"

// A comparison lists the changes between two versions, as the page shows them.
type comparison struct {
	From, To string

	// Others are the versions that can be compared with To.
	Others []versionLink

	// Action is the path of the form that chooses one of them.
	Action string

	Changes []change
	Verdict verdict

	// Later reports that From is the newer version, so that the changes lead from To to
	// From.
	Later bool

	// Unreadable reports that parts of a package could not be read, so that what is in them
	// looks as if it were not there. There is no Verdict then.
	Unreadable bool
}

// A verdict says whether the version number tells what has changed.
type verdict struct {
	Tone  string // the tone of a chip
	Title string
	Text  string
}

// judge compares the changes with the number of the newer version. By semantic
// versioning a breaking change needs a new major version. Before 1.0.0 it needs, by
// custom, a new minor version.
func judge(from, to *version.Version, changes []change) verdict {
	breaking, additions := 0, 0
	for _, c := range changes {
		switch {
		case c.Breaking:
			breaking++
		case c.Kind == added && c.What != "provider":
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
	what := count(breaking, "breaking change", "breaking changes")
	switch {
	case breaking == 0 && len(changes) == 0:
		return verdict{"good", "The interface is the same.", "Inputs, outputs, submodules and requirements have not changed."}
	case breaking == 0 && additions > 0 && !minor && patch && !initial:
		return verdict{"info", "No breaking changes.", "Something was added, which calls for a new minor version."}
	case breaking == 0:
		return verdict{"good", "No breaking changes.", ""}
	case to.Prerelease() != "" && !patch, from.Prerelease() != "" && !patch:
		return verdict{"info", what + ".", "The interface may still change until the release."}
	case major:
		return verdict{"info", what + ".", "The new major version announces it."}
	case initial && minor:
		return verdict{"info", what + ".", "Before 1.0.0, a new minor version may break callers."}
	case initial:
		return verdict{"bad", what + " in a " + release + ".", "Before 1.0.0, that calls for a new minor version."}
	}
	return verdict{"bad", what + " in a " + release + ".", "That calls for a new major version."}
}
