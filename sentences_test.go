package terraformregistry_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// A sentence is a literal and its place. It has … for each part that is filled in.
type sentence struct {
	text string
	at   token.Position
}

// sentences returns the literals of a package or file that have at least three words.
func sentences(t *testing.T, dir string) (found []sentence) {
	t.Helper()
	for _, name := range sources(t, dir) {
		file, fset := parse(t, name)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec, *ast.Field: // the tag is a literal
				return false
			case *ast.CallExpr:
				return !takesNoSentence(n)
			case ast.Expr:
				if text, ok := literal(n); ok {
					if text = fill(text); isSentence(dir, text) {
						found = append(found, sentence{text, fset.Position(n.Pos())})
					}
					return false
				}
			}
			return true
		})
	}
	return found
}

// takesNoSentence reports whether users never read the arguments of a call, or the
// arguments document themselves.
func takesNoSentence(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"MustCompile", "NewDesc", "WriteString", "Fprintf"}, f.Sel.Name)
}

// literal returns a string literal, or several that are added up. Other operands become
// ….
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.ParenExpr:
		return literal(e.X)
	case *ast.BinaryExpr:
		x, isX := literal(e.X)
		y, isY := literal(e.Y)
		if e.Op != token.ADD || !isX && !isY {
			return "", false
		}
		if !isX {
			x = "…"
		}
		if !isY {
			y = "…"
		}
		return x + y, true
	}
	return "", false
}

var (
	verbs  = regexp.MustCompile(`%(\[\d+\])?[-+# 0]*[\d*]*(\.\d+)?[a-zA-Z]`)
	filled = regexp.MustCompile(`…([ /.]?…)+`)
)

// fill writes … for the verbs of a format.
func fill(format string) string {
	return strings.TrimSpace(filled.ReplaceAllString(verbs.ReplaceAllString(format, "…"), "…"))
}

// isSentence reports whether a literal has words. Sentences of pages begin with a
// capital letter.
func isSentence(dir, text string) bool {
	words := strings.Fields(strings.ReplaceAll(text, "…", ""))
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.ContainsFunc(w, unicode.IsLetter) })
	if len(words) < 3 || strings.ContainsFunc(text, unicode.IsControl) {
		return false
	}
	if strings.HasPrefix(dir, "pages/") || dir == "index/moduledoc" {
		return unicode.IsUpper([]rune(text)[0])
	}
	return !strings.HasPrefix(text, "-----BEGIN")
}

// span matches code spans of Markdown.
var span = regexp.MustCompile("``( .+? |[^ ].*?[^`])``|`([^`\n]+)`")

// codeSpans returns the code spans of documents.
func codeSpans(t *testing.T, documents ...string) (spans []string) {
	t.Helper()
	for _, name := range documents {
		for _, match := range span.FindAllStringSubmatch(read(t, name), -1) {
			spans = append(spans, fill(match[1]+match[2]))
		}
	}
	return spans
}

// has reports whether a text has the fixed parts of a pattern in their order.
func has(text, pattern string) bool {
	for part := range strings.SplitSeq(pattern, "…") {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// fixed returns the length of a pattern without the parts that are filled in.
func fixed(pattern string) int { return len(strings.ReplaceAll(pattern, "…", "")) }

// same reports whether a code span of the manual stands for a sentence of the code.
// Either can be more general than the other. The span can also be a part of the
// sentence, if it has most of it.
func same(span, sentence string) bool {
	return has(span, sentence) && 2*fixed(sentence) >= fixed(span) || has(sentence, span) && 2*fixed(span) >= fixed(sentence)
}

// calls returns the calls in a package.
func calls(t *testing.T, dir string) (all []*ast.CallExpr) {
	t.Helper()
	for _, name := range sources(t, dir) {
		file, _ := parse(t, name)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				all = append(all, call)
			}
			return true
		})
	}
	return all
}

// parse parses a file of the repository.
func parse(t *testing.T, name string) (*ast.File, *token.FileSet) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, filepath.FromSlash(name), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file, fset
}

// sources returns the files of a package without tests, or the one named file.
func sources(t *testing.T, name string) []string {
	t.Helper()
	name = filepath.FromSlash(name)
	if filepath.Ext(name) != "" {
		return []string{name}
	}
	files, err := filepath.Glob(filepath.Join(name, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no files: %v", name, err)
	}
	return slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
}

// constants returns the values of the string constants of a type, by name.
func constants(t *testing.T, name, typ string) map[string]string {
	t.Helper()
	file, _ := parse(t, name)
	values := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := s.Type.(*ast.Ident); ok && of.Name == typ && len(s.Values) == 1 {
			values[s.Names[0].Name], _ = literal(s.Values[0])
		}
		return false
	})
	if len(values) == 0 {
		t.Fatalf("%s has no constants of the type %s", name, typ)
	}
	return values
}
