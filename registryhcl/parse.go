package registryhcl

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// MaxSize is the size of the largest registry.hcl that is read, in bytes.
const MaxSize = 64 << 10

// Limits of a registry.hcl, which people write by hand. Its texts are shown in
// terminals and on pages.
const (
	maxNotices     = 1000 // of each kind
	maxConstraints = 50   // of a notice
	maxNesting     = 100  // levels, see tooDeep
	maxProblems    = 20   // that are reported

	maxDescription = 1000 // characters
	maxOwner       = 200
	maxReason      = 500
	maxURL         = 2000
)

// A Problem is a part of a registry.hcl that does not count.
type Problem struct {
	Line   int    // from 1
	Detail string // says what to do

	// MayWithdraw reports whether that part may withdraw versions, or name the repository
	// that has them. Until it can be read, the file before it counts in both.
	MayWithdraw bool
}

func (p Problem) String() string { return fmt.Sprintf("line %d: %s", p.Line, p.Detail) }

// Parse parses a registry.hcl. The parts that can be read count, and the others are
// reported, in order.
//
// Nothing is evaluated: all values are plain strings.
func Parse(content []byte) (File, []Problem) {
	var p parser
	if len(content) > MaxSize {
		p.problem(1, true, "the file is larger than %d KiB: shorten it", MaxSize>>10)
		return p.metadata, p.problems
	}
	content = bytes.TrimPrefix(content, []byte("\ufeff")) // some editors write a byte order mark first
	if line := tooDeep(content); line > 0 {
		p.problem(line, true, "it is nested too deeply: write plain strings and blocks only")
		return p.metadata, p.problems
	}
	file, diagnostics := hclsyntax.ParseConfig(content, "registry.hcl", hcl.InitialPos)
	for _, d := range diagnostics {
		p.problem(lineOf(d.Subject), true, "%s", sentence(d))
	}
	if body, ok := file.Body.(*hclsyntax.Body); ok {
		p.body(body)
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return p.metadata, p.problems
}

// tooDeep returns the first line that is nested so deeply that the parser, which is
// recursive, would use too much stack; zero if there is none. Operators that make the parser
// recurse without a bracket count like brackets that are never closed.
func tooDeep(content []byte) (line int) {
	tokens, _ := hclsyntax.LexConfig(content, "", hcl.InitialPos)
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl,
			hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenQuestion, hclsyntax.TokenStar:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen:
			depth = max(depth-1, 0) // a bracket that was never opened closes nothing
		}
		if depth > maxNesting {
			return t.Range.Start.Line
		}
	}
	return 0
}

func lineOf(r *hcl.Range) int {
	if r == nil {
		return 1
	}
	return r.Start.Line
}

// sentence returns the first sentence of a diagnostic of the parser, as a problem's detail.
func sentence(d *hcl.Diagnostic) string {
	text, _, _ := strings.Cut(cmp.Or(d.Detail, d.Summary), ". ")
	text, _ = cleanText(strings.TrimSuffix(text, "."), maxReason)
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(first)) + text[size:]
}

// A parser collects what a registry.hcl says.
type parser struct {
	metadata File
	problems []Problem
}

// problem adds a problem, unless there are many. withdraws reports whether the part that
// cannot be read may withdraw versions, or name their repository.
func (p *parser) problem(line int, withdraws bool, format string, args ...any) {
	switch n := len(p.problems); {
	case n < maxProblems:
		p.problems = append(p.problems, Problem{line, fmt.Sprintf(format, args...), withdraws})
	case withdraws:
		p.problems[n-1].MayWithdraw = true
	}
}

func (p *parser) body(body *hclsyntax.Body) {
	for _, a := range inOrder(body.Attributes) {
		line := a.NameRange.Start.Line
		switch a.Name {
		case "description":
			p.metadata.Description = p.text(a, maxDescription)
		case "owner":
			p.metadata.Owner = p.text(a, maxOwner)
		case "source":
			p.metadata.Source = p.url(a)
		case "deprecated", "withdrawn":
			p.problem(line, true, "%s is a block: write %[1]s \"< 1.2.0\" { reason = \"…\" }", a.Name)
		case "git":
			p.problem(line, true, "git is a block: write git { url = \"https://…\" }")
		default:
			p.problem(line, false, "there is no argument %s: use description, source or owner", address.Plain(a.Name))
		}
	}
	for _, b := range body.Blocks {
		switch b.Type {
		case "deprecated":
			p.notice(b, &p.metadata.Deprecated, false)
		case "withdrawn":
			p.notice(b, &p.metadata.Withdrawn, true)
		case "git":
			p.git(b)
		default:
			p.problem(b.TypeRange.Start.Line, true, "there is no block %s: use deprecated, withdrawn or git", address.Plain(b.Type))
		}
	}
}

