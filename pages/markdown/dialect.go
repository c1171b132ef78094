package markdown

import (
	"bytes"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// newReadmeDialect returns the dialect for READMEs and documentation: GitHub's, with
// footnotes and callouts. It cleans HTML piece by piece, so that an element that is
// never closed has no effect on the text after it.
func newReadmeDialect(raw *bluemonday.Policy) goldmark.Markdown {
	return newDialect(nodeRenderer{raw: raw.SanitizeBytes},
		parser.WithBlockParsers(
			util.Prioritized(boundedContainer{calloutParser{}}, 50),
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewHTMLBlockParser(), 900),
			util.Prioritized(boundedContainer{extension.NewFootnoteBlockParser()}, 999),
		),
		parser.WithInlineParsers(
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(boundedFootnote{boundedInline{extension.NewFootnoteParser()}}, 101),
		),
		parser.WithASTTransformers(
			util.Prioritized(alerts{}, 100),
			util.Prioritized(extension.NewFootnoteASTTransformer(), 999),
		),
	)
}

// newDescriptionDialect returns the dialect for descriptions. A tag in a description is
// usually a placeholder, such as <name>, and is shown as it is written.
func newDescriptionDialect() goldmark.Markdown { return newDialect(nodeRenderer{raw: shownTag}) }

// newDialect returns a dialect with what all have, and with more.
func newDialect(nodes nodeRenderer, more ...parser.Option) goldmark.Markdown {
	p := parser.NewParser(append(more,
		parser.WithBlockParsers(
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(boundedContainer{parser.NewListParser()}, 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(boundedContainer{parser.NewBlockquoteParser()}, 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(boundedInline{parser.NewCodeSpanParser()}, 100),
			util.Prioritized(boundedInline{parser.NewLinkParser()}, 200),
			util.Prioritized(boundedInline{parser.NewAutoLinkParser()}, 300),
			util.Prioritized(boundedInline{parser.NewRawHTMLParser()}, 400),
			util.Prioritized(boundedEmphasis{boundedInline{parser.NewEmphasisParser()}}, 500),
			util.Prioritized(boundedEmphasis{boundedInline{extension.NewStrikethroughParser()}}, 500),
			util.Prioritized(boundedLinkify{extension.NewLinkifyParser()}, 999),
		),
		parser.WithParagraphTransformers(
			util.Prioritized(boundedReferences{}, 100),
			util.Prioritized(boundedTables{}, 200),
		),
		parser.WithASTTransformers(
			util.Prioritized(extension.NewTableASTTransformer(), 0),
			util.Prioritized(boundedContent{}, 200),
		),
	)...)
	return goldmark.New(goldmark.WithParser(p), goldmark.WithRenderer(renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(nodes, 100),
		util.Prioritized(extension.NewTableHTMLRenderer(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), 500),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		util.Prioritized(extension.NewFootnoteHTMLRenderer(), 500),
		util.Prioritized(html.NewRenderer(), 1000),
	))))
}

// shownTag returns a tag in a description as text. Only line breaks remain tags.
func shownTag(tag []byte) []byte {
	switch strings.ToLower(strings.Map(withoutSpace, string(tag))) {
	case "<br>", "<br/>":
		return []byte("<br>")
	}
	return util.EscapeHTML(tag)
}

func withoutSpace(r rune) rune {
	if r == ' ' || r == '\t' || r == '\n' {
		return -1
	}
	return r
}

// A nodeRenderer renders the nodes for which goldmark's own renderer does not fit: HTML
// in the text, code, callouts and the boxes of task lists.
type nodeRenderer struct {
	raw func([]byte) []byte
}

// RegisterFuncs implements renderer.NodeRenderer.
func (r nodeRenderer) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindRawHTML, r.rawHTML)
	reg.Register(ast.KindHTMLBlock, r.htmlBlock)
	reg.Register(ast.KindCodeBlock, r.code)
	reg.Register(ast.KindFencedCodeBlock, r.code)
	reg.Register(extensionast.KindTaskCheckBox, r.task)
	reg.Register(kindCallout, r.callout)
}

func (r nodeRenderer) rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.Write(r.raw(node.(*ast.RawHTML).Segments.Value(source)))
	}
	return ast.WalkSkipChildren, nil
}

func (r nodeRenderer) htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := node.(*ast.HTMLBlock)
	piece := block.Lines().Value(source)
	if block.HasClosure() {
		piece = append(bytes.Clone(piece), block.ClosureLine.Value(source)...)
	}
	_, _ = w.Write(r.raw(piece))
	return ast.WalkContinue, nil
}

// diagrams are the languages of diagrams, by the names in a text, with their own names.
var diagrams = map[string]string{"mermaid": "Mermaid", "plantuml": "PlantUML", "puml": "PlantUML", "dot": "Graphviz", "graphviz": "Graphviz", "d2": "D2"}

func (r nodeRenderer) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	var language string
	if fenced, ok := node.(*ast.FencedCodeBlock); ok {
		language = string(fenced.Language(source))
	}
	highlighted := language
	if _, plain := node.AttributeString(plainCode); plain {
		highlighted = ""
	}
	if kind, ok := diagrams[strings.ToLower(language)]; ok {
		// Only a script of others could draw it. Its source says what it shows.
		_, _ = w.WriteString("<details><summary>Diagram, as " + kind + " source</summary>\n")
		defer func() { _, _ = w.WriteString("</details>\n") }()
	}
	_, _ = w.WriteString(`<pre tabindex="0"><code` + languageClass(language) + `>`)
	Highlight(w, highlighted, string(node.Lines().Value(source)))
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

