package pages

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/snippet"
)

// A codePage shows a file or a folder of a module's package.
type codePage struct {
	page
	heading
	sidebar

	Path []link // the folders down to it, and itself

	// Folder has what is in a folder, and File is the file that is shown, below the list of
	// an example.
	Folder *codeFolder
	File   *codeFile

	// Others are the versions that the file can be compared with, and Action is the path of
	// the form for it.
	Others []versionLink
	Action string
	From   string // the other version of a comparison; empty: there is none
	Later  bool   // the other version is the newer one
}

// A codeFolder lists a folder.
type codeFolder struct {
	Entries []codeEntry
	LeftOut int  // entries that are not listed
	Partial bool // the package has more than is read
}

// A codeEntry is a file or a folder in a folder.
type codeEntry struct {
	Name, URL string
	Folder    bool
	Size      string
	Files     int // in the folder
}

// A codeFile is a file as it is shown: as code, as a document, as an image or not at all.
type codeFile struct {
	Name, Size string
	Raw        string // the URL of its text
	Package    string // where it can be had if it is not shown

	Code     template.HTML
	Language string // of the code; empty: it is not known
	Lines    int
	Document prose
	Cut      bool // only the beginning of the document is shown
	Image    string
	Note     string // why it is not shown, or that there is no difference

	Other     link     // the source of a document, or the document
	Sources   []string // paths in the file that are shown as addresses
	Addresses string   // the registry's address in their place
}

// Bounds of a file that is shown, since a line of a byte has many in HTML.
const (
	maxCode      = 256 << 10 // bytes
	maxCodeLines = 10_000
	maxEntries   = 1_000 // of a folder
)

// tabSource shows a document as it is written.
const tabSource = "source"

// code answers with the page of a file or folder of a module's package.
func (v *visit) code() (*answer, error) {
	m, absent, err := v.openModule("")
	if m == nil || err != nil {
		return absent, err
	}
	if v.query.tab != "" && v.query.tab != tabSource {
		return nil, fs.ErrNotExist
	}
	files, err := v.view.ModuleFiles(m.version)
	if err != nil {
		return nil, err
	}
	p := codePage{}
	name := v.route.Rest
	switch {
	case v.query.from != "":
		err = m.compareFile(&p, files, name)
	case files.File(name) != nil:
		p.File, p.Outline, err = m.codeFile(files.File(name))
		p.Others = m.otherVersions(m.comparedVersion())
	case name == "" || len(files.Below(name)) > 0:
		err = m.folder(&p, files, name)
	default:
		m.lacking = &notice{Tone: "warn", Title: "Version " + m.version.Version + " has no file or folder “" + printable(name) + "”.", Text: "These are its files."}
		m.route.Rest, name = "", ""
		err = m.folder(&p, files, "")
	}
	if err != nil {
		return nil, err
	}
	if err := m.frameCode(&p, name); err != nil {
		return nil, err
	}
	a, err := pageAnswer("code", p)
	if m.lacking != nil {
		a = asAbsent(a)
	}
	return a, err
}

// frameCode adds what is around a file or folder.
func (m *moduleView) frameCode(p *codePage, name string) (err error) {
	m.shown = &m.whole.Root
	if segments := strings.Split(name, "/"); len(segments) > 1 {
		if part := m.whole.Module(path.Join(segments[:2]...)); part != nil {
			m.shown = part
		}
	}
	title := "Code"
	if name != "" {
		title = printable(name) + " · " + title
	}
	if p.page, err = m.page(title + " · " + m.route.Address.String() + " " + m.version.Version); err != nil {
		return err
	}
	p.Current = "modules"
	if p.heading, err = m.heading(); err != nil {
		return err
	}
	p.Action = m.url(m.route)
	p.Path = []link{{m.route.Address.Name, m.url(m.route.WithCode(""))}}
	for i, segment := range strings.Split(name, "/") {
		if segment == "" {
			break
		}
		to := m.route.WithCode(strings.Join(strings.Split(name, "/")[:i+1], "/"))
		p.Path = append(p.Path, link{printable(segment), m.url(to)})
	}
	p.Path[len(p.Path)-1].URL = ""
	return nil
}

