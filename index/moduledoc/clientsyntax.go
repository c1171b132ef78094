package moduledoc

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// Terraform and OpenTofu refuse a module if they cannot parse one of its files, before they
// look at its content. Their own parser tells which files they refuse. It knows neither
// blocks nor arguments by name: a block that only one client knows, or only a newer version,
// is no syntax error.
//
// That parser is recursive, and takes time that grows with the square of the size of some
// files (native.go). So the tokens are examined first. A file that would cost too much is
// not judged: no person writes such a file by hand.

// Limits of judging files.
const (
	maxJudged  = 256 << 10 // bytes of a file
	maxNested  = 200       // brackets, strings and signs that are open at once
	maxInside  = 5_000     // signs ?, * and %{ in a file, each perhaps nested in the one before
	maxObjects = 2_000     // brackets in a JSON file, including brackets in strings
	maxEffort  = 128 << 20 // of all files of a package, roughly in bytes to copy
)

// refusal returns the first error for which clients refuse a configuration file, whose path
// in the package is name. It returns nil if there is no error, or the file is not judged.
// effort is the effort left for the package.
func refusal(name string, content []byte, effort *int) (p *Problem) {
	if len(content) > maxJudged {
		return nil
	}
	defer func() {
		if recover() != nil { // a module must not end the server, whatever panics in a parser
			p = nil
		}
	}()
	var found hcl.Diagnostics
	if strings.HasSuffix(name, ".json") {
		if bytes.Count(content, []byte("{"))+bytes.Count(content, []byte("[")) > maxObjects {
			return nil
		}
		_, found = hcljson.Parse(content, name)
	} else {
		tokens, _ := hclsyntax.LexConfig(content, name, hcl.InitialPos)
		cost, ok := effortOf(tokens)
		if !ok || cost > *effort {
			return nil
		}
		*effort -= cost
		_, found = hclsyntax.ParseConfig(content, name, hcl.InitialPos)
	}
	for _, d := range found {
		if d.Severity != hcl.DiagError {
			continue
		}
		p = &Problem{File: name, Text: sentence(d.Summary + ": " + cmp.Or(d.Detail, d.Summary))}
		if d.Subject != nil {
			p.Line = d.Subject.Start.Line
		}
		return p
	}
	return nil
}

// effortOf estimates the effort of parsing tokens beyond reading them once. ok is false if
// that is too much, or the parser would recurse too deeply.
func effortOf(tokens hclsyntax.Tokens) (effort int, ok bool) {
	var open nesting
	var joined []int // of each open string and heredoc, how many of its texts are joined to the text before
	signs, inside, names, text := 0, 0, 0, 0
	for _, t := range tokens {
		open.add(t.Type)
		switch t.Type {
		case hclsyntax.TokenBang, hclsyntax.TokenMinus:
			signs++
		case hclsyntax.TokenNewline, hclsyntax.TokenComment: // these may be between signs
		default:
			signs = 0
		}
		before := text
		text = 0
		last := len(joined) - 1
		switch t.Type {
		case hclsyntax.TokenQuestion, hclsyntax.TokenStar, hclsyntax.TokenTemplateControl:
			inside++
		case hclsyntax.TokenDoubleColon: // the parser copies the name so far
			names += len(t.Bytes)
			effort += names
		case hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
			joined = append(joined, 0)
		case hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			joined = joined[:max(last, 0)]
		case hclsyntax.TokenStringLit, hclsyntax.TokenQuotedLit: // the parser copies the lines of a heredoc so far
			text = before + len(t.Bytes)
			effort += text
			if before > 0 && last >= 0 {
				joined[last]++
			}
		}
		switch t.Type {
		case hclsyntax.TokenStringLit, hclsyntax.TokenQuotedLit, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			if last >= 0 { // each text that is joined moves the parts after it
				effort += joined[last]
			}
		}
		if len(open.open)+signs > maxNested || inside > maxInside || effort > maxEffort {
			return 0, false
		}
	}
	return effort, true
}
