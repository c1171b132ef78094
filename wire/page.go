package wire

import "time"

// A Page says which part of a list a document contains. The URLs are paths with a
// query. URLs and offsets of pages that do not exist are left out (checklist 111).
type Page struct {
	Limit         int    `json:"limit"`
	CurrentOffset int    `json:"current_offset"`
	NextOffset    int    `json:"next_offset,omitempty"` // never the first, so never zero
	NextURL       string `json:"next_url,omitempty"`
	PrevOffset    *int   `json:"prev_offset,omitempty"`
	PrevURL       string `json:"prev_url,omitempty"`
}

// publishedAt writes a time as the public registry does. Editors choose by it how to
// read a module's inputs, so it has to be a time at which there were modules
// (checklist 114).
func publishedAt(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// emptied returns a list that JSON writes as [] instead of null (checklist 113).
func emptied[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
