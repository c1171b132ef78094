package pages

import (
	"cmp"
	"slices"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// A comparison lists the changes between two versions, as the page shows them.
type comparison struct {
	From, To string

	// Others are the versions that can be compared with To.
	Others []versionLink

	// Action is the path of the form that chooses one of them.
	Action string

	// Groups have the changes of the root and of each submodule.
	Groups  []changeGroup
	Verdict verdict

	// Notes is what the changelog says of the newer version.
	Notes     prose
	NotesFrom link // the changelog

	Files fileChanges

	// Later reports that From is the newer version, so that the changes lead from To to
	// From.
	Later bool

	// Unreadable reports that parts of a package could not be read, so that what is in them
	// looks as if it were not there. There is no Verdict then.
	Unreadable bool
}

// A changeGroup has the changes of one module of a package.
type changeGroup struct {
	Module  link // the submodule; no text: the root
	Changes []change

	// Resources are the resources that were added or removed.
	Resources []change
}

// groupChanges groups the changes of the interface and the changes of the resources by
// module: the root first.
func groupChanges(changes, resources []change) (groups []changeGroup) {
	of := func(path string) *changeGroup {
		for i := range groups {
			if groups[i].Module.Text == path {
				return &groups[i]
			}
		}
		groups = append(groups, changeGroup{Module: link{Text: path}})
		return &groups[len(groups)-1]
	}
	for _, c := range changes {
		g := of(c.Submodule)
		g.Changes = append(g.Changes, c)
	}
	for _, c := range resources {
		g := of(c.Submodule)
		g.Resources = append(g.Resources, c)
	}
	slices.SortStableFunc(groups, func(a, b changeGroup) int { return cmp.Compare(a.Module.Text, b.Module.Text) })
	return groups
}

// maxResourceChanges is how many added and removed resources are shown.
const maxResourceChanges = 300

// compareResources returns the resources that were added to the modules of a package or
// removed from them. Whether a removal breaks anything is for the author to say, as a moved
// block may name another resource in its place.
func compareResources(from, to *moduledoc.Package) (found []change) {
	c := comparer{}
	compare := func(old, now *moduledoc.Module) {
		name := func(r *moduledoc.Resource) string { return string(r.Mode) + " " + r.Type + "." + r.Name }
		pair(old.Resources, now.Resources, name, func(was, is *moduledoc.Resource) {
			switch {
			case was == nil:
				c.add(change{Kind: added, What: string(is.Mode), Name: is.Type + "." + is.Name, At: is.At})
			case is == nil:
				c.add(change{Kind: removed, What: string(was.Mode), Name: was.Type + "." + was.Name, At: was.At})
			}
		})
	}
	compare(&from.Root, &to.Root)
	for i := range to.Submodules {
		if old := from.Module(to.Submodules[i].Path); old != nil {
			c.submodule = old.Path
			compare(old, &to.Submodules[i])
		}
	}
	return c.found
}

// fileChanges are the files that differ between two packages.
type fileChanges struct {
	List    []fileChange
	LeftOut int
	Partial bool // a package has more than is read
}

// A fileChange is a file that differs.
type fileChange struct {
	Kind changeKind
	File link
}

// maxFileChanges is how many files are shown.
const maxFileChanges = 300

// compareFiles returns the files that differ between two packages, by path.
func compareFiles(from, to *content.Files, url func(path string) string) fileChanges {
	f := fileChanges{Partial: from.Partial || to.Partial}
	add := func(kind changeKind, path string) {
		f.List = append(f.List, fileChange{kind, link{printable(path), url(path)}})
	}
	for i, j := 0, 0; i < len(from.List) || j < len(to.List); {
		switch {
		case j == len(to.List) || i < len(from.List) && from.List[i].Path < to.List[j].Path:
			add(removed, from.List[i].Path)
			i++
		case i == len(from.List) || to.List[j].Path < from.List[i].Path:
			add(added, to.List[j].Path)
			j++
		default:
			if from.List[i].Sum != to.List[j].Sum {
				add(changed, to.List[j].Path)
			}
			i, j = i+1, j+1
		}
	}
	f.LeftOut = max(len(f.List)-maxFileChanges, 0)
	f.List = f.List[:len(f.List)-f.LeftOut]
	return f
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
