package markdown

import (
	"io"
	"iter"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/yuin/goldmark/util"
)

// terraform is the language of modules. HCL's own scanner reads it, because chroma's
// expressions for it take parts of names for functions.
const terraform = "terraform"

// languages maps the names that people use for a language to the name of its lexer. It
// has the languages that repositories of modules and providers use.
var languages = map[string]string{
	"hcl": terraform, "terraform": terraform, "tf": terraform, "tofu": terraform, "opentofu": terraform,
	"terragrunt": terraform, "tfvars": terraform,
	"json": "json", "jsonc": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "ini": "ini",
	"sh": "bash", "shell": "bash", "bash": "bash", "zsh": "bash", "console": "console", "shell-session": "console",
	"powershell": "powershell", "ps1": "powershell", "diff": "diff", "patch": "diff",
	"dockerfile": "docker", "docker": "docker",
	"go": "go", "golang": "go", "python": "python", "py": "python",
	"javascript": "javascript", "js": "javascript", "typescript": "typescript", "ts": "typescript", "sql": "sql", "xml": "xml",
}

// Chroma's lexers are regular expressions with backtracking. A hostile text keeps them
// busy for minutes. With short lines they need less than 0.2 ms a byte.
const (
	maxHighlighted     = 16 << 10 // bytes of all code in one text
	maxHighlightedLine = 200
)

// maxHighlighting is how long chroma may take for one block of code. The rest of the
// block is written as it is. No honest code comes near it, so that a page is the same
// every time it is rendered.
const maxHighlighting = time.Second

// Highlight writes code as HTML, with its tokens in spans that have chroma's short
// class names. It writes code in an unknown language as it is.
func Highlight(w io.StringWriter, language, code string) {
	for class, text := range tokens(language, code) {
		escaped := string(util.EscapeHTML([]byte(text)))
		if class != "" {
			escaped = `<span class="` + class + `">` + escaped + `</span>`
		}
		_, _ = w.WriteString(escaped)
	}
}

// languageClass returns the attribute that tells the language of code, as CommonMark has it.
// It is how code keeps its language as Markdown.
func languageClass(language string) string {
	if !namesLanguage().MatchString(language) {
		return ""
	}
	return ` class="language-` + language + `"`
}

var namesLanguage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + languageName + `$`) })

// tokens returns the parts of code with their classes. The class is empty for plain
// text.
func tokens(language, code string) iter.Seq2[string, string] {
	switch lexer := languages[strings.ToLower(language)]; {
	case lexer == terraform:
		return joined(terraformTokens(code))
	case lexer != "" && len(code) <= maxHighlighted && !hasLongLine(code):
		return joined(chromaTokens(lexer, code))
	}
	return func(yield func(string, string) bool) { yield("", code) }
}

func hasLongLine(code string) bool {
	for line := range strings.Lines(code) {
		if len(line) > maxHighlightedLine {
			return true
		}
	}
	return false
}

// joined joins neighbours with the same class.
func joined(all iter.Seq2[string, string]) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		var class string
		var text strings.Builder
		for c, t := range all {
			if c != class && text.Len() > 0 {
				if !yield(class, text.String()) {
					return
				}
				text.Reset()
			}
			class = c
			text.WriteString(t)
		}
		if text.Len() > 0 {
			yield(class, text.String())
		}
	}
}

func chromaTokens(lexer, code string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		next, err := lexers.Get(lexer).Tokenise(&chroma.TokeniseOptions{State: "root"}, code)
		if err != nil {
			yield("", code)
			return
		}
		// Lexers add a line break at the end, and some replace characters that they do
		// not expect. The code itself is written unchanged.
		rest, begun := code, time.Now()
		for t := next(); t != chroma.EOF && rest != ""; t = next() {
			if time.Since(begun) > maxHighlighting {
				yield("", rest)
				return
			}
			class := chroma.StandardTypes[t.Type]
			switch {
			case t.Type == chroma.Error, t.Type.InCategory(chroma.Punctuation), t.Type.InCategory(chroma.Operator),
				t.Type == chroma.Name, t.Type == chroma.NameOther, strings.TrimSpace(t.Value) == "":
				class = ""
			}
			text := t.Value
			if len(text) > len(rest) {
				text = rest
			}
			if rest[:len(text)] != t.Value[:len(text)] {
				class, text = "", rest
			}
			if !yield(class, text) {
				return
			}
			rest = rest[len(text):]
		}
		if rest != "" {
			yield("", rest)
		}
	}
}

// terraformTokens returns the tokens of configuration, of a part of it, or of a text
// that only resembles it.
func terraformTokens(code string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		all, _ := hclsyntax.LexConfig([]byte(code), "", hcl.InitialPos)
		written := 0
		for i, t := range all {
			start, end := t.Range.Start.Byte, t.Range.End.Byte
			if start < written || end > len(code) {
				continue
			}
			if start > written && !yield("", code[written:start]) {
				return
			}
			if end > start && !yield(terraformClass(all, i), code[start:end]) {
				return
			}
			written = end
		}
		if written < len(code) {
			yield("", code[written:])
		}
	}
}

func terraformClass(all hclsyntax.Tokens, i int) string {
	switch all[i].Type {
	case hclsyntax.TokenComment:
		return "c1"
	case hclsyntax.TokenNumberLit:
		return "m"
	case hclsyntax.TokenOQuote, hclsyntax.TokenQuotedLit, hclsyntax.TokenCQuote, hclsyntax.TokenStringLit,
		hclsyntax.TokenOHeredoc, hclsyntax.TokenCHeredoc:
		return "s"
	case hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl, hclsyntax.TokenTemplateSeqEnd:
		return "si"
	case hclsyntax.TokenIdent:
		return identifierClass(string(all[i].Bytes), kindAt(all, i-1), kindAt(all, i+1))
	}
	return ""
}

// kindAt returns the type of a token. The ends of the code count as line breaks, and so
// do comments, which end their lines.
func kindAt(all hclsyntax.Tokens, i int) hclsyntax.TokenType {
	if i < 0 || i >= len(all) || all[i].Type == hclsyntax.TokenComment || all[i].Type == hclsyntax.TokenEOF {
		return hclsyntax.TokenNewline
	}
	return all[i].Type
}

// identifierClass returns the class of an identifier, judged by the tokens around it.
func identifierClass(name string, before, after hclsyntax.TokenType) string {
	first := before == hclsyntax.TokenNewline || before == hclsyntax.TokenOBrace
	switch {
	case before == hclsyntax.TokenDot:
		return ""
	case after == hclsyntax.TokenOParen:
		return "nf"
	case (first || before == hclsyntax.TokenComma) && (after == hclsyntax.TokenEqual || after == hclsyntax.TokenColon):
		return "na"
	case first && (after == hclsyntax.TokenOBrace || after == hclsyntax.TokenOQuote):
		return "k"
	case name == "true" || name == "false" || name == "null":
		return "kc"
	case (name == "for" || name == "in" || name == "if" || name == "else" || name == "endif" || name == "endfor") && after != hclsyntax.TokenEqual:
		return "k"
	}
	return ""
}
