package changes

import (
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
)

// changelogNames are the names of changelogs, in lower case and without an ending: the first
// one counts.
var changelogNames = []string{"changelog", "changes", "history", "release_notes"}

// Changelog returns the changelog at the root of a package, or nil if there is none.
func Changelog(files *content.Files) (found *content.ListedFile) {
	best := len(changelogNames)
	for i := range files.List {
		name := files.List[i].Path
		if strings.Contains(name, "/") || !markdown.IsDocument(name) {
			continue
		}
		rank := slices.Index(changelogNames, strings.ToLower(strings.TrimSuffix(name, path.Ext(name))))
		if rank >= 0 && rank < best {
			best, found = rank, &files.List[i]
		}
	}
	return found
}

// Notes returns the section of a changelog about a version: the text between the heading that
// names the version and the next heading of the same level or above. It is empty if there is
// none.
func Notes(text, version string) string {
	var section []string
	level, fence := 0, ""
	for line := range strings.Lines(withoutReturns(text)) {
		begins := strings.TrimLeft(line, " ")
		if mark := fenceOf(begins); mark != "" && (fence == "" || strings.HasPrefix(mark, fence)) {
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
		} else if found := headingLevel(begins); found > 0 && fence == "" {
			if level > 0 && found <= level {
				break
			}
			if level == 0 && namesVersion(begins, version) {
				level = found
				continue
			}
		}
		if level > 0 {
			section = append(section, line)
		}
	}
	return strings.TrimSpace(strings.Join(section, ""))
}

// fenceOf returns the marks that a block of code begins or ends with.
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, mark)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// headingLevel returns the level of a heading, or zero for another line.
func headingLevel(line string) int {
	rest := strings.TrimLeft(line, "#")
	if n := len(line) - len(rest); n >= 1 && n <= 6 && strings.HasPrefix(rest, " ") {
		return n
	}
	return 0
}

// namesVersion reports whether a version is a word of a heading, as in "## [1.2.0] - 2026-11-12"
// or "# v1.2.0".
func namesVersion(heading, version string) bool {
	for word := range strings.FieldsFuncSeq(heading, func(r rune) bool { return strings.ContainsRune("#[]() :,\n\t", r) }) {
		if strings.TrimPrefix(word, "v") == version {
			return true
		}
	}
	return false
}
