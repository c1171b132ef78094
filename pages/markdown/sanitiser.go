package markdown

import (
	"regexp"

	"github.com/microcosm-cc/bluemonday"
)

// sanitisers decide which HTML others may write into our pages. What is not listed
// here is removed: above all scripts, event handlers, styles, forms and frames, and
// URLs of any other scheme.
type sanitisers struct {
	// raw is for the HTML that is in a text, piece by piece.
	raw *bluemonday.Policy

	// final is for all of a rendered text. It allows what the rendering itself adds:
	// classes, ids and descriptions for screen readers.
	final *bluemonday.Policy
}

func newSanitisers() sanitisers {
	raw := allowedText()
	raw.AllowAttrs("id").Matching(regexp.MustCompile(`^\S+$`)).Globally()
	raw.AllowAttrs("name").Matching(regexp.MustCompile(`^\S+$`)).OnElements("a")

	final := allowedText()
	final.AllowAttrs("id").Matching(regexp.MustCompile(`^(readme|doc)-\S+$`)).Globally()
	final.AllowAttrs("class").Matching(regexp.MustCompile(`^([a-z][a-z0-9]{0,2}|task|task done)$`)).OnElements("span")
	final.AllowAttrs("class").Matching(regexp.MustCompile(`^(scroll|footnotes|callout (note|tip|caution|warning))$`)).OnElements("div")
	final.AllowAttrs("class").Matching(regexp.MustCompile(`^callout-title$`)).OnElements("p")
	final.AllowAttrs("class").Matching(regexp.MustCompile(`^task-item$`)).OnElements("li")
	final.AllowAttrs("class").Matching(regexp.MustCompile(`^anchor$`)).OnElements("a")
	final.AllowAttrs("rel").Matching(regexp.MustCompile(`^` + externalLink + `$`)).OnElements("a")
	final.AllowAttrs("aria-hidden").Matching(regexp.MustCompile(`^true$`)).OnElements("a")
	final.AllowAttrs("aria-label").OnElements("span")
	final.AllowAttrs("role").Matching(regexp.MustCompile(`^(note|img)$`)).OnElements("div", "span")
	final.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^(0|-1)$`)).OnElements("a", "div", "pre")
	final.AllowAttrs("loading").Matching(regexp.MustCompile(`^lazy$`)).OnElements("img")
	return sanitisers{raw, final}
}

// externalLink is what links to other sites have for rel.
const externalLink = "nofollow noopener noreferrer"

// allowedText is what both allow: the elements of text, lists and tables, links, and
// images.
func allowedText() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	elements := []string{
		"h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "div", "blockquote", "pre", "details", "summary",
		"ul", "ol", "li", "dl", "dt", "dd",
		"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td",
		"a", "abbr", "b", "cite", "code", "del", "dfn", "em", "i", "img", "ins", "kbd", "mark", "q", "s", "samp",
		"small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var",
	}
	p.AllowElements(elements...)
	p.AllowNoAttrs().OnElements(elements...)

	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("src").OnElements("img")
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(true)
	p.RequireParseableURLs(true)

	p.AllowAttrs("alt").OnElements("img")
	p.AllowAttrs("title").OnElements("a", "abbr", "img")
	p.AllowAttrs("open").OnElements("details")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).
		OnElements("p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "td", "th", "img")
	p.AllowAttrs("width", "height").Matching(regexp.MustCompile(`^[0-9]{1,4}%?$`)).OnElements("img")
	p.AllowAttrs("colspan", "rowspan").Matching(regexp.MustCompile(`^[0-9]{1,2}$`)).OnElements("td", "th")
	return p
}