// task writes a box that can only be read. It belongs to no form.
func (r nodeRenderer) task(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	switch {
	case !entering:
	case node.(*extensionast.TaskCheckBox).IsChecked:
		_, _ = w.WriteString(`<span class="task done" role="img" aria-label="Done"></span>`)
	default:
		_, _ = w.WriteString(`<span class="task" role="img" aria-label="To do"></span>`)
	}
	return ast.WalkContinue, nil
}

func (r nodeRenderer) callout(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</div>\n")
		return ast.WalkContinue, nil
	}
	c := node.(*callout)
	_, _ = w.WriteString(`<div class="callout ` + c.tone + `" role="note">`)
	if !c.titled() {
		_, _ = w.WriteString(`<p class="callout-title">` + c.title + `</p>`)
	}
	return ast.WalkContinue, nil
}

var kindCallout = ast.NewNodeKind("Callout")

// A callout is a passage set apart from the text.
type callout struct {
	ast.BaseBlock
	tone  string // its class: "note", "tip", "caution" or "warning"
	title string
}

// Kind implements ast.Node.
func (c *callout) Kind() ast.NodeKind { return kindCallout }

// Dump implements ast.Node.
func (c *callout) Dump(source []byte, level int) {
	ast.DumpHelper(c, source, level, map[string]string{"tone": c.tone}, nil)
}

// titled reports whether the text begins with its own title, as in "~> **Important:**
// …".
func (c *callout) titled() bool {
	first := c.FirstChild()
	if c.title == "" || first == nil || first.FirstChild() == nil {
		return c.title == ""
	}
	e, ok := first.FirstChild().(*ast.Emphasis)
	return ok && e.Level == 2
}

// A calloutParser parses the callouts of Terraform's documentation. A callout begins
// with a mark and ends before the next blank line.
type calloutParser struct{}

// Trigger implements parser.BlockParser.
func (calloutParser) Trigger() []byte { return []byte{'-', '~', '!'} }

// Open implements parser.BlockParser.
func (calloutParser) Open(_ ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, _ := reader.PeekLine()
	at := pc.BlockOffset()
	c := calloutAt(line, at)
	if c == nil {
		return nil, parser.NoChildren
	}
	reader.Advance(at + 2)
	return c, parser.HasChildren
}

// calloutAt returns the callout that begins at an offset of a line, or nil.
func calloutAt(line []byte, at int) *callout {
	if at < 0 || len(line) < at+2 || line[at+1] != '>' || len(line) > at+2 && !util.IsSpace(line[at+2]) {
		return nil
	}
	switch line[at] {
	case '-':
		return &callout{tone: "note", title: "Note"}
	case '~':
		return &callout{tone: "caution", title: "Caution"}
	case '!':
		return &callout{tone: "warning", title: "Warning"}
	}
	return nil
}

// Continue implements parser.BlockParser.
func (calloutParser) Continue(_ ast.Node, reader text.Reader, _ parser.Context) parser.State {
	line, _ := reader.PeekLine()
	if util.IsBlank(line) {
		return parser.Close
	}
	if _, at := util.IndentWidth(line, reader.LineOffset()); at < len(line) && calloutAt(line, at) != nil {
		return parser.Close
	}
	return parser.Continue | parser.HasChildren
}

// Close implements parser.BlockParser.
func (calloutParser) Close(ast.Node, text.Reader, parser.Context) {}

// CanInterruptParagraph implements parser.BlockParser.
func (calloutParser) CanInterruptParagraph() bool { return true }

// CanAcceptIndentedLine implements parser.BlockParser.
func (calloutParser) CanAcceptIndentedLine() bool { return false }

// alerts makes callouts of GitHub's alerts: quotes whose first line is "[!NOTE]".
type alerts struct{}

// Transform implements parser.ASTTransformer.
func (alerts) Transform(node *ast.Document, reader text.Reader, _ parser.Context) {
	var quotes []*ast.Blockquote
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if q, ok := n.(*ast.Blockquote); ok && entering {
			quotes = append(quotes, q)
		}
		return ast.WalkContinue, nil
	})
	for _, q := range quotes {
		first, ok := q.FirstChild().(*ast.Paragraph)
		if !ok || first.Lines().Len() == 0 {
			continue
		}
		line := first.Lines().At(0)
		c := alert(strings.TrimSpace(string(line.Value(reader.Source()))))
		if c == nil {
			continue
		}
		removeLine(first)
		if !first.HasChildren() {
			q.RemoveChild(q, first)
		}
		for child := q.FirstChild(); child != nil; child = q.FirstChild() {
			c.AppendChild(c, child)
		}
		q.Parent().ReplaceChild(q.Parent(), q, c)
	}
}

// alert returns the callout for the first line of an alert, or nil for another line.
func alert(line string) *callout {
	switch strings.ToUpper(line) {
	case "[!NOTE]":
		return &callout{tone: "note", title: "Note"}
	case "[!TIP]":
		return &callout{tone: "tip", title: "Tip"}
	case "[!IMPORTANT]":
		return &callout{tone: "note", title: "Important"}
	case "[!WARNING]":
		return &callout{tone: "caution", title: "Warning"}
	case "[!CAUTION]":
		return &callout{tone: "warning", title: "Caution"}
	}
	return nil
}

// removeLine removes the nodes of the first line of a paragraph.
func removeLine(p *ast.Paragraph) {
	for n := p.FirstChild(); n != nil; n = p.FirstChild() {
		p.RemoveChild(p, n)
		if t, ok := n.(*ast.Text); ok && (t.SoftLineBreak() || t.HardLineBreak()) {
			return
		}
	}
}
