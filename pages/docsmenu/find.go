package docsmenu

import (
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
)

// Find returns the pages of a group, or of all groups if it has no title, that have all words
// of a text in their name, title or description. Pages with all of them in the name come
// first.
func Find(d *content.Docs, typ, group, words string) []*content.DocPage {
	var named, others []*content.DocPage
	wanted := strings.Fields(strings.ToLower(words))
	hasAll := func(text string) bool {
		text = strings.ToLower(text)
		for _, word := range wanted {
			if !strings.Contains(text, word) {
				return false
			}
		}
		return true
	}
	for i := range d.Pages {
		p := &d.Pages[i]
		if of, _ := place(p); group != "" && of != group {
			continue
		}
		name := Label(p, typ)
		switch {
		case hasAll(name):
			named = append(named, p)
		case hasAll(name + "\n" + p.Title + "\n" + p.Description):
			others = append(others, p)
		}
	}
	return append(named, others...)
}
