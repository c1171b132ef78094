package terraformregistry_test

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The documents of the repository: the manual and the documents beside the README.

// A markdownFile is a document without its blocks of code.
type markdownFile struct {
	name string // with slashes, from the root of the repository
	text string
}

var (
	fencedBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inlineCode  = regexp.MustCompile("`[^`\n]*`")
	heading     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	inlineLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	linkByName  = regexp.MustCompile(`\]\[([^\]]+)\]`)
	linkTarget  = regexp.MustCompile(`(?m)^\[([^\]]+)\]: (\S+)$`)
)

// read returns the content of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func markdownFiles(t *testing.T) (files []markdownFile) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		names, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: there are no documents: %v", pattern, err)
		}
		for _, name := range names {
			files = append(files, markdownFile{filepath.ToSlash(name), fencedBlock.ReplaceAllString(read(t, name), "")})
		}
	}
	return files
}

// anchors returns the fragments by which GitHub links to the headings of a document.
func (f markdownFile) anchors() (anchors []string) {
	for _, m := range heading.FindAllStringSubmatch(f.text, -1) {
		title := inlineLink.ReplaceAllString(m[1], "]")
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f:
				return r
			}
			return -1
		}, strings.ToLower(title))
		anchors = append(anchors, anchor)
	}
	return anchors
}

// links returns the targets of the document's links. A link by a name must have a
// target.
func (f markdownFile) links(t *testing.T) (links []string) {
	t.Helper()
	named := make(map[string]bool)
	for _, m := range linkTarget.FindAllStringSubmatch(f.text, -1) {
		named[m[1]] = true
		links = append(links, m[2])
	}
	text := inlineCode.ReplaceAllString(f.text, "")
	for _, m := range linkByName.FindAllStringSubmatch(text, -1) {
		if !named[m[1]] {
			t.Errorf("%s: [%s] has no target", f.name, m[1])
		}
	}
	for _, m := range inlineLink.FindAllStringSubmatch(text, -1) {
		links = append(links, m[1])
	}
	return links
}

func TestLinksOfDocumentsLead(t *testing.T) {
	files := markdownFiles(t)
	anchors := make(map[string][]string)
	for _, f := range files {
		anchors[f.name] = f.anchors()
	}
	for _, f := range files {
		for _, link := range f.links(t) {
			u, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", f.name, err)
				continue
			}
			if u.Scheme != "" {
				if u.Scheme != "https" {
					t.Errorf("%s: %s is not https", f.name, link)
				}
				continue
			}
			target := f.name
			if u.Path != "" {
				target = path.Join(path.Dir(f.name), u.Path)
				if _, err := fs.Stat(os.DirFS("."), target); err != nil {
					t.Errorf("%s: %s leads nowhere: %v", f.name, link, err)
					continue
				}
			}
			if u.Fragment != "" && !slices.Contains(anchors[target], u.Fragment) {
				t.Errorf("%s: %s has no heading #%s", f.name, target, u.Fragment)
			}
		}
	}
}

// The architecture says in which file something is decided. Files are renamed and split.
func TestFilesOfTheArchitectureAreThere(t *testing.T) {
	named := regexp.MustCompile("`([a-z_/]+\\.go)`").FindAllStringSubmatch(read(t, "docs/architecture.md"), -1)
	if len(named) == 0 {
		t.Error("no file is found in docs/architecture.md")
	}
	for _, name := range named {
		if _, err := fs.Stat(os.DirFS("."), name[1]); err != nil {
			t.Errorf("docs/architecture.md: %v", err)
		}
	}
}

// A document is in the index of the manual or, if it is only for developers, in the
// reading list of CONTRIBUTING.md.
func TestEveryDocumentIsInAnIndex(t *testing.T) {
	var indexed []string
	files := markdownFiles(t)
	for _, f := range files {
		if f.name == "docs/README.md" || f.name == "CONTRIBUTING.md" {
			for _, link := range f.links(t) {
				indexed = append(indexed, path.Join(path.Dir(f.name), link))
			}
		}
	}
	for _, f := range files {
		if strings.HasPrefix(f.name, "docs/") && f.name != "docs/README.md" && !slices.Contains(indexed, f.name) {
			t.Errorf("neither docs/README.md nor CONTRIBUTING.md names %s", f.name)
		}
	}
}

// A claim about another registry says where it was read, in a version that does not
// change.
func TestComparisonNamesItsSources(t *testing.T) {
	text := read(t, "docs/compare.md")
	var rows [][]string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"))
		}
	}
	if len(rows) < 10 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	const open, afterOpen = 3, 7 // the columns of registries whose source can be read
	unsourced := []string{"", "no", "nothing", "not stated"}
	for _, row := range rows[2:] {
		if len(row) != len(rows[0]) {
			t.Errorf("%q has %d cells, want %d", row[0], len(row), len(rows[0]))
			continue
		}
		for i, cell := range row[open:afterOpen] {
			cell = strings.TrimSpace(cell)
			if !strings.Contains(cell, "][") && !slices.Contains(unsourced, cell) {
				t.Errorf("%s of%s: %q has no source", strings.TrimSpace(row[0]), rows[0][open+i], cell)
			}
		}
	}
	for _, m := range linkTarget.FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[2], "/blob/") && !regexp.MustCompile(`/blob/[0-9a-f]{40}/`).MatchString(m[2]) {
			t.Errorf("%s changes", m[2])
		}
	}
}

// Commands about the log run as its server does: as the user of the packages' service, and with the
// service's data directory.
func TestCommandsOfTheLogRunAsTheServer(t *testing.T) {
	unit := read(t, "packaging/caddy-terraform-registry.service")
	setting := func(name string) string {
		_, after, found := strings.Cut(unit, "\n"+name+"=")
		if !found {
			t.Fatalf("the service has no %s", name)
		}
		value, _, _ := strings.Cut(after, "\n")
		return value
	}
	command := "sudo -u " + setting("User") + " -H env XDG_DATA_HOME=" + setting("Environment=XDG_DATA_HOME") + " caddy-terraform-registry tlog "
	commands := regexp.MustCompile(`(?m)^.*caddy-terraform-registry tlog .*$`).FindAllString(read(t, "docs/verify.md"), -1)
	if len(commands) != 5 {
		t.Errorf("docs/verify.md has the commands %q", commands)
	}
	for _, line := range commands {
		if !strings.HasPrefix(line, command) || !strings.HasSuffix(line, " --config /etc/caddy-terraform-registry/Caddyfile") {
			t.Errorf("docs/verify.md has %q", line)
		}
	}
}