// folder lists a folder. Below the list of an example is its code.
func (m *moduleView) folder(p *codePage, files *content.Files, name string) (err error) {
	p.Folder = &codeFolder{Partial: files.Partial}
	prefix := ""
	if name != "" {
		prefix = name + "/"
	}
	var inner, own []codeEntry
	configuration := ""
	for _, f := range files.Below(name) {
		first, _, deeper := strings.Cut(strings.TrimPrefix(f.Path, prefix), "/")
		to := m.urlIfThere(m.route.WithCode(prefix + first))
		switch {
		case deeper && len(inner) > 0 && inner[len(inner)-1].Name == printable(first) && inner[len(inner)-1].URL == to:
			inner[len(inner)-1].Files++
		case deeper:
			inner = append(inner, codeEntry{Name: printable(first), URL: to, Folder: true, Files: 1})
		default:
			own = append(own, codeEntry{Name: printable(first), URL: to, Size: size(f.Size)})
			if snippet.IsTerraform(first) && (configuration == "" || first == "main.tf") {
				configuration = f.Path
			}
		}
	}
	all := slices.Concat(inner, own)
	p.Folder.Entries = all[:min(len(all), maxEntries)]
	p.Folder.LeftOut = len(all) - len(p.Folder.Entries)
	if configuration != "" && name != "" && snippet.ExampleOf(configuration) == name {
		p.File, _, err = m.codeFile(files.File(configuration))
	}
	return err
}

// codeFile returns a file as it is shown, with the outline of a document.
func (m *moduleView) codeFile(f *content.ListedFile) (*codeFile, []markdown.Heading, error) {
	shown := m.newCodeFile(m.version, f)
	text, note, err := m.textOf(m.version, f)
	if err != nil {
		return nil, nil, err
	}
	if assets.ImageType(f.Path) != "" && note != neverShown {
		shown.Image = shown.Raw
		return shown, nil, nil
	}
	if shown.Note = note; note != "" {
		shown.Package = m.packageURL(m.version)
		if note != tooLarge {
			shown.Raw = ""
		}
		return shown, nil, nil
	}
	if text == "" {
		shown.Note = "This file is empty."
		return shown, nil, nil
	}
	if markdown.IsDocument(f.Path) {
		of := m.url(m.route.WithCode(f.Path))
		if m.query.tab != tabSource {
			shown.Other = link{"Source", withQuery(of, "tab", tabSource)}
			d, err := m.document(markdown.Text{Source: text, Folder: strings.TrimPrefix(path.Dir(f.Path), "."), Prefix: "readme-", Resolve: m.resolve})
			shown.Document, shown.Cut = d.HTML, d.Cut
			return shown, outlineOf(d), err
		}
		shown.Other = link{"Document", of}
	}
	a := snippet.Example(f.Path, text, m.source(m.route.Address), m.constraint())
	for _, source := range a.Sources {
		if !slices.Contains(shown.Sources, source) {
			shown.Sources = append(shown.Sources, source)
		}
	}
	slices.Sort(shown.Sources)
	shown.Language = markdown.LanguageOf(f.Path)
	err = m.inTurn(func() { shown.Code, shown.Lines = codeHTML(shown.Language, a) })
	return shown, nil, err
}

func (m *moduleView) newCodeFile(of *index.ModuleVersion, f *content.ListedFile) *codeFile {
	to := m.route.WithFile(f.Path)
	if of != m.version {
		to.Version, to.Latest = of.Version, false
	}
	return &codeFile{Name: printable(path.Base(f.Path)), Size: size(f.Size), Raw: m.urlIfThere(to)}
}

// The notes of files that are not shown. Only what is too large for a page has a raw text.
const (
	tooLarge   = "This file is too large to be shown."
	neverShown = "This file is too large to be shown or sent."
	notText    = "This file is not text."
)

