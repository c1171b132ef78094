package clientconfig

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// A File is a CLI configuration. Errors about it quote nothing of it.
type File struct {
	body        hcl.Body
	diagnostics hcl.Diagnostics // of parsing
	lines       []int           // of the content, by the lines of the text that was parsed; nil: it was the content
}

// blocks returns the blocks of some types.
func (f *File) blocks(types ...hcl.BlockHeaderSchema) (hcl.Blocks, hcl.Diagnostics) {
	content, _, diagnostics := f.body.PartialContent(&hcl.BodySchema{Blocks: types})
	return content.Blocks, diagnostics
}

// argument returns an argument of a block; nil if the block does not have it.
func argument(b *hcl.Block, name string) *hcl.Attribute {
	content, _, _ := b.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
	return content.Attributes[name]
}

// stringValue returns the value of an argument that is a string.
func stringValue(a *hcl.Attribute) (value string, ok bool) {
	v, bad := a.Expr.Value(nil)
	if bad.HasErrors() || !isString(v) {
		return "", false
	}
	return v.AsString(), true
}

// stringList returns the values of an argument that is a list of strings.
func stringList(a *hcl.Attribute) (values []string, ok bool) {
	v, bad := a.Expr.Value(nil)
	if bad.HasErrors() || !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return nil, false
	}
	for it := v.ElementIterator(); it.Next(); {
		_, element := it.Element()
		if !isString(element) {
			return nil, false
		}
		values = append(values, element.AsString())
	}
	return values, true
}

func isString(v cty.Value) bool { return v.IsKnown() && !v.IsNull() && v.Type() == cty.String }

// unread returns the error of diagnostics; nil if there is none.
func (f *File) unread(diagnostics hcl.Diagnostics) error {
	for _, d := range diagnostics {
		if d.Severity == hcl.DiagError && d.Subject != nil {
			return f.unreadAt(*d.Subject)
		}
	}
	return nil
}

func (f *File) unreadAt(r hcl.Range) error {
	line := r.Start.Line
	if line > 0 && line <= len(f.lines) {
		line = f.lines[line-1]
	}
	return fmt.Errorf("line %d cannot be read: correct it", line)
}
