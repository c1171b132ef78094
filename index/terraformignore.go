package index

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/moby/patternmatcher"
)

// ignoreName is the file at a module folder's root that names what is no part of
// the module. Terraform's own reader of it is internal to hashicorp/go-slug and
// works on the local disk only. It was made from Moby's pattern matcher, which is
// used here on patterns that are written as go-slug reads them.
const ignoreName = ".terraformignore"

// Bounds of a .terraformignore: its size, and the work of matching, counted in
// bytes of paths times stars in patterns. That is a second or two at most. A
// folder of 10,000 files may have half a dozen patterns, one of 1,000 ten times
// as many.
const (
	maxIgnoreSize = 16 << 10
	maxIgnoreWork = 16 << 20
)

// ignoreRules are what a .terraformignore says. Nil ignores nothing.
type ignoreRules struct {
	all *patternmatcher.PatternMatcher

	// last are those behind the last one that begins with an exclamation mark:
	// nothing brings back what they match.
	last *patternmatcher.PatternMatcher

	weight int // what matching one byte of a path may cost
	work   int
}

// folderMatch is what the rules say of a folder: what they say of all in it depends
// on that.
type folderMatch = patternmatcher.MatchInfo

// badIgnoreRules is the finding for a .terraformignore that cannot be used.
func badIgnoreRules(err error) *finding {
	f := asFinding(err)
	return found(f.reason, "%q in it: %s", ignoreName, f.detail)
}

// readIgnoreRules reads a folder's .terraformignore.
func (p Part) readIgnoreRules(name string) (*ignoreRules, error) {
	f, _, err := p.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxIgnoreSize+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxIgnoreSize {
		return nil, found(TooLarge, "it is larger than %d bytes: shorten it", maxIgnoreSize)
	}
	return parseIgnoreRules(content)
}

func parseIgnoreRules(content []byte) (*ignoreRules, error) {
	if !utf8.Valid(content) || bytes.ContainsRune(content, 0) {
		return nil, found(BadName, "it is not a text in UTF-8: write it again")
	}
	content = bytes.TrimPrefix(content, []byte("\ufeff")) // as some editors begin a text
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
			return nil, found(BadName, "line %d is not a pattern: correct it (%v)", n, err)
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
	// Each pattern of them has been checked.
	r.all, _ = patternmatcher.New(all)
	r.last, _ = patternmatcher.New(last)
	return r, lines.Err()
}

// ignorePattern rewrites a line for the matcher, as go-slug does: a pattern
// matches in every folder unless it begins with a slash, and one that ends in a
// slash matches what is in the folder.
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

// checkPattern has the matcher make of a pattern what it otherwise makes when it
// first matches.
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
// is no part of the module.
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

// ignoresFolder reports whether nothing in a folder can be a part of the module.
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

func (r *ignoreRules) count(size int) error {
	if r.work += size * r.weight; r.work > maxIgnoreWork {
		return found(TooLarge, "it has too many patterns for so many files: shorten it")
	}
	return nil
}
