package moduledoc

import "github.com/hashicorp/hcl/v2/hclsyntax"

// nesting has the brackets, strings, heredocs and ${ that are open at a token.
type nesting struct{ open []hclsyntax.TokenType }

// add adds the next token. A closing token that does not match the innermost open one closes
// nothing.
func (n *nesting) add(t hclsyntax.TokenType) {
	switch t {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc,
		hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
		n.open = append(n.open, t)
	default:
		if last := len(n.open) - 1; last >= 0 && closes(t, n.open[last]) {
			n.open = n.open[:last]
		}
	}
}

func closes(t, open hclsyntax.TokenType) bool {
	switch t {
	case hclsyntax.TokenCBrace:
		return open == hclsyntax.TokenOBrace
	case hclsyntax.TokenCBrack:
		return open == hclsyntax.TokenOBrack
	case hclsyntax.TokenCParen:
		return open == hclsyntax.TokenOParen
	case hclsyntax.TokenCQuote:
		return open == hclsyntax.TokenOQuote
	case hclsyntax.TokenCHeredoc:
		return open == hclsyntax.TokenOHeredoc
	case hclsyntax.TokenTemplateSeqEnd:
		return open == hclsyntax.TokenTemplateInterp || open == hclsyntax.TokenTemplateControl
	}
	return false
}
