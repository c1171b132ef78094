package catalog

import (
	"slices"
	"strings"
)

// An entryKind is the kind of entries that a word of a query asks for.
type entryKind uint8

const (
	anyKind entryKind = iota
	moduleKind
	providerKind
)

// kindsByWord are words that say what is looked for, and that the texts of all of these may lack.
var kindsByWord = map[string]entryKind{"module": moduleKind, "modules": moduleKind, "provider": providerKind, "providers": providerKind}

// stopWords are in sentences, and say nothing about what is looked for.
var stopWords = []string{
	"a", "an", "and", "by", "create", "creates", "creating", "do", "for", "from", "how", "i", "in", "is",
	"need", "of", "on", "or", "terraform", "opentofu", "that", "the", "to", "use", "using", "which", "with",
}

// withoutStopWords leaves out words that say nothing beside others.
func withoutStopWords(names []name) []name {
	isStopWord := func(n name) bool { return slices.Contains(stopWords, strings.ToLower(n.text)) }
	if left := slices.DeleteFunc(slices.Clone(names), isStopWord); len(left) > 0 {
		return left
	}
	return names
}

// abbreviations are groups of words that stand for the same. The table has what is said in names and
// texts as often as the whole word, and has only one meaning.
var abbreviations = [][]string{
	{"k8s", "kubernetes"},
	{"pg", "postgres", "postgresql"},
	{"db", "database"},
	{"gcp", "google"},
	{"gh", "github"},
	{"lb", "load-balancer"},
	{"sg", "security-group"},
	{"nsg", "network-security-group"},
	{"vm", "virtual-machine"},
	{"vnet", "virtual-network"},
	{"rg", "resource-group"},
	{"tgw", "transit-gateway"},
	{"asg", "autoscaling-group"},
	{"apigw", "api-gateway"},
	{"azure", "azurerm"},
	{"aad", "azuread", "active-directory"},
	{"r53", "route53"},
	{"env", "environment"},
	{"repo", "repository"},
	{"cert", "certificate"},
}

// sameAs returns the words that stand for the same as a word.
func sameAs(word string) (others []string) {
	for _, group := range abbreviations {
		if slices.Contains(group, word) {
			for _, other := range group {
				if other != word {
					others = append(others, other)
				}
			}
		}
	}
	return others
}
