package pages

import (
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
)

// newestFirst is the value of the parameter sort for a list by the date of the latest version.
// Without it, a list is by address.
const newestFirst = "newest"

// ordered returns entries in the order that the query asks for. They are by address already.
func (q query) ordered(all []handlers.Listed) []handlers.Listed {
	if q.sort != newestFirst {
		return all
	}
	all = slices.Clone(all) // the list is shared
	slices.SortStableFunc(all, func(a, b handlers.Listed) int { return b.Published.Compare(a.Published) })
	return all
}

// orders returns the orders of a list of that many entries: none if there is nothing to order.
func (v *visit) orders(entries int) []choice {
	if entries < 2 {
		return nil
	}
	q := v.query
	q.sort, q.offset = "", 0
	byName := choice{Text: "By name", URL: v.listURL(v.route, q), Current: v.query.sort == ""}
	q.sort = newestFirst
	return []choice{byName, {Text: "Newest first", URL: v.listURL(v.route, q), Current: !byName.Current}}
}
