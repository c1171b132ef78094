package pages

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/pages/accept"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// markdownType is the media type of a page as Markdown. Its tables, boxes and struck out text
// are GitHub's.
const markdownType = "text/markdown; charset=utf-8"

// prefersMarkdown reports whether a request prefers a page as Markdown.
func prefersMarkdown(h http.Header) bool {
	return accept.Prefers(strings.Join(h.Values("Accept"), ","), markdownType+"; variant=GFM", htmlType)
}

// asMarkdown returns the answer as the visit wants it: a page as Markdown, any other answer as
// it is.
func (v *visit) asMarkdown(a *answer) (*answer, error) {
	if !v.query.markdown || a.contentType != "" || len(a.body) == 0 {
		return a, nil
	}
	var text []byte
	var err error
	waiting := v.inTurn(func() { text, err = markdown.FromPage(v.request.Context(), a.body, v.markdownURL) })
	if err = cmp.Or(waiting, err); err != nil {
		return nil, err
	}
	m := *a
	m.contentType, m.body, m.zipped = markdownType, text, nil
	if m.tag != "" {
		m.tag = assets.Tag(text)
	}
	return &m, nil
}

// moved returns the answer that a page has another URL. It stays in its format.
func (v *visit) moved(to string) *answer {
	if v.query.markdown {
		to = v.markdownURL(to)
	}
	return &answer{status: http.StatusPermanentRedirect, location: to}
}

// markdownURL returns the URL of a page as Markdown, and any other URL as it is.
func (v *visit) markdownURL(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return to
	}
	below, ok := strings.CutPrefix(u.EscapedPath(), v.site.Path)
	if !ok || !strings.HasPrefix(to, "/") {
		return to
	}
	if rt, ok := route.Parse(below); !ok || !rt.IsPage() {
		return to
	}
	u.Fragment, u.RawFragment = "", ""
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "format=md"
	return u.String()
}
