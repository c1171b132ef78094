package archive

import (
	"fmt"
	"path"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// Doubts are the faults of a module's package that do not keep it from being offered, in
// sentences. The server and the publish command refuse to publish a package with some of
// them. A package that lies in the tree, or comes from an origin, is offered all the same:
// its publisher is not there to correct it.
type Doubts struct {
	// Unusable are faults for which clients refuse the module: a name that they cannot unpack, and
	// files that they cannot parse.
	Unusable []string

	// Secrets are private keys, saved plans and state in the package.
	Secrets []string

	// Notes are lesser doubts.
	Notes []string
}

// All returns all doubts, the worst first.
func (d Doubts) All() (all []string) {
	return append(append(append(all, d.Unusable...), d.Secrets...), d.Notes...)
}

// packageNames are names in a package that raise doubts by themselves.
type packageNames struct {
	Values      []string `json:"values,omitempty"` // files with values of variables, the first ones
	ValuesTotal int      `json:"values_total,omitempty"`
	Deep        string   `json:"deep,omitempty"` // the first configuration, if all of it lies where no client looks
}

// DoubtsOf returns the doubts about a package that ReadModule has read.
func DoubtsOf(d Digest) Doubts { return doubtsOf(decodeFacts(d.Content), SummaryIn(d.Content)) }

// Doubts returns the doubts about the package of a folder that has been read.
func (m *ModuleFolder) Doubts(d Digest) Doubts {
	return doubtsOf(moduleFacts{packageNames: m.names}, SummaryIn(d.Content))
}

// doubtsOf returns the doubts about a package with these facts and this encoded summary.
func doubtsOf(facts moduleFacts, summary []byte) (d Doubts) {
	if facts.FileAndFolder != "" {
		d.Unusable = append(d.Unusable, fmt.Sprintf("rename %q, which is a file and a folder, so that no client can unpack the package", facts.FileAndFolder))
	}
	s, _ := moduledoc.DecodeSummary(summary)
	for _, p := range s.Refused {
		d.Unusable = append(d.Unusable, fmt.Sprintf("correct %s, which clients cannot parse: %s", p.Place(), p.Text))
	}
	if more := s.RefusedTotal - len(s.Refused); more > 0 {
		d.Unusable = append(d.Unusable, fmt.Sprintf("correct %d more files, which clients cannot parse either", more))
	}
	contains := func(names nameList) string {
		return "contains " + names.String() + ", which everyone who downloads the module gets: pack it without"
	}
	if facts.LeaksTotal > 0 {
		d.Secrets = []string{contains(nameList{facts.Leaks, facts.LeaksTotal})}
	}
	if facts.SecretsTotal > 0 {
		d.Notes = append(d.Notes, contains(nameList{facts.Secrets, facts.SecretsTotal}))
	}
	if facts.ValuesTotal > 0 {
		values := nameList{facts.Values, facts.ValuesTotal}
		d.Notes = append(d.Notes, "contains "+values.String()+", which clients do not read in a module, and in which there may be secrets: pack it without")
	}
	if facts.Deep != "" {
		d.Notes = append(d.Notes, fmt.Sprintf("has no .tf file at its root or in modules/, only deeper ones such as %s: clients find them by //%s in the source alone, so pack the module at the root", facts.Deep, path.Dir(facts.Deep)))
	}
	return d
}

// names returns the names that raise doubts, once all have been added.
func (m *moduleFinder) names() packageNames {
	n := packageNames{Values: m.values.first, ValuesTotal: m.values.total}
	if m.recorded == "" && !m.atRoot && !m.direct && !m.inModules {
		n.Deep = m.deep
	}
	return n
}

// addName notes a name if it may raise a doubt.
func (m *moduleFinder) addName(name string) {
	switch base := path.Base(name); {
	case strings.HasSuffix(base, ".tfvars"), strings.HasSuffix(base, ".tfvars.json"):
		m.values.add(name)
	case !moduledoc.IsConfiguration(name):
	case strings.HasPrefix(name, "modules/"):
		m.inModules = true
	case m.deep == "" && len(name) <= maxListedName:
		m.deep = strings.Clone(name)
	}
}
