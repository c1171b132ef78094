package moduledoc

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	gmtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// readmeNames are the names of READMEs in lower case, in order of preference.
var readmeNames = []string{"readme.md", "readme.markdown", "readme"}

func readmeRank(name string) int { return slices.Index(readmeNames, strings.ToLower(name)) }

// chooseReadme returns the README to show.
func chooseReadme(readmes map[string]Readme) Readme {
	names := slices.SortedFunc(maps.Keys(readmes), func(a, b string) int {
		if c := readmeRank(a) - readmeRank(b); c != 0 {
			return c
		}
		return strings.Compare(a, b) // README.md before readme.md
	})
	if len(names) == 0 {
		return Readme{}
	}
	return readmes[names[0]]
}

// newReadme returns a README of the beginning of its file.
func newReadme(name string, content []byte, limit int) Readme {
	r := Readme{Name: name}
	limit = max(limit, 0)
	if r.Truncated = len(content) > limit; r.Truncated {
		content = content[:lengthOfLines(content[:limit])]
	}
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	content = bytes.ToValidUTF8(content, []byte("\uFFFD"))
	r.Content = string(bytes.ReplaceAll(content, []byte{0}, []byte("\uFFFD")))
	return r
}

// lengthOfLines returns the size of the whole lines at the beginning of a text: all of it if
// it has no line break.
func lengthOfLines(text []byte) int {
	if n := bytes.LastIndexByte(text, '\n') + 1; n > 0 {
		return n
	}
	return len(text)
}

// An introduction is the beginning of a README in short form.
type introduction struct {
	description string // the first paragraph
	words       string
}

// Limits of an introduction, in bytes.
const (
	maxDescription = 300
	maxWords       = 1 << 10
)

var markdown = goldmark.DefaultParser()

// introduce reads the beginning of a README, up to limit bytes, since parsing may take time
// that grows with the square of the size.
func introduce(readme string, limit int) (i introduction) {
	defer func() {
		if recover() != nil { // a README must not end the server, whatever panics in a parser
			i = introduction{}
		}
	}()
	source := []byte(readme[:min(limit, len(readme))])
	if len(readme) > limit {
		source = source[:lengthOfLines(source)]
	}
	source = []byte(withoutFrontMatter(string(source)))
	var words wordList
	document := markdown.Parse(gmtext.NewReader(source))
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch {
		case !entering:
			return ast.WalkContinue, nil
		case n.Kind() != ast.KindParagraph && n.Kind() != ast.KindTextBlock && n.Kind() != ast.KindHeading:
			return ast.WalkContinue, nil
		}
		plain := plainText(n, source)
		words.add(plain)
		if i.description == "" && n.Kind() == ast.KindParagraph && n.Parent() == document && isProse(plain) {
			i.description = CutAtWord(plain, maxDescription)
		}
		return ast.WalkSkipChildren, nil
	})
	i.words = words.String()
	return i
}

// withoutFrontMatter removes YAML before a document.
func withoutFrontMatter(s string) string {
	if rest, ok := strings.CutPrefix(s, "---\n"); ok {
		if _, after, ok := strings.Cut("\n"+rest, "\n---\n"); ok {
			return after
		}
	}
	return s
}

// plainText returns the text of a paragraph or heading, without images and HTML, with
// single spaces.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Image, *ast.RawHTML:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if entering {
				value := n.Segment.Value(source)
				if n.Parent().Kind() != ast.KindCodeSpan {
					value = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value)))
				}
				b.Write(value)
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.AutoLink:
			if entering {
				b.Write(n.Label(source))
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// A wordList has the words of a text, each once, up to maxWords bytes.
type wordList struct {
	strings.Builder
	seen map[string]bool
}

func (l *wordList) add(text string) {
	separates := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' }
	for word := range strings.FieldsFuncSeq(text, separates) {
		word = strings.Trim(strings.ToLower(word), "-_")
		// Some scripts put no spaces between words: a run of their characters is as long as
		// a sentence.
		for runes := []rune(word); len(runes) > maxWord && len(runes) < len(word); runes = runes[maxWord:] {
			l.addWord(string(runes[:maxWord]))
			word = string(runes[maxWord:])
		}
		if !l.addWord(word) {
			return
		}
	}
}

// maxWord is the length of a word, in characters: longer ones are keys and the like.
const maxWord = 40

// addWord adds a word, and reports whether there is still room.
func (l *wordList) addWord(word string) bool {
	switch {
	case len(word) < 2, utf8.RuneCountInString(word) > maxWord, l.seen[word], strings.Trim(word, "0123456789-") == "":
		return true
	case l.Len()+len(word)+1 > maxWords:
		return false
	}
	if l.seen == nil {
		l.seen = make(map[string]bool)
	}
	l.seen[word] = true
	if l.Len() > 0 {
		l.WriteByte(' ')
	}
	l.WriteString(word)
	return true
}
