package changes

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
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

// Notes returns the section of a changelog about a version: the text between the heading of the
// version and the heading that ends the section. It is empty if there is none.
func Notes(text, version string) string {
	lines := slices.Collect(strings.Lines(strings.TrimPrefix(withoutReturns(text), "\ufeff")))
	headings := headingsOf(lines)
	begin := headingOf(headings, version)
	if begin < 0 {
		return ""
	}
	of, end := headings[begin], len(lines)
	top := topLevel(headings)
	for _, h := range headings[begin+1:] {
		if h.ends(of, top) {
			end = h.line
			break
		}
	}
	return strings.TrimSpace(strings.Join(lines[of.line+1:end], ""))
}

// ends reports whether a heading ends the section of a heading before it. Generators write patch
// releases one level below minor releases, which is also the level of the parts of a release: there
// only the heading of another version ends a section.
func (h heading) ends(of heading, top int) bool {
	if h.level < of.level || h.level == of.level && of.level == top {
		return true
	}
	return h.begins && h.version != of.version && (h.level == of.level || h.isRelease)
}

// headingOf returns the heading of a version, or a negative number if there is none: the first
// one of the highest level. A heading below the highest level that has versions must begin with
// the version: "Upgrading from 1.2.0" is a part of the section of another version.
func headingOf(headings []heading, version string) int {
	top, found := topLevel(headings), -1
	for i, h := range headings {
		if h.version == version && (h.level == top || h.begins) && (found < 0 || h.level < headings[found].level) {
			found = i
		}
	}
	return found
}

// topLevel returns the highest level that has versions, which is the smallest number; beyond all
// levels if there is none.
func topLevel(headings []heading) int {
	top := 7
	for _, h := range headings {
		if h.version != "" {
			top = min(top, h.level)
		}
	}
	return top
}

// A heading is a heading of a changelog.
type heading struct {
	line, level int
	version     string // the first one that it names; may be empty
	begins      bool   // the version is its first word
	isRelease   bool   // nothing else is in it, but for a link and a date
}

// headingsOf finds the headings outside of blocks of code.
func headingsOf(lines []string) (headings []heading) {
	fence := ""
	for i, line := range lines {
		begins := strings.TrimLeft(line, " ")
		if mark := fenceOf(begins); mark != "" && (fence == "" || strings.HasPrefix(mark, fence)) {
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
		} else if level := headingLevel(begins); level > 0 && fence == "" {
			h := heading{line: i, level: level}
			h.version, h.begins = versionIn(begins)
			h.isRelease = h.begins && isRelease(begins, h.version)
			headings = append(headings, h)
		}
	}
	return headings
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

var inParentheses = regexp.MustCompile(`\([^)]*\)`)

// isRelease reports whether a heading has no words after its version.
func isRelease(heading, version string) bool {
	_, rest, _ := strings.Cut(heading, version)
	return !strings.ContainsFunc(inParentheses.ReplaceAllString(rest, ""), unicode.IsLetter)
}

// versionIn returns the first word of a heading that is a version, as in
// "## [1.2.0] - 2026-11-12" or "# v1.2.0", and whether no word is before it. The version is empty
// if there is none.
func versionIn(heading string) (version string, begins bool) {
	begins = true
	for word := range strings.FieldsFuncSeq(heading, func(r rune) bool { return strings.ContainsRune("#[]() :,\n\t", r) }) {
		word = strings.TrimPrefix(word, "v")
		if _, err := address.ParseProviderVersion(word); err == nil {
			return word, begins
		}
		begins = false
	}
	return "", false
}
