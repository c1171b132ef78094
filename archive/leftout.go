package archive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/moby/patternmatcher"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Not every file in a module's folder is part of the module. Clutter, and files whose names
// mark them as secrets, are left out of the package whatever a .terraformignore says. Other
// names that begin with a dot stay, since modules use them.

// clutter are names that version control, caches, editors and operating systems
// leave behind.
var clutter = []string{
	".git", ".svn", ".hg", ".bzr", ".jj", "CVS",
	".terraform", ".terragrunt-cache",
	"crash.log", ".DS_Store",
}

// IsLeftOut reports whether a file or folder of that name is left out of every
// module's package.
func IsLeftOut(name string) bool { return isClutter(name) || secretByName(name) != "" }

func isClutter(name string) bool {
	return slices.Contains(clutter, name) || tree.IsUnfinishedName(name) ||
		strings.HasPrefix(name, "..") || // Kubernetes' own names in a volume, to which its files are symlinks
		strings.HasPrefix(name, "crash.") && strings.HasSuffix(name, ".log") ||
		strings.HasPrefix(name, ".#") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") && len(name) > 1 ||
		isSwapFile(name) || isUnfinishedCopy(name)
}

// isSwapFile reports whether Vim uses the name beside a file that is being edited:
// .NAME.swp, or with an earlier letter.
func isSwapFile(name string) bool {
	ext := path.Ext(name)
	return strings.HasPrefix(name, ".") && len(name) > len(ext) && len(ext) == len(".swp") &&
		strings.HasPrefix(ext, ".sw") && 'a' <= ext[3] && ext[3] <= 'p'
}

// isUnfinishedCopy reports whether rsync uses the name for a file that it is still
// copying: .NAME.XXXXXX with six random letters and digits. Six lower-case letters
// may also be an extension: then NAME must have one too.
func isUnfinishedCopy(name string) bool {
	ext := path.Ext(name)
	if !strings.HasPrefix(name, ".") || len(ext) != len(".XXXXXX") || len(name) <= len(ext)+1 || isExample(name) {
		return false
	}
	plain := true
	for _, c := range ext[1:] {
		switch {
		case 'a' <= c && c <= 'z':
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			plain = false
		default:
			return false
		}
	}
	return !plain || strings.Contains(name[1:len(name)-len(ext)], ".")
}

// ignoreName is the file at the root of a module's folder with patterns of files that are
// not part of the module. Terraform's own reader of it is internal to hashicorp/go-slug and
// works on the local disk only. That reader was derived from Moby's pattern matcher, which
// is used here with patterns rewritten as go-slug reads them.
const ignoreName = ".terraformignore"

// Limits of a .terraformignore: its size in bytes, and the work of matching, counted in
// bytes of paths times stars in patterns, which is a second or two at most. A folder of
// 10,000 files may have half a dozen patterns, a folder of 1,000 files ten times as many.
const (
	maxIgnoreSize = 16 << 10
	maxIgnoreWork = 16 << 20
)

// ignoreRules are the patterns of a .terraformignore. Nil ignores nothing.
type ignoreRules struct {
	all *patternmatcher.PatternMatcher

	// last are the patterns after the last pattern with an exclamation mark: a file that
	// they match is certainly ignored.
	last *patternmatcher.PatternMatcher

	weight int // the work of matching one byte of a path
	work   int // done so far
}

// A folderMatch is the result of matching a folder. Matching its content depends on it.
type folderMatch = patternmatcher.MatchInfo

// badIgnoreRules is the finding for a .terraformignore that cannot be used.
func badIgnoreRules(err error) *tree.Finding {
	return tree.AsFinding(err).Inside(ignoreName)
}

// readIgnoreRules reads a folder's .terraformignore.
func readIgnoreRules(p tree.Part, name string) (*ignoreRules, error) {
	f, _, err := p.OpenRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxIgnoreSize+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxIgnoreSize {
		return nil, tree.Findingf(tree.TooLarge, "it is larger than %d bytes: shorten it", maxIgnoreSize)
	}
	return parseIgnoreRules(content)
}

