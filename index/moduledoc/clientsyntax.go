package moduledoc

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// Terraform and OpenTofu refuse a module of which they cannot parse one file, before they
// look at what is in it. What they refuse is told by their own parser, which knows neither
// blocks nor arguments by name: what one client has and the other has not, or what a newer
// one has, is no error of syntax.
//
// That parser calls itself for what is nested, and takes time that grows with the square of
// some files (native.go). So the tokens are looked at before. A file that would cost too
// much is not judged: nobody writes one by hand.

// Bounds of what is judged.
const (
	maxJudged    = 256 << 10 // bytes of a file
	maxNested    = 200       // brackets, strings and signs that are open at once
	maxQuestions = 5_000     // of conditions in a file, each of which may be in the one before
	maxObjects   = 2_000     // brackets in a file of JSON: strings may hide none of them
	maxEffort    = 128 << 20 // of all files of a package, about as many bytes to copy
)

// refusal returns the first error for which clients refuse a configuration file, which is
// named by its path in the package; nil if there is none, or it is not judged. effort is
// what is left for the package.
func refusal(name string, content []byte, effort *int) (p *Problem) {
	if len(content) > maxJudged {
		return nil
	}
	defer func() {
		if recover() != nil { // a module must not end the server, whatever a parser makes of it
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

// effortOf estimates what it takes to parse tokens beyond reading them once. It is not ok if
// the parser would call itself too often.
func effortOf(tokens hclsyntax.Tokens) (effort int, ok bool) {
	var open nesting
	signs, questions, names, text := 0, 0, 0, 0
	for _, t := range tokens {
		open.add(t.Type)
		switch t.Type {
		case hclsyntax.TokenBang, hclsyntax.TokenMinus:
			signs++
		case hclsyntax.TokenNewline, hclsyntax.TokenComment: // which may be between signs
		default:
			signs = 0
		}
		switch t.Type {
		case hclsyntax.TokenQuestion:
			questions++
		case hclsyntax.TokenDoubleColon: // the name so far is copied
			names += len(t.Bytes)
			effort += names
		case hclsyntax.TokenStringLit, hclsyntax.TokenQuotedLit: // so are the lines of a heredoc so far
			text += len(t.Bytes)
			effort += text
			continue
		}
		text = 0
		if len(open.open)+signs > maxNested || questions > maxQuestions {
			return 0, false
		}
	}
	return effort, true
}
