package docsmenu

import (
	"cmp"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
)

// titles are the titles of the categories.
var titles = map[content.DocCategory]string{
	content.DocGuides: "Guides", content.DocResources: "Resources", content.DocDataSources: "Data sources",
	content.DocEphemeralResources: "Ephemeral resources", content.DocListResources: "List resources",
	content.DocActions: "Actions", content.DocStateStores: "State stores", content.DocFunctions: "Functions",
}

// Label returns the name of a page of a provider of that type. A resource has the name that
// configurations use.
func Label(p *content.DocPage, typ string) string {
	switch p.Category {
	case content.DocOverview:
		return "Overview"
	case content.DocGuides:
		return cmp.Or(p.Title, p.Slug)
	}
	return p.Name(typ)
}

// place returns the titles of the group of a page and of its section there. A section of
// pages of one kind that are a group of their own has no title.
func place(p *content.DocPage) (group, section string) {
	kind := titles[p.Category]
	if p.Subcategory == "" || p.Category == content.DocGuides {
		return kind, ""
	}
	return p.Subcategory, kind
}
