package registryhcl

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Kind says whether a notice deprecates or withdraws versions. It is the name of the
// notice's block.
type Kind string

// The kinds of notices.
const (
	DeprecatedNotice Kind = "deprecated"
	WithdrawnNotice  Kind = "withdrawn"
)

// An Edit is a change of a notice. A nil field keeps its text.
type Edit struct {
	Kind         Kind
	Versions     address.Constraints
	Reason, Link *string
}

// Check returns why the notice cannot be written.
func (e Edit) Check() error {
	_, err := noticeConstraints(string(e.Kind), []string{e.Versions.String()})
	if err != nil {
		return err
	}
	if e.Reason != nil {
		if _, cut := cleanText(*e.Reason, maxReason); cut {
			return fmt.Errorf("the reason is longer than %d characters: shorten it", maxReason)
		}
	}
	if e.Link != nil && *e.Link != "" {
		if _, err := webURL(*e.Link); err != nil {
			return fmt.Errorf("the link %w", err)
		}
	}
	return nil
}

// Set returns the content of a registry.hcl with a notice. If there is a notice of that kind
// for the same versions, Set updates it; otherwise it adds the notice at the end. Everything
// else stays as written. It is an error if that is impossible.
func Set(content []byte, e Edit) ([]byte, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	want, _ := Parse(content)
	text := e.applied(want.notice(e.Kind, e.Versions))
	after, err := e.set(content, want.notice(e.Kind, e.Versions), text)
	if err != nil {
		return nil, err
	}
	return after, checkEdited(content, after, want.withNotice(e.Kind, Notice{e.Versions, text.reason, text.link}))
}

// set returns the content with the notice, whose text is to become wanted.
func (e Edit) set(original []byte, current, wanted noticeText) ([]byte, error) {
	body, content, err := parseForEdit(original)
	if err != nil {
		return nil, err
	}
	blocks := noticeBlocks(body, e.Versions, e.Kind)
	if len(blocks) == 0 {
		return appendBlock(content, e.render(wanted)), nil
	}
	if wanted == current {
		return original, nil
	}
	block := blocks[0]
	start, end := block.Range().Start.Byte, block.CloseBraceRange.End.Byte
	anew := splice(content, start, end, bytes.TrimSpace(e.render(wanted)))
	// A block that looks as this function writes it has no comments or formatting of its
	// own. It is replaced as a whole, so that its arguments are aligned.
	if bytes.Equal(content[start:end], bytes.TrimSpace(e.render(current))) {
		return anew, nil
	}
	_, earlier := Parse(content)
	edited := e.setInBlock(content, block, wanted)
	after, problems := Parse(edited)
	switch {
	case len(problems) <= len(earlier) && after.notice(e.Kind, e.Versions) == wanted:
		return edited, nil
	case hasMore(content, block):
		return nil, fmt.Errorf("line %d: the block has more than a reason and a link on its line: edit it by hand", block.Range().Start.Line)
	}
	// The block is on one line, which has no place for another argument.
	return anew, nil
}

// hasMore reports whether a notice's block has more than a reason and a link, such as a comment.
func hasMore(content []byte, b *hclsyntax.Block) bool {
	rest := slices.Clone(content[b.OpenBraceRange.End.Byte:b.CloseBraceRange.Start.Byte])
	for _, name := range []string{"reason", "link"} {
		if a := b.Body.Attributes[name]; a != nil {
			r := a.SrcRange
			for i := r.Start.Byte; i < r.End.Byte; i++ {
				rest[i-b.OpenBraceRange.End.Byte] = ' '
			}
		}
	}
	return len(bytes.TrimSpace(rest)) > 0
}

// Remove returns the content of a registry.hcl without the notices for exactly these
// versions, and the kinds of the removed notices. It is an error if they would stay withdrawn
// nevertheless.
func Remove(content []byte, versions address.Constraints) (edited []byte, removed []Kind, err error) {
	body, edited, err := parseForEdit(content)
	if err != nil {
		return nil, nil, err
	}
	blocks := noticeBlocks(body, versions, DeprecatedNotice, WithdrawnNotice)
	for _, b := range slices.Backward(blocks) { // backward, so that the positions of earlier blocks stay
		removed = append(removed, Kind(b.Type))
		edited = removeLines(edited, b.Range().Start.Byte, b.CloseBraceRange.End.Byte)
	}
	slices.Sort(removed)
	want, _ := Parse(content)
	if err := checkEdited(content, edited, want.withoutNotices(versions)); err != nil {
		return nil, nil, err
	}
	removed = slices.Compact(removed)
	if !slices.Equal(removed, []Kind{DeprecatedNotice}) {
		err = checkRestored(content, edited)
	}
	return edited, removed, err
}

// noticeText is the part of a notice that can be edited.
type noticeText struct{ reason, link string }

// notices returns the notices of a kind.
func (m *File) notices(kind Kind) *[]Notice {
	if kind == WithdrawnNotice {
		return &m.Withdrawn
	}
	return &m.Deprecated
}

// notice returns the text of the first notice of a kind for exactly these versions.
func (m *File) notice(kind Kind, versions address.Constraints) noticeText {
	for _, n := range *m.notices(kind) {
		if n.Versions.String() == versions.String() {
			return noticeText{n.Reason, n.Link}
		}
	}
	return noticeText{}
}

// withNotice returns the metadata with a notice in the place of the first one of its kind for the same
// versions, or else as the last one.
func (m *File) withNotice(kind Kind, n Notice) File {
	after := *m
	list := after.notices(kind)
	*list = slices.Clone(*list)
	if i := slices.IndexFunc(*list, func(other Notice) bool { return other.Versions.String() == n.Versions.String() }); i >= 0 {
		(*list)[i] = n
	} else {
		*list = append(*list, n)
	}
	return after
}

