package pages

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
)

// A suggestion is a result of a search while the query is still being typed.
type suggestion struct {
	Text string `json:"text"`
	Of   string `json:"of"` // what it is, and why it was found
	URL  string `json:"url"`
}

// Numbers of suggestions. A kind leaves room for the others.
const (
	maxSuggested     = 8
	maxSuggestedEach = 4
)

// suggestions answers with the first results of a search, as JSON. They are the results of
// the search page, by the same rules.
func (v *visit) suggestions() (*answer, error) {
	list := []suggestion{}
	words := v.view.ParseQuery(v.query.q)
	if !words.IsEmpty() {
		found, err := v.view.Search(words)
		if err != nil {
			return nil, err
		}
		list = v.suggest(found)
	}
	body, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return &answer{status: http.StatusOK, contentType: "application/json", body: body, tag: contentTag(body)}, nil
}

func (v *visit) suggest(found handlers.Search) []suggestion {
	list := []suggestion{}
	add := func(n int, l handlers.FoundList, of func(i int) suggestion) {
		for i := range min(n, l.Len(), maxSuggested-len(list)) {
			list = append(list, of(i))
		}
	}
	add(maxSuggestedEach, found.Modules, func(i int) suggestion {
		f := v.foundModule(found.Modules, i)
		of := "module"
		switch {
		case len(f.Why) > 0:
			of += ", " + string(f.Why[0].Kind) + " " + plain(f.Why[0].Text)
		case len(f.Inner) > 0:
			of += ", " + plain(f.Inner[0].Name)
		}
		return suggestion{f.Name, of, f.URL}
	})
	add(maxSuggestedEach/2, found.Providers, func(i int) suggestion {
		f := v.foundProvider(found.Providers, i)
		return suggestion{f.Name, "provider", f.URL}
	})
	add(maxSuggested, found.Pages, func(i int) suggestion {
		f := v.foundDoc(found.Pages, i)
		return suggestion{plain(f.MarkedName), f.Chips[0].Label + " of " + f.Of.Text, f.URL}
	})
	return list
}

// plain returns a text without its marks.
func plain(runs []catalog.Run) string {
	var b strings.Builder
	for _, r := range runs {
		b.WriteString(r.Text)
	}
	return b.String()
}
