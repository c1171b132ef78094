package catalog

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// openTofuSearch has the pages of OpenTofu's registry.
const openTofuSearch = "search.opentofu.org"

// ParseSource reads the address of a provider or module in a configuration, which has that
// many names. An address without a hostname stands for one in each public registry. There is
// none if the source is no such address.
func ParseSource(source string, names int) (all []address.Address) {
	l := readLocation(source)
	if l.isURL || strings.ContainsAny(source, "?#%") {
		return nil
	}
	a, err := l.address()
	switch {
	case err != nil || a.IsModule() != (names == 3):
		return nil
	case a.Hostname != "":
		return []address.Address{a}
	}
	return []address.Address{a.WithHostname(address.TerraformHost), a.WithHostname(address.OpenTofuHost)}
}

// A Reference names a module or a provider, or a page of a provider's documentation.
type Reference struct {
	// Address has the hostname of the text, unless the text has no hostname or names the
	// registry itself.
	Address address.Address
	Own     bool // the text has a hostname of the registry itself

	Part     string // the folder of a submodule or an example; may be empty
	Category string // of a page of documentation, as in URLs; may be empty
	Slug     string // of that page
}

// String returns the reference. References to the same are equal.
func (r *Reference) String() string {
	return fmt.Sprintf("%v %s//%s//%s/%s", r.Own, r.Address, r.Part, r.Category, r.Slug)
}

// readReference reads an address, a source or a URL, and returns the names in it to look for.
// ok is false if the text is none of them.
func (q *Query) readReference(text string, own []svchost.Hostname) (names []string, ok bool) {
	if !strings.Contains(text, "/") || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return nil, false
	}
	l := readLocation(text)
	r := Reference{Part: l.part, Own: l.hostname != "" && slices.Contains(own, l.hostname)}
	if !r.Own {
		l = l.withoutFile()
	}
	isPage := r.readPage(l)
	switch {
	case isPage:
	case l.isURL: // of a repository
		return l.path, true
	default:
		var err error
		if r.Address, err = l.withoutVersion().address(); err != nil {
			return l.path, r.Own || l.isRepository()
		}
	}
	if r.Own && r.Address.Hostname == l.hostname {
		r.Address = r.Address.WithHostname("")
	}
	q.Named = &r
	a := r.Address
	if !a.IsModule() && r.Slug == "" {
		q.source = fold(a.String())
	}
	names = slices.DeleteFunc([]string{a.Namespace, a.Name, a.System, r.Slug}, func(s string) bool { return s == "" })
	if a.Hostname != "" && !isPage {
		names = slices.Insert(names, 0, string(a.Hostname)) // searches find hostnames, too
	}
	return names, true
}

// A location is a source or a URL in its parts.
type location struct {
	isURL    bool
	hostname svchost.Hostname // empty if there is none
	path     []string         // without empty segments
	part     string           // the folder after two slashes; may be empty
}

// sshAddress is the location of a repository as git clone takes it.
var sshAddress = regexp.MustCompile(`^[\w.-]+@([^:/]+):(.*)$`)

// readLocation reads a source or a URL.
func readLocation(text string) (l location) {
	text = strings.TrimPrefix(text, "git::")
	if source, ok := strings.CutPrefix(text, "tfr://"); ok { // of Terragrunt
		text = strings.TrimPrefix(source, "/")
	}
	if match := sshAddress.FindStringSubmatch(text); match != nil {
		text = "ssh://" + match[1] + "/" + match[2]
	}
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text, l.isURL = rest, true
	}
	text, _, _ = strings.Cut(text, "#")
	text, _, _ = strings.Cut(text, "?")
	text, l.part, _ = strings.Cut(text, "//")
	l.part = strings.Trim(l.part, "/")
	for segment := range strings.SplitSeq(text, "/") {
		// An escaped NUL or slash in a name is no text that people look for.
		if decoded, err := url.PathUnescape(segment); err == nil && isText(decoded) && !strings.Contains(decoded, "/") {
			segment = decoded
		}
		if segment != "" {
			l.path = append(l.path, segment)
		}
	}
	if n := len(l.path); l.isURL && n > 0 || n > 1 && address.IsHostname(l.path[0]) {
		host := l.path[0]
		host = host[strings.LastIndexByte(host, '@')+1:]
		h, err := address.ParseHostname(host)
		if err == nil {
			l.hostname = h
		}
		if err == nil || l.isURL {
			l.path = l.path[1:]
		}
	}
	if last := len(l.path) - 1; last >= 0 && l.isURL {
		l.path[last] = strings.TrimSuffix(l.path[last], ".git")
	}
	return l
}

