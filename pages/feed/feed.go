// Package feed writes Atom feeds (RFC 4287), by which readers and bots learn what is new.
package feed

import (
	"encoding/xml"
	"fmt"
	"time"
)

// Type is the media type of a feed.
const Type = "application/atom+xml; charset=utf-8"

// A Feed has entries, the newest first.
type Feed struct {
	ID      string // a URI that stays the same for ever
	Title   string
	Note    string // about the feed as a whole; empty: none
	Author  string
	Self    string // the URL of the feed
	About   string // the URL of the page with the same content
	Entries []Entry
}

// An Entry says what has happened.
type Entry struct {
	ID      string // a URI that stays the same for ever, and that no other entry has
	Title   string
	URL     string // of a page about it
	Updated time.Time
	Text    string // plain text
	Kind    string // a word to filter by, such as "version" or "withdrawn"
}

// MaxEntries is how many entries a feed has at most.
const MaxEntries = 50

// Encode returns the feed as a document.
func (f Feed) Encode() ([]byte, error) {
	d := document{
		ID: f.ID, Title: f.Title, Subtitle: f.Note, Author: f.Author, Updated: stamp(time.Time{}),
		Links: []link{{Rel: "self", Href: f.Self, Type: "application/atom+xml"}, {Rel: "alternate", Href: f.About, Type: "text/html"}},
	}
	for i, e := range f.Entries {
		if i == 0 {
			d.Updated = stamp(e.Updated)
		}
		d.Entries = append(d.Entries, entry{
			ID: e.ID, Title: e.Title, Updated: stamp(e.Updated), Link: link{Rel: "alternate", Href: e.URL, Type: "text/html"},
			Category: category{e.Kind}, Content: content{"text", e.Text},
		})
	}
	text, err := xml.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing a feed: %w", err)
	}
	return append([]byte(xml.Header), append(text, '\n')...), nil
}

// stamp writes a time. Readers refuse a year before 1.
func stamp(t time.Time) string {
	if t.Before(time.Unix(0, 0)) {
		t = time.Unix(0, 0)
	}
	return t.UTC().Format(time.RFC3339)
}

type document struct {
	XMLName  xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID       string   `xml:"id"`
	Title    string   `xml:"title"`
	Updated  string   `xml:"updated"`
	Subtitle string   `xml:"subtitle,omitempty"`
	Author   string   `xml:"author>name"`
	Links    []link   `xml:"link"`
	Entries  []entry  `xml:"entry"`
}

type entry struct {
	ID       string   `xml:"id"`
	Title    string   `xml:"title"`
	Updated  string   `xml:"updated"`
	Link     link     `xml:"link"`
	Category category `xml:"category"`
	Content  content  `xml:"content"`
}

type link struct {
	Rel  string `xml:"rel,attr"`
	Href string `xml:"href,attr"`
	Type string `xml:"type,attr,omitempty"`
}

type category struct {
	Term string `xml:"term,attr"`
}

type content struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}
