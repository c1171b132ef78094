package content

import (
	"context"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Searches find pages of documentation by their titles. The index keeps the titles of the
// latest release of each provider, and reads them in the background, like archives.

// A DocTitle names a page of documentation.
type DocTitle struct {
	Category DocCategory
	Slug     string // as in DocPage

	// Title is the title of the page, if it says more than the name of its file.
	Title string
}

// A DocsFolder is a folder of documentation whose pages have been found.
type DocsFolder struct {
	part  tree.Part
	found *Docs
}

// FindDocs finds the pages in a folder of the providers of a tree, and reads none.
func FindDocs(ctx context.Context, part tree.Part, dir string) (*DocsFolder, error) {
	d, err := findDocs(ctx, part, dir)
	if err != nil {
		return nil, err
	}
	return &DocsFolder{part, d}, nil
}

// Stamp changes whenever the title of a page may have changed.
func (f *DocsFolder) Stamp() tree.Stamp {
	var s tree.FolderStamp
	for i := range f.found.Pages {
		s.Add(f.found.Pages[i].Path, f.found.Pages[i].stamp)
	}
	return s.Stamp()
}

// ReadTitles reads the titles of all pages. typ is the provider's type. A page that cannot be
// read keeps the title that it had before, and the error tells why.
func (f *DocsFolder) ReadTitles(ctx context.Context, typ string, before Titles) (Titles, error) {
	d := Docs{Pages: slices.Clone(f.found.Pages)}
	err := readFrontMatter(ctx, f.part, &d, nil)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	d.sort()
	known := make(map[docID]string)
	if err != nil {
		for _, t := range before.All() {
			known[docID{t.Category, t.Slug}] = t.Title
		}
	}
	b := []byte{titlesFormat}
	for i := range d.Pages {
		p := &d.Pages[i]
		if p.Category == DocOverview {
			continue // it is the page of the provider itself
		}
		b = append(b, categoryCodes[p.Category])
		title := p.ownTitle(typ)
		if p.unread {
			title = known[docID{p.Category, p.Slug}]
		}
		for _, text := range []string{p.Slug, title} {
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		}
	}
	return slices.Clip(b), err
}

// ownTitle returns the title of a page without what generators add to all of them; empty if
// the name of the file says as much.
func (p *DocPage) ownTitle(typ string) string {
	title, _, _ := strings.Cut(p.Title, " - terraform-provider-")
	if p.Category == DocGuides {
		return title // people write "The provider - Upgrade guide"
	}
	title, _, _ = strings.Cut(title, " - ")
	for word := range strings.FieldsFuncSeq(title, func(r rune) bool { return strings.ContainsRune(" ():`", r) }) {
		switch {
		case word == p.Slug && p.isNamedBySlug(title):
			return word // as of google-beta, whose resources begin with google
		case word == p.Slug, word == typ+"_"+p.Slug:
			return ""
		case strings.HasSuffix(word, "_"+p.Slug):
			return word // as above, if the name of the file lacks google
		}
	}
	return title
}

// generatedTitle is a title that generators write, or the heading: it begins with a whole name.
var generatedTitle = regexp.MustCompile(`^(\S+) \(?(?:Resource|Data Source|Ephemeral Resource|List Resource|Action|State Store)\b`)

// isNamedBySlug reports whether the name of the file is the whole name in configurations. People
// write titles without the type of the provider, too, so that only a title of a generator tells.
func (p *DocPage) isNamedBySlug(title string) bool {
	match := generatedTitle.FindStringSubmatch(title)
	return match != nil && match[1] == p.Slug && strings.Contains(p.Slug, "_")
}

// Name returns the name that configurations use for what the page documents, as the name of its
// title does.
func (p *DocPage) Name(typ string) string {
	t := DocTitle{p.Category, p.Slug, p.ownTitle(typ)}
	return t.Name(typ)
}

// titlesFormat begins encoded titles. The first format had the place of a category in a list, the
// second had no dashes in the titles of guides, and the third had no title where the name of a file
// is the whole name.
const titlesFormat = 4

// categoryCodes are the categories in encoded titles. A code never means another category.
var categoryCodes = map[DocCategory]byte{
	DocGuides: 'g', DocResources: 'r', DocDataSources: 'd', DocEphemeralResources: 'e',
	DocListResources: 'l', DocActions: 'a', DocStateStores: 's', DocFunctions: 'f',
}

// categoryOf returns the category of a code.
func categoryOf(code byte) (DocCategory, bool) {
	for category, c := range categoryCodes {
		if c == code {
			return category, true
		}
	}
	return "", false
}

// Titles are encoded titles. They are encoded until they are needed: they take a fraction of
// the memory then.
type Titles []byte

// AreCurrent reports whether ReadTitles of this release returned the titles.
func (b Titles) AreCurrent() bool { return len(b) > 0 && b[0] == titlesFormat }

// All decodes the titles. It returns nil for bytes that ReadTitles has not returned.
func (b Titles) All() (titles []DocTitle) {
	complete := b.each(func(_ int, category DocCategory, slug, title []byte) bool {
		titles = append(titles, DocTitle{category, string(slug), string(title)})
		return true
	})
	if !complete {
		return nil
	}
	return titles
}

// Title decodes one title, by its place among all.
func (b Titles) Title(place int) (t DocTitle) {
	b.each(func(i int, category DocCategory, slug, title []byte) bool {
		if i == place {
			t = DocTitle{category, string(slug), string(title)}
		}
		return i < place
	})
	return t
}

// Find returns the place of a page among all; negative if there is none.
func (b Titles) Find(category DocCategory, slug string) (place int) {
	place = -1
	b.each(func(i int, c DocCategory, s, _ []byte) bool {
		if c == category && string(s) == slug {
			place = i
		}
		return place < 0
	})
	return place
}

// each calls visit with each title until it returns false, and reports whether the titles are
// complete.
func (b Titles) each(visit func(i int, category DocCategory, slug, title []byte) bool) (complete bool) {
	if !b.AreCurrent() {
		return false
	}
	rest := b[1:]
	text := func() (t []byte, ok bool) {
		n, used := binary.Uvarint(rest)
		if used <= 0 || n > uint64(len(rest)-used) {
			return nil, false
		}
		t, rest = rest[used:used+int(n)], rest[used+int(n):]
		return t, true
	}
	for i := 0; len(rest) > 0; i++ {
		category, known := categoryOf(rest[0])
		rest = rest[1:]
		slug, ok := text()
		title, complete := text()
		if !known || !ok || !complete {
			return false
		}
		if !visit(i, category, slug, title) {
			return true
		}
	}
	return true
}

// Name returns the name that configurations use for what the page documents, such as
// "aws_vpc": names of files lack the type of the provider. Of a guide it is the name of its
// file.
func (t *DocTitle) Name(typ string) string {
	switch {
	case t.Category == DocGuides, t.Category == DocFunctions, t.Slug == typ, strings.HasPrefix(t.Slug, typ+"_"):
		return t.Slug
	case t.Title == t.Slug, strings.HasSuffix(t.Title, "_"+t.Slug):
		return t.Title
	}
	return typ + "_" + t.Slug
}
