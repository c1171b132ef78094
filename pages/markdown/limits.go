package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Anyone may write a text. Some texts take a parser time that grows with the square of
// their length, and some become much longer when they are rendered. These constants
// bound both. A text beyond a bound is still shown, but without the part that would be
// too expensive. Real texts stay far below.
const (
	// maxNesting is how deep quotes, lists (two levels each) and callouts are nested,
	// and how long one run of emphasis is, in characters.
	maxNesting = 32

	// maxScanned is how many bytes the parsers may search for the ends of links, code,
	// emphasis and tags. Each search may read the rest of its paragraph.
	maxScanned = 128 << 20

	// maxCells is the number of cells in all tables together. goldmark fills up each
	// row to the width of the head, so that a wide head with many short rows would have
	// millions.
	maxCells = 60_000

	// maxEscapedPipes is the number of escaped pipes in all tables together. goldmark
	// compares each with each.
	maxEscapedPipes = 1_000

	// maxReferences is how many lines one paragraph of link references may have.
	maxReferences = 2_000

	// maxFootnotes is the number of references to footnotes. goldmark searches all
	// footnotes for each reference. Further ones are shown as they are written.
	maxFootnotes = 1_000

	// maxHeadings is the number of headings that get an id.
	maxHeadings = 1_000
)

var effortKey = parser.NewContextKey()

// An effort is the budget that is left for rendering one text, or several short ones.
type effort struct {
	scan, cells, pipes, urls, footnotes, code int

	block ast.Node // the block that is being parsed, and its size
	size  int
}

func newEffort(length int) *effort {
	return &effort{
		scan: maxScanned, cells: maxCells, pipes: maxEscapedPipes, footnotes: maxFootnotes,
		urls: 2*length + 1<<16, // a reference is written once, and many links can use it
		code: maxHighlighted,
	}
}

// extend prepares the budget for another text. What the texts before it have used up stays so.
func (e *effort) extend(length int) {
	e.urls += 2 * length
	e.block, e.size = nil, 0
}

func effortOf(pc parser.Context) *effort { return pc.Get(effortKey).(*effort) }

// scanned counts one search through a block, and reports whether the budget allows it.
func (e *effort) scanned(block ast.Node) bool {
	if e.block != block {
		e.block, e.size = block, lengthOf(block)
	}
	e.scan -= e.size
	return e.scan >= 0
}

func lengthOf(block ast.Node) (length int) {
	for _, line := range block.Lines().Sliced(0, block.Lines().Len()) {
		length += line.Len()
	}
	return length
}

// A boundedInline is an inline parser that may have to search all of its block.
type boundedInline struct{ parser.InlineParser }

func (b boundedInline) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if !effortOf(pc).scanned(parent) {
		return nil
	}
	return b.InlineParser.Parse(parent, block, pc)
}

// CloseBlock implements parser.CloseBlocker, which the parser of links needs.
func (b boundedInline) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if c, ok := b.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// A boundedFootnote is the parser of references to footnotes.
type boundedFootnote struct{ boundedInline }

func (b boundedFootnote) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, _ := block.PeekLine()
	if !bytes.HasPrefix(bytes.TrimPrefix(line, []byte{'!'}), []byte("[^")) {
		return nil
	}
	e := effortOf(pc)
	if e.footnotes--; e.footnotes < 0 {
		return nil
	}
	return b.boundedInline.Parse(parent, block, pc)
}

// A boundedLinkify looks for a URL or mail address in the next word.
type boundedLinkify struct{ parser.InlineParser }

func (b boundedLinkify) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	e := effortOf(pc)
	if e.scan < 0 {
		return nil
	}
	line, _ := block.PeekLine()
	word := bytes.IndexAny(line[1:], " \t\n")
	if word < 0 {
		word = len(line)
	}
	e.scan -= 1 + word
	return b.InlineParser.Parse(parent, block, pc)
}

// A boundedEmphasis takes long runs of asterisks for text: goldmark would nest each
// pair in the one before.
type boundedEmphasis struct{ parser.InlineParser }

func (b boundedEmphasis) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	if n := len(line) - len(bytes.TrimLeft(line, string(line[:1]))); n > maxNesting {
		block.Advance(n)
		return ast.NewTextSegment(segment.WithStop(segment.Start + n))
	}
	return b.InlineParser.Parse(parent, block, pc)
}

// A boundedContainer is the parser of a block that contains other blocks.
type boundedContainer struct{ parser.BlockParser }

func (b boundedContainer) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if depth++; depth > maxNesting {
			return nil, parser.NoChildren
		}
	}
	return b.BlockParser.Open(parent, reader, pc)
}

// boundedTables makes tables of paragraphs, unless a table would be too large.
type boundedTables struct{}

func (boundedTables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines, source := node.Lines(), reader.Source()
	if lines.Len() < 2 {
		return
	}
	columns, pipes := 0, 0
	for i := range lines.Len() {
		line := lines.At(i)
		value := line.Value(source)
		pipes += bytes.Count(value, []byte(`\|`))
		if len(bytes.Trim(value, " \t\r\n|:-")) == 0 {
			columns = max(columns, bytes.Count(value, []byte{'|'})+1)
		}
	}
	e := effortOf(pc)
	cells := columns * lines.Len()
	if columns == 0 || cells > e.cells || pipes > e.pipes {
		return
	}
	e.cells -= cells
	e.pipes -= pipes
	extension.NewTableParagraphTransformer().Transform(node, reader, pc)
}

// boundedReferences takes link references out of paragraphs that are not too long.
type boundedReferences struct{}

func (boundedReferences) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	if node.Lines().Len() <= maxReferences {
		parser.LinkReferenceParagraphTransformer.Transform(node, reader, pc)
	}
}

// boundedContent removes URLs from links when all URLs together are too long, since
// many links can use one long reference. It also removes the language from code when
// there is too much code to highlight.
type boundedContent struct{}

func (boundedContent) Transform(node *ast.Document, reader text.Reader, pc parser.Context) {
	e := effortOf(pc)
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination, n.Title = e.url(n.Destination), e.url(n.Title)
		case *ast.Image:
			n.Destination, n.Title = e.url(n.Destination), e.url(n.Title)
		case *ast.FencedCodeBlock:
			if languages[strings.ToLower(string(n.Language(reader.Source())))] == terraform {
				break // which HCL's scanner reads in one pass
			}
			if e.code -= lengthOf(n); e.code < 0 {
				n.SetAttributeString(plainCode, true)
			}
		}
		return ast.WalkContinue, nil
	})
}

// plainCode is an attribute of code that is not highlighted.
const plainCode = "plain"

func (e *effort) url(b []byte) []byte {
	if e.urls -= len(b); e.urls < 0 {
		return nil
	}
	return b
}
