package feed

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// An Event is something new about a module or provider: a version, or a notice about versions.
type Event struct {
	Address address.Address
	Kind    string // Published, Deprecated or Withdrawn

	// Versions are those that the event is about, the newest first.
	Versions []string

	Notice registryhcl.Notice // of a deprecation or withdrawal
	At     time.Time
}

// The kinds of events.
const (
	Published  = "version"
	Deprecated = "deprecated"
	Withdrawn  = "withdrawn"
)

// A Noticed is a version with the notice about it.
type Noticed struct {
	Version string
	Notice  registryhcl.Notice
}

// Notices returns one event for each notice, however many versions it is about. The versions
// have the newest first.
func Notices(of address.Address, kind string, at time.Time, versions []Noticed) (events []Event) {
	known := make(map[string]int)
	for _, v := range versions {
		key := v.Notice.Versions.String() + "\n" + v.Notice.String()
		i, ok := known[key]
		if !ok {
			i = len(events)
			known[key] = i
			events = append(events, Event{Address: of, Kind: kind, Notice: v.Notice, At: at})
		}
		events[i].Versions = append(events[i].Versions, v.Version)
	}
	return events
}

// Newest returns as many events as a feed has entries, the newest first.
func Newest(events []Event) []Event {
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(b.At.Compare(a.At), a.Address.Compare(b.Address), cmp.Compare(a.Kind, b.Kind))
	})
	return events[:min(len(events), MaxEntries)]
}

// Entry returns the entry of the event. The parameters are the IDs of the module or provider
// and of its newest version, and the URL of that version. A notice keeps its ID when it
// covers further versions, and another reason is news.
func (e *Event) Entry(id, versionID, url string) Entry {
	if e.Kind == Published {
		name := e.Address.String() + " " + e.Versions[0]
		return Entry{ID: versionID, Title: name, URL: url, Updated: e.At, Text: name + " can be downloaded.", Kind: e.Kind}
	}
	about, why := e.Notice.Versions.String(), e.Notice.String()
	sum := sha256.Sum256([]byte(about + "\n" + why))
	return Entry{
		ID: id + "/" + e.Kind + "/" + hex.EncodeToString(sum[:6]), Title: e.Address.String() + " " + about + " is " + e.Kind, URL: url, Updated: e.At,
		Text: cmp.Or(why, "No reason is given.") + e.versions(about), Kind: e.Kind,
	}
}

// maxNamed is how many versions the entry of a notice names.
const maxNamed = 10

// versions returns the sentence with the versions, unless the notice names the only one.
func (e *Event) versions(about string) string {
	if len(e.Versions) == 1 && e.Versions[0] == about {
		return ""
	}
	named := e.Versions[:min(len(e.Versions), maxNamed)]
	more := ""
	if n := len(e.Versions) - len(named); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return " Versions here: " + strings.Join(named, ", ") + more + "."
}