// withoutFile cuts off what hosts of repositories add to the URL of one: the ending of Git, or the
// commit and a file. Pages of registries have other names in this place.
func (l location) withoutFile() location {
	if !l.isRepository() {
		return l
	}
	page := l.pageAt()
	l.path = slices.Clone(l.path)
	for i := 2; i+1 < len(l.path); i++ {
		if l.path[i] == "-" || i < page && l.beginsFile(i) {
			l.path = l.path[:i]
			break
		}
	}
	last := len(l.path) - 1
	l.path[last] = strings.TrimSuffix(l.path[last], ".git")
	return l
}

// beginsFile reports whether hosts of repositories have a commit and a file after the segment: GitHub
// after "tree", "blob" and "releases", Bitbucket and Forgejo after "src".
func (l location) beginsFile(i int) bool {
	return i < len(l.path) && (slices.Contains([]string{"tree", "blob", "releases"}, l.path[i]) || l.path[i] == "src" && i == 2)
}

// pageAt returns where the path of a page of a registry begins: at the end of the location if it is
// the location of no page, but of a repository that is called "modules", for example.
func (l location) pageAt() int {
	if !new(Reference).readPage(l) {
		return len(l.path)
	}
	at := max(0, slices.IndexFunc(l.path, isKind))
	if at > 0 && l.beginsFile(at+1) {
		return len(l.path)
	}
	return at
}

// isKind reports whether a segment of the path of a page says that an address follows.
func isKind(segment string) bool { return segment == "modules" || segment == "providers" }

// isRepository reports whether the location may be of a repository, with or without a scheme. One
// name after the hostname is more likely a namespace of a mirrored registry.
func (l location) isRepository() bool { return l.hostname != "" && len(l.path) > 1 }

// withoutVersion returns the location without the version after an address, as in ids of the
// registry's API.
func (l location) withoutVersion() location {
	last := len(l.path) - 1
	if last >= 2 && isVersion(l.path[last]) {
		l.path = l.path[:last]
	}
	if last = len(l.path) - 1; last >= 1 {
		if name, version, ok := strings.Cut(l.path[last], "@"); ok && isVersion(version) {
			l.path = append(slices.Clone(l.path[:last]), name)
		}
	}
	return l
}

// isVersion reports whether a text is a version of a provider or module.
func isVersion(s string) bool {
	_, err := address.ParseProviderVersion(strings.TrimPrefix(s, "v"))
	return err == nil
}

// address returns the address of a provider or module that the location is.
func (l location) address() (address.Address, error) {
	a, err := address.Parse(strings.Join(l.path, "/"))
	return a.WithHostname(l.hostname), err
}

// readPage reads the URL of a page or of the protocols, and reports whether the location has
// that form.
func (r *Reference) readPage(l location) bool {
	if l.hostname == openTofuSearch && len(l.path) > 0 && (l.path[0] == "module" || l.path[0] == "provider") {
		l.hostname, l.path = address.OpenTofuHost, slices.Concat([]string{l.path[0] + "s"}, l.path[1:])
	}
	at := slices.IndexFunc(l.path, isKind)
	if at < 0 || at > 0 && l.hostname == "" && !l.isURL {
		return false
	}
	hostname := l.hostname
	if at >= 2 && l.path[at-2] == "registries" {
		h, err := address.ParseHostname(l.path[at-1])
		if err != nil {
			return false
		}
		hostname, r.Own = h, false
	}
	names, rest := 2, l.path[at+1:]
	if l.path[at] == "modules" {
		names = 3
	}
	if len(rest) < names {
		return false
	}
	var err error
	if names == 3 {
		r.Address, err = address.ParseModule("", rest[0], rest[1], rest[2])
	} else {
		r.Address, err = address.ParseProvider("", rest[0], rest[1])
	}
	if err != nil {
		return false
	}
	r.Address = r.Address.WithHostname(hostname)
	if rest = rest[names:]; len(rest) < 3 { // the version, and a part of it
		return true
	}
	switch rest[1] {
	case "submodules", "submodule":
		r.Part = "modules/" + strings.Join(rest[2:], "/")
	case "examples", "example":
		r.Part = "examples/" + strings.Join(rest[2:], "/")
	case "docs":
		if r.Category = rest[2]; len(rest) > 3 {
			r.Slug = rest[3]
		}
	}
	return true
}