// withoutNotices returns the metadata without the notices for exactly these versions.
func (m *File) withoutNotices(versions address.Constraints) File {
	about := func(n Notice) bool { return n.Versions.String() == versions.String() }
	after := *m
	after.Deprecated = slices.DeleteFunc(slices.Clone(m.Deprecated), about)
	after.Withdrawn = slices.DeleteFunc(slices.Clone(m.Withdrawn), about)
	return after
}

// applied returns the text of a notice after the edit.
func (e Edit) applied(t noticeText) noticeText {
	if e.Reason != nil {
		t.reason, _ = cleanText(*e.Reason, maxReason)
		t.reason = norm.NFC.String(t.reason) // as HCL reads texts
	}
	if e.Link != nil {
		t.link, _ = webURL(*e.Link)
	}
	return t
}

// parseForEdit parses a registry.hcl that can be edited: it must be HCL, but may have other
// errors. The content that it returns ends with a line break.
func parseForEdit(content []byte) (*hclsyntax.Body, []byte, error) {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	if len(content) > 0 && content[len(content)-1] != '\n' {
		content = append(slices.Clip(content), '\n')
	}
	if len(content) > MaxSize {
		return nil, nil, fixFirst(fmt.Errorf("it is larger than %d KiB", MaxSize>>10))
	}
	if line := tooDeep(content); line > 0 {
		return nil, nil, fixFirst(fmt.Errorf("line %d: it is nested too deeply", line))
	}
	file, diagnostics := hclsyntax.ParseConfig(content, tree.MetadataName, hcl.InitialPos)
	if diagnostics.HasErrors() {
		return nil, nil, fixFirst(errors.New(Problem{Line: lineOf(diagnostics[0].Subject), Detail: sentence(diagnostics[0])}.String()))
	}
	return file.Body.(*hclsyntax.Body), content, nil
}

func fixFirst(err error) error { return fmt.Errorf("%w: fix the file first", err) }

// noticeBlocks returns the blocks of these kinds for exactly these versions, in the order of
// the file.
func noticeBlocks(body *hclsyntax.Body, versions address.Constraints, kinds ...Kind) (blocks []*hclsyntax.Block) {
	for _, b := range body.Blocks {
		if !slices.Contains(kinds, Kind(b.Type)) {
			continue
		}
		if of, err := noticeConstraints(b.Type, b.Labels); err == nil && of.String() == versions.String() {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// render returns the block of the notice with these texts, on lines of its own.
func (e Edit) render(text noticeText) []byte {
	file := hclwrite.NewEmptyFile()
	body := file.Body().AppendNewBlock(string(e.Kind), []string{e.Versions.String()}).Body()
	if text.reason != "" {
		body.SetAttributeValue("reason", cty.StringVal(text.reason))
	}
	if text.link != "" {
		body.SetAttributeValue("link", cty.StringVal(text.link))
	}
	return file.Bytes()
}

// setInBlock replaces the texts in a notice's block that the edit names.
func (e Edit) setInBlock(content []byte, b *hclsyntax.Block, t noticeText) []byte {
	type edit struct {
		start, end int
		text       []byte
	}
	var edits []edit
	for _, attribute := range []struct {
		name, value string
		isNamed     bool
	}{{"reason", t.reason, e.Reason != nil}, {"link", t.link, e.Link != nil}} {
		if !attribute.isNamed {
			continue
		}
		value := hclwrite.TokensForValue(cty.StringVal(attribute.value)).Bytes()
		if a := b.Body.Attributes[attribute.name]; a != nil {
			r := a.Expr.Range()
			edits = append(edits, edit{r.Start.Byte, r.End.Byte, value})
		} else if attribute.value != "" {
			at := bytes.LastIndexByte(content[:b.CloseBraceRange.Start.Byte], '\n') + 1
			edits = append(edits, edit{at, at, fmt.Appendf(nil, "  %s = %s\n", attribute.name, value)})
		}
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	for _, e := range slices.Backward(edits) {
		content = splice(content, e.start, e.end, e.text)
	}
	return content
}

// appendBlock adds a block at the end, after an empty line.
func appendBlock(content, block []byte) []byte {
	if len(content) == 0 {
		return block
	}
	return slices.Concat(content, []byte("\n"), block)
}

func splice(content []byte, start, end int, text []byte) []byte {
	return slices.Concat(content[:start], text, content[end:])
}

// removeLines removes a block with the comment that is right above it, and one of
// the empty lines around it.
func removeLines(content []byte, start, end int) []byte {
	lineStart := func(at int) int { return bytes.LastIndexByte(content[:at], '\n') + 1 }
	start = lineStart(start)
	for start > 0 {
		above := lineStart(start - 1)
		line := strings.TrimSpace(string(content[above:start]))
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "//") {
			break
		}
		start = above
	}
	end += bytes.IndexByte(content[end:], '\n') + 1
	rest := content[end:]
	before := content[:start]
	for len(before) == 0 || bytes.HasSuffix(before, []byte("\n\n")) || bytes.HasSuffix(before, []byte("\n\r\n")) {
		trimmed, empty := bytes.CutPrefix(rest, []byte("\n"))
		if !empty {
			trimmed, empty = bytes.CutPrefix(rest, []byte("\r\n"))
		}
		if !empty {
			break
		}
		rest = trimmed
	}
	if len(rest) == 0 {
		before = bytes.TrimRight(before, "\r\n")
		if len(before) > 0 {
			before = append(slices.Clip(before), '\n')
		}
	}
	return slices.Concat(before, rest)
}