// textOf reads a file. If it cannot be shown as text, the note says why.
func (m *moduleView) textOf(of *index.ModuleVersion, f *content.ListedFile) (text, note string, err error) {
	b, err := m.view.ModuleFile(of, f.Path)
	switch {
	case errors.Is(err, content.ErrFileTooLarge):
		return "", neverShown, nil
	case err != nil:
		return "", "", err
	case !utf8.Valid(b) || slices.Contains(b, 0):
		return "", notText, nil
	case len(b) > maxCode, strings.Count(string(b), "\n") >= maxCodeLines:
		return "", tooLarge, nil
	}
	return string(b), "", nil
}

// printable returns a name with a mark in place of each invisible character, since
// such a character can make a name look like another.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, name)
}

// codeHTML writes the lines of a file, each with a link to it. The number of a line is made
// by the stylesheet, so that it is not copied. A line that the file does not have has none.
func codeHTML(language string, a snippet.Adapted) (_ template.HTML, numbered int) {
	var b strings.Builder
	for i, line := range markdown.Lines(language, a.Text) {
		_, changed := a.Sources[i]
		if a.Added[i] {
			b.WriteString(`<span class="adapted">`)
		} else {
			numbered++
			id := strconv.Itoa(numbered)
			b.WriteString(`<span id="L` + id)
			if changed {
				b.WriteString(`" class="adapted`)
			}
			b.WriteString(`"><a href="#L` + id + `" aria-hidden="true" tabindex="-1"></a>`)
		}
		b.WriteString(line)
		b.WriteString("\n</span>")
	}
	return template.HTML(b.String()), numbered
}

// diffHTML writes the lines of a comparison, each with its sign, so that no one needs the
// colours. The lines of the newer text can be linked to.
func diffHTML(lines []changes.Line) template.HTML {
	var b strings.Builder
	number := func(n int) {
		if b.WriteString(`<i data-n="`); n > 0 {
			fmt.Fprint(&b, n)
		}
		b.WriteString(`"></i>`)
	}
	for i, l := range lines {
		if l.Sign == '@' {
			if i > 0 {
				b.WriteString(`<span class="gap">⋯` + "\n</span>")
			}
			continue
		}
		b.WriteString("<span")
		if l.New > 0 {
			fmt.Fprintf(&b, ` id="L%d"`, l.New)
		}
		switch l.Sign {
		case '+':
			b.WriteString(` class="gi"`)
		case '-':
			b.WriteString(` class="gd"`)
		}
		b.WriteByte('>')
		number(l.Old)
		number(l.New)
		b.WriteByte(l.Sign)
		template.HTMLEscape(&b, []byte(l.Text))
		b.WriteString("\n</span>")
	}
	return template.HTML(b.String())
}

// compareFile shows what has changed in a file since another version, or up to it.
func (m *moduleView) compareFile(p *codePage, files *content.Files, name string) error {
	other := m.module.Version(m.query.from)
	if other == nil || other == m.version || name == "" {
		return fs.ErrNotExist
	}
	others, err := m.view.ModuleFiles(other)
	if err != nil {
		return err
	}
	of, now := other, m.version
	from, to := others.File(name), files.File(name)
	if newer(other.Version, m.version.Version) {
		of, now, from, to = now, of, to, from
		p.Later = true
	}
	var texts [2]string
	var note string
	for i, side := range []struct {
		version *index.ModuleVersion
		file    *content.ListedFile
	}{{of, from}, {now, to}} {
		if side.file == nil {
			continue
		}
		p.File = m.newCodeFile(side.version, side.file)
		text, why, err := m.textOf(side.version, side.file)
		if err != nil {
			return err
		}
		texts[i] = text
		if why != "" {
			note = why
		}
	}
	if p.File == nil {
		return fs.ErrNotExist
	}
	p.From = other.Version
	p.Others = m.otherVersions(other)
	switch {
	case from != nil && to != nil && from.Sum == to.Sum:
		p.File.Note = "The file is the same in " + of.Version + " and " + now.Version + "."
	case note != "":
		p.File.Note, p.File.Package, p.File.Raw = note, m.packageURL(now), ""
	default:
		lines := changes.Lines(texts[0], texts[1])
		p.File.Code, p.File.Language = diffHTML(lines), "diff"
		if len(lines) == 0 {
			p.File.Note = "Only line breaks differ between " + of.Version + " and " + now.Version + "."
		}
	}
	return nil
}
