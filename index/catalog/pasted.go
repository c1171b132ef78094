package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// People paste what they have before them: blocks and lines of configuration, addresses of resources, and
// messages of clients. Of these, only the names count that a registry can know.

// assignment is the beginning of a line of configuration.
var assignment = regexp.MustCompile(`^(?i:source)\s*=\s*`)

// sourced is the source in several lines of configuration, such as those of a block.
var sourced = regexp.MustCompile(`(?s)^(?:.*[\s{])?source\s*=\s*"([^"]+)"`)

// declared is the first line of a resource, with its type, or what messages say of one.
var declared = regexp.MustCompile(`\b(resource|data|ephemeral|resource type|data source)\s+"([a-z][\w-]*)"`)

// typed is the type of resources in the address of a resource, as configurations and clients write
// it, with the calls of modules that it is in.
var typed = regexp.MustCompile(`^(?:module\.[\w-]+\.)*(?:(data|ephemeral|resource)\.(\w+)(?:\..*)?|([a-z]\w*_\w*)\.[\w-]+(?:\..*)?)$`)

// providerFunction is the name of a function in a call of it.
var providerFunction = regexp.MustCompile(`\bprovider::[\w-]+::(\w+)`)

// instanceKey is the key of one instance of a resource or module.
var instanceKey = regexp.MustCompile(`\b\[(?:\d+|"[^"]*")\]`)

// output is the output of a module in an expression, or the module alone.
var output = regexp.MustCompile(`^(?:module\.[\w-]+\.)*module\.([\w-]+)(?:\.(\w+)(?:\..*)?)?$`)

// variable is an input of a module in an expression, or a provider as configurations refer to it.
var variable = regexp.MustCompile(`^(?:var|provider)\.([\w-]+)(?:\..*)?$`)

// fileName is the end of a name that is no address.
var fileName = regexp.MustCompile(`\.(?:tf|tofu|tfvars|tfstate|json|hcl|ya?ml|zip|gz|md)(?:[:,]\d*)*$`)

// referred is an address or a URL in a text: after words that clients write before one, or with a
// hostname.
var referred = regexp.MustCompile(`(https?://[^\s"'<>]+)|` +
	`(?i:\b(?:provider|module|finding|installing|installed|using|downloading|named|version of)(?:[\s"\[]+|::))((?:[\w-]+(?:\.[\w-]+)+(?::\d+)?/)?[\w-]+(?:/[\w-]+){1,2}(?://[\w./-]+)?)|` +
	`\b([\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/[\w-]+){2,3}(?://[\w./-]+)?)\.?(?:[^\w.-]|$)`)

// labelled is the name of a block, or a name in the message of a client.
var labelled = regexp.MustCompile(`\b(module|provider|argument|attribute|variable|output|named)\s+"([\w-]+)"`)

// besideName is what stands beside an address: a constraint on versions or a part of one, a platform, or a
// hash.
var besideName = regexp.MustCompile(`^(?:[~<>=!]+|[~<>=!^]*v?\d[\w.+*-]*,?|version|(?:darwin|freebsd|linux|netbsd|openbsd|solaris|windows)_\w+|(?:h1|zh):\S+|[0-9a-f]{64})$`)

// providerPrefix begins the names of packages and repositories of providers.
const providerPrefix = "terraform-provider-"

// repository is the name of the repository of a provider or module, or of a package of a provider.
var repository = regexp.MustCompile(`^terraform-(?:provider-([a-z0-9-]+?)(?:_v?\d.*)?|([a-z0-9]+)-([a-z0-9-]+))$`)

// maxPasted bounds how many names are taken from a text.
const maxPasted = 20

// pasted are the names in a text that say what is looked for, each kind in their order.
type pasted struct {
	types      []name   // of resources, and names of functions
	references []string // addresses, and URLs of pages
	labels     []string
}

// readPasted finds names in a text.
func readPasted(text string) (p pasted) {
	if !strings.ContainsAny(text, `"./:`) { // as most that is typed
		return p
	}
	add := func(to *[]string, name string) {
		if len(*to) < maxPasted && !slices.Contains(*to, name) {
			*to = append(*to, name)
		}
	}
	for _, match := range declared.FindAllStringSubmatch(text, maxPasted) {
		p.types = append(p.types, newType(match[1], match[2]))
	}
	for _, match := range providerFunction.FindAllStringSubmatch(text, maxPasted) {
		p.types = append(p.types, newType("", match[1]))
	}
	fields := strings.Fields(strings.NewReplacer("${", " ", "}", " ").Replace(instanceKey.ReplaceAllString(text, "")))
	for _, field := range fields {
		field = strings.Trim(field, punctuation)
		if match := typed.FindStringSubmatch(field); match != nil && len(p.types) < maxPasted && !strings.Contains(field, "/") && !fileName.MatchString(field) {
			p.types = append(p.types, newType(match[1], match[2]+match[3]))
		}
	}
	for _, match := range referred.FindAllStringSubmatch(text, maxPasted) {
		reference := match[1] + match[2] + match[3]
		if match[1] == "" || new(Reference).readPage(readLocation(reference)) { // messages have URLs of other pages
			add(&p.references, reference)
		}
	}
	for _, match := range labelled.FindAllStringSubmatch(text, maxPasted) {
		if add(&p.labels, match[2]); match[1] == "provider" {
			add(&p.labels, match[1])
		}
	}
	return p
}

// newType returns a type as the name of a word. Messages write "data source", configurations "data".
func newType(mode, typ string) name {
	n := name{text: typ, page: pageWord}
	switch {
	case strings.HasPrefix(mode, "data"):
		n.page = dataPageWord
	case mode == "ephemeral":
		n.page = ephemeralPageWord
	}
	return n
}

// names returns what is looked for, if the text has a resource, a function or a label. Of several types, as
// in a plan, the first one is meant, and of the provider in the same message its documentation.
func (p *pasted) names() (names []name) {
	if len(p.types) == 0 {
		return namesOf(p.labels...)
	}
	names = slices.Clone(p.types)
	for _, reference := range p.references {
		names = append(names, namesOf(strings.Split(reference, "/")...)...)
	}
	for i := range names {
		names[i].optional = i > 0
	}
	return names
}

// withoutAddress returns the type in the address of a resource, the name of the function in a
// call, the input or output in an expression, and other words as they are.
func withoutAddress(word string) []name {
	if !strings.Contains(word, ".") {
		return namesOf(word)
	}
	if match := output.FindStringSubmatch(word); match != nil && !typed.MatchString(word) {
		if match[2] == "" {
			return namesOf(match[1])
		}
		return []name{{text: match[1], optional: true}, {text: match[2]}} // calls may have other names
	}
	if match := typed.FindStringSubmatch(word); match != nil {
		return []name{newType(match[1], match[2]+match[3])}
	}
	if match := variable.FindStringSubmatch(word); match != nil {
		return namesOf(match[1])
	}
	return namesOf(word)
}

// nameOfRepository returns the words of the name of a provider or module, if a word is the name of its
// repository.
func nameOfRepository(word string) []string {
	if !strings.HasPrefix(word, "terraform-") {
		return nil
	}
	match := repository.FindStringSubmatch(word)
	switch {
	case match == nil:
		return nil
	case match[1] != "":
		return match[1:2]
	}
	return []string{match[3] + "-" + match[2]}
}
