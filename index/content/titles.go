package content

import (
	"context"
	"encoding/binary"
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

	// Title is what the page calls itself, if that says more than the name of its file.
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
		b = append(b, byte(slices.Index(docCategories(), p.Category)))
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
	title := p.Title
	for _, separator := range []string{" - terraform-provider-", " - "} {
		title, _, _ = strings.Cut(title, separator)
	}
	if p.Category == DocGuides {
		return title
	}
	for word := range strings.FieldsFuncSeq(title, func(r rune) bool { return strings.ContainsRune(" ():`", r) }) {
		switch {
		case word == p.Slug, word == typ+"_"+p.Slug:
			return ""
		case strings.HasSuffix(word, "_"+p.Slug):
			return word // as of google-beta, whose resources begin with google
		}
	}
	return title
}

// titlesFormat begins encoded titles.
const titlesFormat = 1

// Titles are encoded titles. They are encoded until they are needed: they take a fraction of
// the memory then.
type Titles []byte

// All decodes the titles. It returns nil for bytes that ReadTitles has not returned.
func (b Titles) All() (titles []DocTitle) {
	if len(b) == 0 || b[0] != titlesFormat {
		return nil
	}
	rest := string(b[1:])
	text := func() (t string, ok bool) {
		n, used := binary.Uvarint([]byte(rest[:min(len(rest), binary.MaxVarintLen32)]))
		if used <= 0 || n > uint64(len(rest)-used) {
			return "", false
		}
		t, rest = rest[used:used+int(n)], rest[used+int(n):]
		return t, true
	}
	categories := docCategories()
	for rest != "" {
		category := int(rest[0])
		rest = rest[1:]
		slug, ok := text()
		title, complete := text()
		if !ok || !complete || category >= len(categories) {
			return nil
		}
		titles = append(titles, DocTitle{categories[category], slug, title})
	}
	return titles
}

// Name returns the name that configurations use for what the page documents, such as
// "aws_vpc": names of files lack the type of the provider. Of a guide it is the name of its
// file.
func (t *DocTitle) Name(typ string) string {
	switch {
	case t.Category == DocGuides, t.Category == DocFunctions, t.Slug == typ, strings.HasPrefix(t.Slug, typ+"_"):
		return t.Slug
	case strings.HasSuffix(t.Title, "_"+t.Slug):
		return t.Title
	}
	return typ + "_" + t.Slug
}
