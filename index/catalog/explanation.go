package catalog

import (
	"iter"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
)

// A ReasonKind says where a word was found, if not in the name or in the description.
type ReasonKind string

// The kinds of reasons.
const (
	Creates  ReasonKind = "creates" // a type of resources
	Reads    ReasonKind = "reads"   // a type of data sources
	Opens    ReasonKind = "opens"   // a type of ephemeral resources
	Requires ReasonKind = "requires"
	Input    ReasonKind = "input"
	Output   ReasonKind = "output"
	Readme   ReasonKind = "README"
	Named    ReasonKind = "name" // of a page of documentation
)

// A Reason says by what else an entry was found.
type Reason struct {
	Kind ReasonKind
	Text []Run
}

// An Explanation says why an entry was found.
type Explanation struct {
	// Description has the description with the words that were found, and Reasons what else
	// was found.
	Description []Run
	Reasons     []Reason

	// Parts are the submodules that were found, unless the name of the module was.
	Parts []PartExplanation
}

// A PartExplanation says why a submodule was found.
type PartExplanation struct {
	Path              string // "modules/subnets"
	Name, Description []Run
	Reasons           []Reason
}

// maxReasons is how many reasons are given.
const maxReasons = 3

// Explain says why a query has found an entry.
func (q Query) Explain(e *Entry) Explanation {
	var x Explanation
	own := q.newFinding()
	for _, name := range e.names() {
		own.look(name, anywhere)
	}
	named := own.all()
	x.Description = own.mark(e.Description, atWords)
	if e.summary == nil || named && q.source == "" {
		return x // a provider has no other reasons; names are reason enough
	}
	own.look(e.Owner+" "+e.Source, atWords)
	t := e.text()
	x.Reasons = own.reasons(t.codes, t.further)
	if named || own.source {
		return x // that the module is called so, or itself requires the provider, is reason enough
	}
	for i := range t.submodules {
		s := &t.submodules[i]
		part := q.newFinding()
		p := PartExplanation{Path: s.path, Name: part.markPath(s), Description: part.mark(s.description, atWords)}
		p.Reasons = part.reasons(s.codes, "")
		if part.any() && (part.with(own).all() || part.source) {
			x.Parts = append(x.Parts, p)
		}
	}
	return x
}

// ExplainPage returns the name and the title of a page of a provider's documentation, with the
// words that were found.
func (q Query) ExplainPage(t *content.DocTitle, typ string) (name, title []Run) {
	f := q.newFinding()
	return f.mark(t.Name(typ), atWords), f.mark(t.Title, atWords)
}

// MarkName returns a name with the words that were found anywhere in it.
func (q Query) MarkName(name string) []Run {
	f := q.newFinding()
	return f.mark(name, anywhere)
}

// reasons finds the words that have not been found yet among codes, and then among the words
// of a README.
func (f *finding) reasons(codes iter.Seq[code], readme string) (reasons []Reason) {
	if source := f.query.source; source != "" {
		for c := range codes {
			if full := fullSource(fold(c.text)); c.kind == Requires && (full == source || strings.HasSuffix(full, "/"+source)) {
				f.source = true
				return []Reason{{Requires, []Run{{c.text, true}}}}
			}
		}
	}
	for i := range f.found {
		if f.found[i] || len(reasons) == maxReasons {
			continue
		}
		if best := bestCode(&f.query.words[i], codes); best.text != "" {
			reasons = append(reasons, Reason{best.kind, f.mark(best.text, atWords)})
			continue
		}
		for text := range strings.FieldsSeq(readme) {
			if findWord(&f.query.words[i], fold(text), atWords) != nil {
				reasons = append(reasons, Reason{Readme, f.mark(text, atWords)})
				break
			}
		}
	}
	return reasons
}

// bestCode returns the first code that is the word, else the first that begins with it, else
// the first that has it. It returns the zero code if the word is in none.
func bestCode(w *word, codes iter.Seq[code]) (best code) {
	least := 3
	for c := range codes {
		folded := fold(c.text)
		found := findWord(w, folded, atWords)
		if found == nil {
			continue
		}
		how := 2
		if found[0].from == 0 {
			if how = 1; found[0].to == len(folded) {
				how = 0
			}
		}
		if how < least {
			best, least = c, how
		}
	}
	return best
}
