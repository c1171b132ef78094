package markdown

import (
	"regexp"

	"github.com/microcosm-cc/bluemonday"
)

// sanitisers decide which HTML a text may add to a page. They remove everything that is
// not listed here: above all scripts, event handlers, styles, forms, frames, and URLs
// with other schemes.
type sanitisers struct {
	// raw is for the HTML in a text, piece by piece.
	raw *bluemonday.Policy

	// final is for a whole rendered text. It also allows the classes, ids and
	// descriptions for screen readers that rendering adds.
	final *bluemonday.Policy
}

func newSanitisers() sanitisers {
	raw := allowedText()
	raw.AllowAttrs("id").Matching(regexp.MustCompile(`^\S+$`)).Globally()
	raw.AllowAttrs("name").Matching(regexp.MustCompile(`^\S+$`)).OnElements("a")

	final := allowedText()
	final.AllowAttrs("id").Matching(regexp.MustCompile(`^(readme|doc|notes)-\S+$`)).Globally()
	final.AllowAttrs("class").Matching(regexp.MustCompile(`^([a-z][a-z0-9]{0,2}|task|task done)$`)).OnElements("span")
	final.AllowAttrs("class").Matching(regexp.MustCompile(`^(scroll|footnotes|callout (note|tip|caution|warning))$`)).OnElements("div")
	final.AllowAttrs("class").Matching(regexp.MustCompile(`^callout-title$`)).OnElements("p")
	final.AllowAttrs("class").Matching(regexp.MustCompile(`^task-item$`)).OnElements("li")
	final.AllowAttrs("class").Matching(regexp.MustCompile(`^language-` + languageName + `$`)).OnElements("code")
	final.AllowAttrs("class").Matching(regexp.MustCompile(`^anchor$`)).OnElements("a")
	final.AllowAttrs("rel").Matching(regexp.MustCompile(`^` + externalLink + `$`)).OnElements("a")
	final.AllowAttrs("aria-hidden").Matching(regexp.MustCompile(`^true$`)).OnElements("a")
	final.AllowAttrs("aria-label").OnElements("span")
	final.AllowAttrs("role").Matching(regexp.MustCompile(`^(note|img)$`)).OnElements("div", "span")
	final.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^(0|-1)$`)).OnElements("a", "div", "pre")
	final.AllowAttrs("loading").Matching(regexp.MustCompile(`^lazy$`)).OnElements("img")
	return sanitisers{raw, final}
}

// languageName is how the name of a language looks.
const languageName = `[A-Za-z0-9][A-Za-z0-9+#.-]{0,29}`

// externalLink is the rel of links to other sites.
const externalLink = "nofollow noopener noreferrer"

// allowedText allows the elements that both policies have in common: text, lists,
// tables, links and images.
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
	p.AllowAttrs("dir").Matching(regexp.MustCompile(`^(ltr|rtl|auto)$`)).Globally()
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).
		OnElements("p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "td", "th", "img")
	p.AllowAttrs("width", "height").Matching(regexp.MustCompile(`^[0-9]{1,4}%?$`)).OnElements("img")
	p.AllowAttrs("colspan", "rowspan").Matching(regexp.MustCompile(`^[0-9]{1,2}$`)).OnElements("td", "th")
	return p
}
