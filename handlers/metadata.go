package handlers

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A registry.hcl is read and written by those who may manage its provider or module, which
// is hosted or, below registries/HOSTNAME/, mirrored:
//
//	providers/:namespace/:type/registry.hcl
//	modules/:namespace/:name/:system/registry.hcl
//
// Its ETag is the SHA-256 of its content. Whoever replaces it names, by If-Match, the one
// that they have changed, so that nobody undoes what they have not seen.

// namesMetadata reports whether the path of a protocol names a registry.hcl.
func namesMetadata(protocol string, s []string) bool {
	return s[len(s)-1] == tree.MetadataName &&
		(protocol == "providers" && len(s) == 3 || protocol == "modules" && len(s) == 4)
}

// answerMetadata answers a request that reads a registry.hcl. It is that of the tree, which
// may have changed since the snapshot, and what is broken in it is there too.
func (g *Registry) answerMetadata(w http.ResponseWriter, r *request, protocol string, s []string) error {
	r.Kind = KindMetadata
	file, err := parsePublished(protocol, r.original, s)
	if err != nil {
		return fail(http.StatusNotFound, "%v", err)
	}
	if err := g.authorizeFileChange(r, file); err != nil {
		return err
	}
	content, err := g.Publisher.Metadata(file.Address)
	switch {
	case errors.Is(err, publish.ErrNothing):
		return fail(http.StatusNotFound, "%s has no %s: send one by PUT", file.Address, file.Name)
	case err != nil:
		return unavailable("the file cannot be read at the moment: try again, and tell the registry's operator", err)
	}
	set(w, "Etag", metadataTag(wire.SHA256(sha256.Sum256(content)).String()), "Cache-Control", r.revalidate(),
		"Content-Type", "text/plain; charset=utf-8", contentTypeOptions, noSniff)
	http.ServeContent(w, r.Request, "", time.Time{}, bytes.NewReader(content))
	r.answered(r.Request, servedStatus(r.Request, w.Header()), servedBytes(w.Header()))
	return nil
}

// metadataTag is the ETag of a registry.hcl with a digest.
func metadataTag(sum string) string { return `"` + sum + `"` }

// metadataPrecondition is what the header of a PUT demands of the registry.hcl that is
// there (RFC 9110 §13.2.2). One that is there is replaced only by those who say which.
func metadataPrecondition(h http.Header) func(wire.SHA256) error {
	match, none := strings.Join(h.Values("If-Match"), ","), strings.Join(h.Values("If-None-Match"), ",")
	return func(now wire.SHA256) error {
		exists := now != wire.SHA256{}
		switch {
		case match != "" && !(exists && hasTag(match, now.String())),
			none != "" && exists && hasTag(none, now.String()):
			return publish.ErrChanged
		case match == "" && exists:
			return errNoIfMatch
		}
		return nil
	}
}

// hasTag reports whether a list of ETags has that of a digest, compared strongly. Caddy
// appends the coding to the ETag of what it has compressed, and does not remove it from
// If-Match.
func hasTag(list, sum string) bool {
	for candidate := range strings.SplitSeq(list, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || candidate == metadataTag(sum) || strings.HasPrefix(candidate, `"`+sum+"-") {
			return true
		}
	}
	return false
}

// authorizeFileChange notes what a file is of, and asks the rules whether r may change it.
func (g *Registry) authorizeFileChange(r *request, file publish.File) error {
	r.target = g.named(r.self, file.Address)
	r.target.private = true // whatever may be read
	r.about(file.Address)
	right := access.Publish
	if file.Kind == publish.Metadata {
		right = access.Manage
	}
	return g.authorizeChange(r, right)
}
