package content

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A release's documentation lies in VERSION/docs/, as terraform-plugin-docs writes it,
// or in VERSION/website/docs/, as providers had it before. A scan only notes where it
// is, since nothing that clients do depends on it. It is listed on request, and each page
// is read when it is shown.

// Bounds of documentation. The largest providers have some 2,500 pages.
const (
	maxDocPages = 5000
	maxDocPage  = 500 << 10 // bytes
)

// A DocCategory is a subject of pages of documentation.
type DocCategory string

// The categories, as they are called in the URLs of the public registry.
const (
	DocOverview           DocCategory = "overview"
	DocGuides             DocCategory = "guides"
	DocResources          DocCategory = "resources"
	DocDataSources        DocCategory = "data-sources"
	DocEphemeralResources DocCategory = "ephemeral-resources"
	DocListResources      DocCategory = "list-resources"
	DocActions            DocCategory = "actions"
	DocStateStores        DocCategory = "state-stores"
	DocFunctions          DocCategory = "functions"
)

// docCategories are all of them, in the order in which pages are listed.
func docCategories() []DocCategory {
	return []DocCategory{
		DocOverview, DocGuides, DocResources, DocDataSources, DocEphemeralResources, DocListResources, DocActions,
		DocStateStores, DocFunctions,
	}
}

// docFolders are the folders of the categories, in both layouts. Others, such as
// cdktf with the same pages in other languages, are left out.
var docFolders = map[string]DocCategory{
	"guides": DocGuides, "functions": DocFunctions, "actions": DocActions,
	"resources": DocResources, "r": DocResources,
	"data-sources": DocDataSources, "d": DocDataSources,
	"ephemeral-resources": DocEphemeralResources, "list-resources": DocListResources,
	"state-stores": DocStateStores,
}

// docSuffixes are the suffixes of pages. The longer ones come first.
var docSuffixes = []string{".html.markdown", ".markdown.html", ".html.md", ".md.html", ".markdown", ".md"}

// Docs are the documentation of a provider's release. They do not change.
type Docs struct {
	// Pages in the order of a navigation: the overview, guides, pages without a
	// subcategory, the pages of each subcategory, and "Beta" and "Deprecated" last.
	Pages []DocPage

	// LeftOut is how many pages there are beyond the limit.
	LeftOut int

	taken time.Time // the time of the snapshot that it was listed for
}

// documentation has the lists that have been made, by the folder.
type documentation = readings[string, *Docs]

// A DocPage is a page, without its text.
type DocPage struct {
	Category DocCategory

	// Slug is the name of its file without the suffix; empty for the overview.
	Slug string

	// Title, Subcategory and Description come from the page. Any of them may be empty.
	Title, Subcategory, Description string

	// Path in the release's folder, with slashes: "docs/resources/thing.md".
	Path string

	path   string // in the part of providers
	stamp  tree.Stamp
	unread bool // it could not be read
}

// Page returns a page, or nil.
func (d *Docs) Page(category DocCategory, slug string) *DocPage {
	for i := range d.Pages {
		if p := &d.Pages[i]; p.Category == category && p.Slug == slug {
			return p
		}
	}
	return nil
}

// PageAt returns the page that a path in the release's folder is of, as links in
// documentation have it: with the suffix of its file, with ".html", or without any; nil
// if there is none.
func (d *Docs) PageAt(name string) *DocPage {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "website/"), "docs")
	for _, suffix := range append([]string{".html"}, docSuffixes...) {
		if cut, ok := strings.CutSuffix(name, suffix); ok {
			name = cut
			break
		}
	}
	folder, slug, ok := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	if !ok && (folder == "" || folder == "index") {
		return d.Page(DocOverview, "")
	}
	return d.Page(docFolders[folder], slug)
}

// Size is about how many bytes it takes.
func (d *Docs) Size() int {
	size := 200
	for i := range d.Pages {
		p := &d.Pages[i]
		size += 250 + len(p.Slug) + len(p.Title) + len(p.Subcategory) + len(p.Description) + len(p.Path) + len(p.path)
	}
	return size
}

// IsDocsFolder reports whether pages of documentation lie in a folder of that name.
func IsDocsFolder(name string) bool { return docFolders[name] != "" }

// Docs lists the documentation in a folder of the providers of a tree. The list is kept
// until it is asked for with a later time, which is the time of a snapshot. Titles and
// descriptions of pages are kept until their files change.
func (r *Reader) Docs(ctx context.Context, part tree.Part, dir string, taken time.Time) (*Docs, error) {
	fresh := func(d *Docs) bool { return d.taken.Equal(taken) }
	return r.docs.get(ctx, dir, fresh, func(ctx context.Context, known *Docs) (*Docs, error) {
		d, err := listDocs(ctx, part, dir, taken, known)
		if err != nil && ctx.Err() == nil {
			return nil, tree.WithoutPath(err)
		}
		return d, err
	})
}

// ReadDoc returns the text of a page, without what it says about itself. It is cut if it
// is too long. The error is fs.ErrNotExist if the file has been removed meanwhile.
func (r *Reader) ReadDoc(ctx context.Context, part tree.Part, p *DocPage) (text string, cut bool, err error) {
	release, err := r.docs.begin(ctx)
	if err != nil {
		return "", false, err
	}
	defer release()
	content, err := readStartOf(part, p.path, maxDocPage+1)
	if err != nil {
		return "", false, tree.WithoutPath(err)
	}
	if len(content) > maxDocPage {
		content, cut = content[:maxDocPage], true
	}
	_, text = splitFrontMatter(string(content))
	return strings.ToValidUTF8(text, "\uFFFD"), cut, nil
}

