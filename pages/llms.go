package pages

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// maxLLMs is how many modules, and how many providers, llms.txt lists. The rest is in the
// lists that it leads to.
const maxLLMs = 1000

// llms answers with the list of all pages that the visitor sees, in the form of llmstxt.org,
// for agents and editors.
func (v *visit) llms() (*answer, error) {
	modules, providers, err := v.visibleEntries()
	if err != nil {
		return nil, err
	}
	site := v.site.identity(v.view.Hostname())
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n> A Terraform and OpenTofu registry. Clients use it as %s.\n\n", site.Name, site.Hostname)
	b.WriteString("Each page is also available as Markdown: add `format=md` to its query, or send `Accept: text/markdown`.\n")
	if v.view.Unread(nil) != nil {
		b.WriteString("\nSomething cannot be read at the moment, and is missing here.\n")
	}
	v.llmsSection(&b, "Modules", "modules", modules)
	v.llmsSection(&b, "Providers", "providers", providers)
	fmt.Fprintf(&b, "\n## More\n\n- [Search](%s/search?format=md&q=): put words, a resource type or a source at the end of the query\n", v.site.Path)
	if v.view.SeesLog() {
		fmt.Fprintf(&b, "- [Transparency log](%s): what was offered since when, and how to verify it\n", v.markdownURL(v.url(route.Route{Kind: route.Log})))
	}
	fmt.Fprintf(&b, "- [How to use this registry](%s/?format=md)\n- [What is new](%s/feed.atom)\n", v.site.Path, v.site.Path)
	body := []byte(b.String())
	return v.orSignIn(&answer{status: http.StatusOK, contentType: "text/plain; charset=utf-8", body: body, tag: assets.Tag(body)}, nil)
}

func (v *visit) llmsSection(b *strings.Builder, title, kind string, list []handlers.Listed) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, l := range list[:min(len(list), maxLLMs)] {
		fmt.Fprintf(b, "- [%s](%s)", l.Address, v.markdownURL(v.url(route.ForAddress(l.Address))))
		if l.Description != "" {
			fmt.Fprintf(b, ": %s", oneLine(l.Description))
		}
		b.WriteByte('\n')
	}
	if len(list) > maxLLMs {
		fmt.Fprintf(b, "- [All %d %s](%s)\n", len(list), kind, v.markdownURL(v.site.Path+"/browse/"+kind))
	}
}

// oneLine returns a text that begins no other line, link or element.
func oneLine(s string) string {
	return strings.NewReplacer("[", "\\[", "]", "\\]", "<", "&lt;").Replace(strings.Join(strings.Fields(s), " "))
}
