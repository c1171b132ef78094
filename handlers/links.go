package handlers

import (
	"net/url"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// links say how a document writes the names of files. The prefix comes before each
// name. If the files are private, the query of a signed link to the file with that name
// in folder comes after it. The tag is the part of the document's validator that prefix
// adds to Registry.tag.
type links struct{ prefix, folder, tag string }

// hostedSegment stands for the HOSTNAME in the path of a hosted provider's files. It
// can be no hostname, since no label begins or ends with a hyphen. It can be no folder
// of a tree either, since a HOSTNAME has a dot or a colon in it or is localhost.
const hostedSegment = "-"

// filePath returns the path of a provider's file, or of the package of a module's
// version, with before in front of it. Below the registry's prefix the path is the place
// in the tree, which is the same under all names of the registry. Links are signed for it.
// The parts of a provider's path are escaped, as in documents: its address and files may
// have letters that are not ASCII (checklist 24). Modules have none.
//
//	/mirror/HOSTNAME/NAMESPACE/TYPE/FILE
//	/mirror/-/NAMESPACE/TYPE/FILE
//	/modules/HOSTNAME/NAMESPACE/NAME/SYSTEM/VERSION/FILE
//	/modules/NAMESPACE/NAME/SYSTEM/VERSION/FILE
func filePath(before string, a address.Address, version, file string) string {
	host := string(a.Hostname)
	if a.IsModule() {
		if host != "" {
			host += "/"
		}
		return before + "/modules/" + host + a.Namespace + "/" + a.Name + "/" + a.System + "/" + version + "/" + file
	}
	if host == "" {
		host = hostedSegment
	}
	return before + "/mirror/" + host + "/" + url.PathEscape(a.Namespace) + "/" + url.PathEscape(a.Name) + "/" + url.PathEscape(file)
}

// downloadLinks returns the links of a download document to the files of the provider
// a, by their place in the tree.
func (g *Registry) downloadLinks(r *request, a address.Address) links {
	base := g.baseFor(r)
	prefix := filePath(base+g.prefix, a, "", "")
	return links{prefix: prefix, folder: prefix[len(base)+len(g.prefix):], tag: g.tagOf(base) + r.target.placeTag(a)}
}

// archiveLinks returns the links of VERSION.json to the files of the provider a, by
// their place in the tree. They are relative to the document, unless there is a public
// URL.
func (g *Registry) archiveLinks(r *request, a address.Address) (l links) {
	switch {
	case g.PublicURL != "":
		l.prefix = filePath(g.base, a, "", "")
		l.folder = l.prefix[len(g.base):]
	case r.target.private:
		l.folder = filePath("", a, "", "")
	default:
		return links{}
	}
	l.tag = r.target.placeTag(a)
	return l
}

// placeTag returns the part that the place of a release adds to the validators of documents
// with links to it: the release may move to another folder of the target. The releases of a
// target that is not merged are all at one place.
func (t *target) placeTag(a address.Address) string {
	if !t.place.Merged || a.Hostname == "" {
		return ""
	}
	return "-" + string(a.Hostname)
}

// baseFor returns the part before the registry's prefix of URLs that should be absolute
// where possible (checklist 38, 87).
func (g *Registry) baseFor(r *request) string {
	if g.PublicURL != "" || g.BaseURL == nil {
		return g.PublicURL
	}
	return g.BaseURL(r.Request)
}

// A requestedBase is a result of BaseURL, with the tag that it adds to validators.
type requestedBase struct{ base, tag string }

// tagOf returns the part that a base adds to validators beside Registry.tag. It
// remembers the last base, since most sites are reached by one name.
func (g *Registry) tagOf(base string) string {
	if base == g.PublicURL {
		return ""
	}
	last := g.requested.Load()
	if last == nil || last.base != base {
		last = &requestedBase{base, "-" + shortHash(base)}
		g.requested.Store(last)
	}
	return last.tag
}
