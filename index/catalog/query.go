package catalog

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Bounds of a query, beyond which nothing is looked for.
const (
	maxQuery      = 300 // bytes
	maxQueryWords = 8
)

// A Query has the words of a search, which all must be found. The zero Query has none.
type Query struct {
	words  []word
	source string // two names with a slash: a provider that modules may require; may be empty

	// Named is what the query names if it is an address, a source or a URL; nil otherwise.
	Named *Reference
}

// A word is a word of a query, folded and not empty.
type word struct {
	text   string
	parts  []string // see partsOf
	others []word   // words in its place that are as good but for one rank
	typo   bool     // words that differ in one character are found, too
}

func newWord(text string) word { return word{text: text, parts: partsOf(text)} }

// A Reference names a module or a provider, or a page of a provider's documentation.
type Reference struct {
	// Hostname is the registry in the text. It is empty for an address without one, and
	// for the registry's own.
	Hostname svchost.Hostname
	Own      bool // the text has a hostname of the registry itself

	// Names are the names of a provider or of a module.
	Names []string

	Part     string // the folder of a submodule or an example; may be empty
	Category string // of a page of documentation, as in URLs; may be empty
	Slug     string // of that page
}

// Address returns the address of the module or provider.
func (r *Reference) Address() (a address.Address, err error) {
	if len(r.Names) == 3 {
		a, err = address.ParseModule("", r.Names[0], r.Names[1], r.Names[2])
	} else {
		a, err = address.ParseProvider("", r.Names[0], r.Names[1])
	}
	return a.At(r.Hostname), err
}

// assignment is the beginning of a line of configuration.
var assignment = regexp.MustCompile(`^(?i:source)\s*=\s*`)

// ParseQuery reads a query as people and tools write it, or paste it: words, an address, the
// source of a module or provider as configuration has it, or the URL of a page. Quotes that
// tools put around a query are not part of it (checklist 112). own are hostnames of the
// registry, which say nothing about what is looked for.
func ParseQuery(text string, own ...svchost.Hostname) Query {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	text = strings.TrimSpace(strings.ToValidUTF8(text, ""))
	text = unquoted(assignment.ReplaceAllString(unquoted(text), ""))
	var q Query
	names, isReference := q.readReference(text, own)
	if !isReference {
		names = strings.FieldsFunc(text, func(r rune) bool {
			return r == '/' || unicode.IsSpace(r) || unicode.IsControl(r)
		})
	}
	for _, name := range names {
		if folded := fold(strings.ToLower(name)); folded != "" && len(q.words) < maxQueryWords {
			w := newWord(folded)
			for _, other := range withoutPlural(folded) {
				w.others = append(w.others, newWord(other))
			}
			q.words = append(q.words, w)
		}
	}
	return q
}

// isText reports whether a text may have come from a keyboard. A NUL never reaches the index
// of names, which puts one between them.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }

func unquoted(s string) string {
	for _, quote := range []string{"'", `"`} {
		if rest, ok := strings.CutPrefix(s, quote); ok {
			return strings.TrimSpace(strings.TrimSuffix(rest, quote))
		}
	}
	return s
}

// readReference reads an address, a source or a URL, and returns the names in it to look for.
// ok is false if the text is none of them.
func (q *Query) readReference(text string, own []svchost.Hostname) (names []string, ok bool) {
	if !strings.Contains(text, "/") || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return nil, false
	}
	text = strings.TrimPrefix(text, "git::")
	scheme, rest, isURL := strings.Cut(text, "://")
	if isURL {
		if text = rest; len(scheme) > 6 {
			return nil, false
		}
	}
	text, _, _ = strings.Cut(text, "#")
	text, _, _ = strings.Cut(text, "?")
	text, part, _ := strings.Cut(text, "//")
	segments := slices.DeleteFunc(strings.Split(text, "/"), func(s string) bool { return s == "" })
	for i, s := range segments {
		if decoded, err := url.PathUnescape(s); err == nil && isText(decoded) {
			segments[i] = decoded
		}
	}
	if len(segments) == 0 {
		return nil, false
	}
	r := Reference{Part: strings.Trim(part, "/")}
	if isURL || len(segments) > 1 && address.IsHostname(segments[0]) {
		if h, err := address.ParseHostname(segments[0]); err == nil {
			r.Own = slices.Contains(own, h)
			r.Hostname = h
		}
		segments = segments[1:]
	}
	host := r.Hostname
	if r.Own {
		r.Hostname = ""
	}
	if at := slices.IndexFunc(segments, func(s string) bool { return s == "modules" || s == "providers" }); at >= 0 && (isURL || host != "" || at == 0) && r.readPage(segments[:at], segments[at:]) {
		q.Named = &r
		if r.Slug != "" {
			return append(slices.Clone(r.Names), r.Slug), true
		}
		return r.Names, true
	}
	names = segments
	if last := len(names) - 1; last >= 0 {
		names[last] = strings.TrimSuffix(names[last], ".git")
	}
	if len(segments) != 2 && len(segments) != 3 {
		return names, isURL || r.Own
	}
	r.Names = slices.Clone(segments)
	if !isURL {
		q.Named = &r
		if len(segments) == 2 && host == "" {
			q.source = fold(segments[0] + "/" + segments[1])
		}
		if r.Hostname != "" {
			names = append([]string{string(r.Hostname)}, names...) // it is found by it, too
		}
	}
	return names, true
}

// readPage reads the path of a page, or of the protocols: what comes before modules or
// providers, and the rest.
func (r *Reference) readPage(before, path []string) bool {
	if n := len(before); n >= 2 && before[n-2] == "registries" {
		h, err := address.ParseHostname(before[n-1])
		if err != nil {
			return false
		}
		r.Hostname, r.Own = h, false
	}
	count := 2
	if path[0] == "modules" {
		count = 3
	}
	if len(path) <= count {
		return false
	}
	r.Names = path[1 : count+1]
	rest := path[count+1:] // the version
	if len(rest) < 3 {
		return true
	}
	switch rest[1] {
	case "submodules":
		r.Part = "modules/" + strings.Join(rest[2:], "/")
	case "examples":
		r.Part = "examples/" + strings.Join(rest[2:], "/")
	case "docs":
		if r.Category = rest[2]; len(rest) > 3 {
			r.Slug = rest[3]
		}
	}
	return true
}

// Loosen returns a query that finds similar words, too: without an ending, and with one
// character that is not the same. It does not depend on what there is to be found.
func (q Query) Loosen() Query {
	q.words = slices.Clone(q.words)
	for i := range q.words {
		w := &q.words[i]
		w.others = slices.Clone(w.others)
		for _, other := range withoutEnding(w.text) {
			w.others = append(w.others, newWord(other))
		}
		w.typo = len(w.text) >= leastTypo && len(w.parts) == 1
	}
	return q
}

// leastTypo is the length of a word that may have a typo. Short words would be others.
const leastTypo = 4

// IsEmpty reports whether the query has no words.
func (q Query) IsEmpty() bool { return len(q.words) == 0 }

// String returns what the query looks for. Queries that look for the same are equal.
func (q Query) String() string {
	var b strings.Builder
	for _, w := range q.words {
		b.WriteString(w.text + " ")
	}
	if r := q.Named; r != nil {
		b.WriteString(strings.Join([]string{"", strconv.FormatBool(r.Own), string(r.Hostname), strings.Join(r.Names, "/"), r.Part, r.Category, r.Slug}, "\x00"))
	}
	return b.String()
}