// readStartOf returns the beginning of a file.
func readStartOf(p tree.Part, name string, most int64) ([]byte, error) {
	f, _, err := p.OpenRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// listDocs lists the pages in a folder. What is known of a page that has not changed
// is not read again; known may be nil.
func listDocs(ctx context.Context, part tree.Part, dir string, taken time.Time, known *Docs) (*Docs, error) {
	d, err := findDocs(ctx, part, dir)
	if err != nil {
		return nil, err
	}
	d.taken = taken
	if err := readFrontMatter(ctx, part, d, known); err != nil && tree.AsFinding(err).Passes() {
		return nil, err
	}
	d.sort()
	return d, nil
}

// findDocs finds the pages in a folder, and reads none.
func findDocs(ctx context.Context, part tree.Part, dir string) (*Docs, error) {
	d := new(Docs)
	release := path.Dir(dir)
	if path.Base(release) == "website" {
		release = path.Dir(release)
	}
	entries, err := part.List(dir)
	if err != nil {
		return nil, err
	}
	found := make(map[docID]bool)
	add := func(category DocCategory, e tree.Entry) {
		slug, ok := docSlug(e)
		if !ok || category == DocOverview && slug != "index" || found[docID{category, slug}] {
			return
		}
		found[docID{category, slug}] = true
		if category == DocOverview {
			slug = ""
		}
		if len(d.Pages) == maxDocPages {
			d.LeftOut++
			return
		}
		d.Pages = append(d.Pages, DocPage{Category: category, Slug: slug, Path: strings.TrimPrefix(e.Path(), release+"/"), path: e.Path(), stamp: tree.StampOf(e.Info)})
	}
	for _, e := range entries {
		category, isFolder := docFolders[e.Name]
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case e.Bad.Passes(): // it may be a page
			return nil, e.Bad
		case e.Bad != nil:
		case !e.Info.IsDir():
			add(DocOverview, e)
		case isFolder:
			pages, err := part.List(e.Path())
			if err != nil {
				return nil, err
			}
			for _, page := range pages {
				if page.Bad.Passes() {
					return nil, page.Bad
				}
				add(category, page)
			}
		}
	}
	return d, nil
}

// A docID names a page.
type docID struct {
	category DocCategory
	slug     string
}

// docSlug returns the name of a page, and whether an entry is a page. No page has a name that
// is no text, or that cannot be one segment of a URL's path: links would lead nowhere.
func docSlug(e tree.Entry) (slug string, ok bool) {
	if e.Bad != nil || tree.IsHiddenOrTemporary(e.Name) || !e.Info.Mode().IsRegular() ||
		!utf8.ValidString(e.Name) || strings.ContainsRune(e.Name, '\\') {
		return "", false
	}
	for _, suffix := range docSuffixes {
		if slug, ok := strings.CutSuffix(e.Name, suffix); ok && slug != "" {
			return slug, true
		}
	}
	return "", false
}

// maxFrontMatter is how much of a page is read to list it.
const maxFrontMatter = 16 << 10

// readFrontMatter reads what pages say about themselves. A page that cannot be read says
// nothing. The error tells why: of several, one that may be over a moment later.
func readFrontMatter(ctx context.Context, part tree.Part, d, known *Docs) (failed error) {
	before := make(map[string]*DocPage)
	if known != nil {
		for i := range known.Pages {
			before[known.Pages[i].path] = &known.Pages[i]
		}
	}
	for i := range d.Pages {
		p := &d.Pages[i]
		if b := before[p.path]; b != nil && !b.unread && b.stamp == p.stamp && p.stamp.Settled(known.taken) {
			p.Title, p.Subcategory, p.Description = b.Title, b.Subcategory, b.Description
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		content, err := readStartOf(part, p.path, maxFrontMatter)
		if err != nil {
			if p.unread = !errors.Is(err, fs.ErrNotExist); !p.unread {
				continue // removed since: the next list is without it
			}
			if failed == nil || tree.AsFinding(err).Passes() {
				failed = err
			}
			continue
		}
		front, text := splitFrontMatter(string(content))
		p.Title, p.Subcategory, p.Description = cmp.Or(front.title, firstHeading(text)), front.subcategory, front.description
	}
	return failed
}

// firstHeading is the text of the first line that is a heading.
func firstHeading(text string) string {
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			return shortened(strings.NewReplacer("`", "", "*", "", `\`, "").Replace(heading), maxDocTitle)
		}
	}
	return ""
}

// sort orders the pages for a navigation.
func (d *Docs) sort() {
	order := make(map[DocCategory]int)
	for i, c := range docCategories() {
		order[c] = i
	}
	slices.SortStableFunc(d.Pages, func(a, b DocPage) int {
		return cmp.Or(
			cmp.Compare(min(order[a.Category], order[DocResources]), min(order[b.Category], order[DocResources])),
			cmp.Compare(subcategoryRank(a.Subcategory), subcategoryRank(b.Subcategory)),
			strings.Compare(strings.ToLower(a.Subcategory), strings.ToLower(b.Subcategory)),
			strings.Compare(a.Subcategory, b.Subcategory), // each spelling is a group of its own
			cmp.Compare(order[a.Category], order[b.Category]),
			strings.Compare(a.Slug, b.Slug),
		)
	})
}

func subcategoryRank(name string) int {
	switch strings.ToLower(name) {
	case "":
		return 0
	case "beta":
		return 2
	case "deprecated":
		return 3
	}
	return 1
}