// inOrder returns attributes in the order of the file.
func inOrder(attributes hclsyntax.Attributes) []*hclsyntax.Attribute {
	list := make([]*hclsyntax.Attribute, 0, len(attributes))
	for _, a := range attributes {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *hclsyntax.Attribute) int {
		return cmp.Compare(a.NameRange.Start.Byte, b.NameRange.Start.Byte)
	})
	return list
}

// notice adds the notice in a block to list.
func (p *parser) notice(b *hclsyntax.Block, list *[]Notice, withdraws bool) {
	line := b.TypeRange.Start.Line
	versions, err := noticeConstraints(b.Type, b.Labels)
	if err != nil {
		p.problem(line, withdraws, "%v", err)
		return
	}
	if len(*list) == maxNotices {
		p.problem(line, withdraws, "there are more than %d blocks %s: use one for several versions", maxNotices, b.Type)
		return
	}
	n := Notice{Versions: versions}
	for _, a := range inOrder(b.Body.Attributes) {
		switch a.Name {
		case "reason":
			n.Reason = p.text(a, maxReason)
		case "link":
			n.Link = p.url(a)
		default:
			p.problem(a.NameRange.Start.Line, false, "there is no argument %s in a block %s: use reason or link", address.Plain(a.Name), b.Type)
		}
	}
	for _, inner := range b.Body.Blocks {
		p.problem(inner.TypeRange.Start.Line, withdraws, "there are no blocks in a block %s: close it with } before this line", b.Type)
	}
	*list = append(*list, n)
}

// noticeConstraints parses the label of a notice's block.
func noticeConstraints(block string, labels []string) (address.Constraints, error) {
	if len(labels) != 1 {
		return nil, fmt.Errorf("a block %s has one version constraint, such as %[1]s \"< 1.2.0\": repeat the block for others", block)
	}
	text, _ := cleanText(labels[0], maxReason)
	versions, err := address.ParseConstraints(text)
	switch {
	case err != nil:
		return nil, err
	case len(versions) == 0:
		return nil, fmt.Errorf("name the versions: %s \">= 0\" stands for all", block)
	case len(versions) > maxConstraints:
		return nil, fmt.Errorf("a constraint has at most %d parts: use several blocks", maxConstraints)
	}
	return versions, nil
}

// text returns an attribute's string on one line, without control characters.
func (p *parser) text(a *hclsyntax.Attribute, limit int) string {
	value, ok := literal(a.Expr)
	if !ok {
		p.problem(a.NameRange.Start.Line, false, "%s must be a plain string: write it in quotation marks", a.Name)
		return ""
	}
	text, cut := cleanText(value, limit)
	if cut {
		p.problem(a.NameRange.Start.Line, false, "%s is longer than %d characters, which is all that is shown: shorten it", a.Name, limit)
	}
	return text
}

// url returns an attribute's URL if pages can link to it.
func (p *parser) url(a *hclsyntax.Attribute) string {
	value, ok := literal(a.Expr)
	value = strings.TrimSpace(value)
	if ok && value == "" {
		return ""
	}
	link, err := webURL(value)
	if !ok || err != nil {
		p.problem(a.NameRange.Start.Line, false, "%s must be the URL of a web page: begin it with https://, without a user or password", a.Name)
	}
	return link
}

// webURL returns a URL in the form for documents and pages.
func webURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		len(text) > maxURL || !utf8.ValidString(text) {
		return "", fmt.Errorf("%s is not the URL of a web page: begin it with https://, without a user or password", address.Plain(text))
	}
	return u.String(), nil
}

// literal returns the value of an expression that is a literal string.
func literal(e hclsyntax.Expression) (text string, ok bool) {
	t, ok := e.(*hclsyntax.TemplateExpr)
	if !ok {
		return "", false
	}
	var all strings.Builder
	for _, part := range t.Parts {
		l, ok := part.(*hclsyntax.LiteralValueExpr)
		if !ok || l.Val.Type() != cty.String || l.Val.IsNull() {
			return "", false
		}
		all.WriteString(l.Val.AsString())
	}
	return all.String(), true
}

// cleanText puts a text on one line, and drops characters that do not print: the text
// reaches terminals. cut reports whether it had more than limit characters.
func cleanText(text string, limit int) (clean string, cut bool) {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	return Shorten(text, limit)
}

// Shorten cuts a text to at most limit characters and "…".
func Shorten(text string, limit int) (short string, cut bool) {
	n := 0
	for i := range text {
		if n++; n > limit {
			runes := []rune(text[:i])
			return strings.TrimRight(string(runes[:limit-1]), " ") + "…", true
		}
	}
	return text, false
}