func parseIgnoreRules(content []byte) (*ignoreRules, error) {
	if !utf8.Valid(content) || bytes.ContainsRune(content, 0) {
		return nil, tree.Findingf(tree.BadName, "it is not a text in UTF-8: write it again")
	}
	content = bytes.TrimPrefix(content, []byte("\ufeff")) // some editors write a byte order mark first
	r := &ignoreRules{}
	var all, last []string
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, maxIgnoreSize+1)
	for n := 1; lines.Scan(); n++ {
		pattern := ignorePattern(lines.Text())
		if pattern == "" {
			continue
		}
		if err := checkPattern(pattern); err != nil {
			return nil, tree.Findingf(tree.BadName, "line %d is not a pattern: correct it (%v)", n, err)
		}
		r.weight += 1 + strings.Count(pattern, "*")
		all, last = append(all, pattern), append(last, pattern)
		if pattern[0] == '!' {
			last = nil
		}
	}
	if len(all) == 0 {
		return nil, lines.Err()
	}
	// There are no errors here: every pattern has been checked.
	r.all, _ = patternmatcher.New(all)
	r.last, _ = patternmatcher.New(last)
	return r, lines.Err()
}

// ignorePattern rewrites a line for the matcher as go-slug does: a pattern matches
// in every folder unless it begins with a slash, and one that ends in a slash
// matches everything in the folder. It returns nothing for a comment.
func ignorePattern(line string) string {
	pattern := strings.TrimSpace(line)
	if pattern == "" || pattern[0] == '#' {
		return ""
	}
	pattern, negated := strings.CutPrefix(pattern, "!")
	pattern = strings.TrimSpace(pattern)
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	if rest, anchored := strings.CutPrefix(pattern, "/"); anchored {
		pattern = strings.TrimLeft(rest, "/")
	} else if pattern != "" {
		pattern = "**/" + pattern
	}
	if negated {
		pattern = "!" + pattern
	}
	return pattern
}

// checkPattern makes the matcher compile a pattern, which it otherwise does when
// it first matches.
func checkPattern(pattern string) error {
	if slices.Contains(strings.Split(pattern, "/"), "..") {
		return errors.New("it leaves the folder")
	}
	one, err := patternmatcher.New([]string{strings.TrimPrefix(pattern, "!")})
	if err != nil {
		return err
	}
	if len(one.Patterns()) == 0 {
		return errors.New("there is nothing in it")
	}
	_, err = one.MatchesOrParentMatches("x")
	return err
}

// ignoresFile reports whether the file at path, relative to the module's folder,
// is not part of the module.
func (r *ignoreRules) ignoresFile(path string, in folderMatch) (bool, error) {
	if r == nil {
		return false, nil
	}
	if err := r.count(len(path)); err != nil {
		return false, err
	}
	ignored, _, err := r.all.MatchesUsingParentResults(path, in)
	return ignored, err
}

// ignoresFolder reports whether nothing in a folder can be part of the module.
func (r *ignoreRules) ignoresFolder(path string, in folderMatch) (ignored bool, within folderMatch, err error) {
	if r == nil {
		return false, within, nil
	}
	if err = r.count(len(path) * (3 + strings.Count(path, "/"))); err != nil { // its parents are matched again
		return false, within, err
	}
	for _, name := range []string{path, path + "/"} {
		if ignored, err = r.last.MatchesOrParentMatches(name); ignored || err != nil {
			return ignored, within, err
		}
	}
	_, within, err = r.all.MatchesUsingParentResults(path, in)
	return false, within, err
}

// count adds the work of matching so many bytes of paths.
func (r *ignoreRules) count(size int) error {
	if r.work += size * r.weight; r.work > maxIgnoreWork {
		return tree.Findingf(tree.TooLarge, "it has too many patterns for so many files: shorten it")
	}
	return nil
}

// maxListed is how many names a note lists before it counts the rest.
const maxListed = 3

// A nameList collects names for a note: the first ones, and how many there are.
type nameList struct {
	first []string
	total int
}

// maxListedName is how many bytes of a name are listed: in a tar a name may have any length.
const maxListedName = 200

// listedName returns the part of a name that is listed.
func listedName(name string) string {
	if len(name) > maxListedName {
		return strings.ToValidUTF8(name[:maxListedName], "") + "…"
	}
	return strings.Clone(name)
}

// add adds a name, followed by its kind if one is given.
func (l *nameList) add(name string, kind ...string) {
	if l.total++; len(l.first) > maxListed {
		return
	}
	name = listedName(name)
	for _, k := range kind {
		name += " (" + k + ")"
	}
	l.first = append(l.first, name)
}

// String returns a list like "a, b, c and 2 others". If there is only one other, the list
// includes it.
func (l *nameList) String() string {
	switch {
	case l.total == 0:
		return ""
	case l.total == 1:
		return l.first[0]
	case l.total == len(l.first):
		last := len(l.first) - 1
		return strings.Join(l.first[:last], ", ") + " and " + l.first[last]
	}
	shown := min(maxListed, len(l.first))
	return fmt.Sprintf("%s and %d others", strings.Join(l.first[:shown], ", "), l.total-shown)
}
