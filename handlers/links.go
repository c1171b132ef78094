package handlers

import (
	"net/url"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// links say how the names of files in a document are written: prefix comes before
// each. Where the files are private, the query of a signed link to the file of
// that name in folder comes after it. The tag is what prefix adds to the
// document's validator beside Registry.tag.
type links struct{ prefix, folder, tag string }

// hostedSegment stands for the HOSTNAME in the path of a hosted provider's files.
// No hostname looks like it, since no label begins or ends with a hyphen, and no
// folder of a tree is taken for it, since a HOSTNAME has a dot or a colon in it or
// is localhost.
const hostedSegment = "-"

// filePath is the path of a file of a provider, or of the package of a module's
// version, with before in front of it. Below the registry's prefix it is where the
// file lies in the tree, which makes it the same under all names of the registry:
// links are signed for it.
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
	return before + "/mirror/" + host + "/" + url.PathEscape(a.Namespace) + "/" + url.PathEscape(a.Name) + "/" + file
}

// downloadLinks are those of a download document: to the files of the provider a
// where they lie in the tree.
func (g *Registry) downloadLinks(r *request, a address.Address) links {
	base := g.baseFor(r)
	prefix := filePath(base+g.prefix, a, "", "")
	return links{prefix: prefix, folder: prefix[len(base)+len(g.prefix):], tag: g.tagOf(base)}
}

// archiveLinks are those of VERSION.json: relative to the document itself, unless
// there is a public URL. The files are those of the provider a where they lie in
// the tree.
func (g *Registry) archiveLinks(r *request, a address.Address) (l links) {
	switch {
	case g.PublicURL != "":
		l.prefix = filePath(g.base, a, "", "")
		l.folder = l.prefix[len(g.base):]
	case r.target.private:
		l.folder = filePath("", a, "", "")
	}
	return l
}

// baseFor is what comes before the registry's prefix in URLs that should be
// absolute where possible (checklist 38, 87).
func (g *Registry) baseFor(r *request) string {
	if g.PublicURL != "" || g.BaseURL == nil {
		return g.PublicURL
	}
	return g.BaseURL(r.Request)
}

// A requestedBase is what BaseURL has returned, and what it adds to validators.
type requestedBase struct{ base, tag string }

// tagOf is what a base adds to validators beside Registry.tag. The last one is
// kept: most sites are reached by one name.
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
