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

// A registry.hcl can be read and written by users who may manage its provider or module, which
// is hosted or, below registries/HOSTNAME/, mirrored:
//
// 	providers/:namespace/:type/registry.hcl
// 	modules/:namespace/:name/:system/registry.hcl
//
// Its ETag is the SHA-256 of its content. A client that replaces a registry.hcl names the
// version that it has changed with If-Match, so that no unseen change is undone.

// namesMetadata reports whether the path of a protocol names a registry.hcl.
func namesMetadata(protocol string, s []string) bool {
	return s[len(s)-1] == tree.MetadataName &&
		(protocol == "providers" && len(s) == 3 || protocol == "modules" && len(s) == 4)
}

// answerMetadata answers with a registry.hcl. It reads the file in the tree, which may
// have changed since the snapshot, and which may be broken.
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
	body := bodyWriter{ResponseWriter: w, proto: r.ProtoMajor}
	http.ServeContent(&body, r.Request, "", time.Time{}, bytes.NewReader(content))
	r.answered(r.Request, body.status, body.length)
	return nil
}

// metadataTag returns the ETag of a registry.hcl with a digest.
func metadataTag(sum string) string { return `"` + sum + `"` }

// metadataPrecondition returns the condition in the header of a PUT on the present
// registry.hcl (RFC 9110 §13.2.2). A PUT replaces a file only if it says which.
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

// hasTag reports whether a list of ETags contains the tag of a digest, compared
// strongly. Caddy appends the coding to the ETag of a compressed answer, and does not
// remove it from If-Match.
func hasTag(list, sum string) bool {
	for candidate := range strings.SplitSeq(list, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || candidate == metadataTag(sum) || strings.HasPrefix(candidate, `"`+sum+"-") {
			return true
		}
	}
	return false
}

// authorizeFileChange records the address of a file, and asks the rules whether r may
// change the file.
func (g *Registry) authorizeFileChange(r *request, file publish.File) error {
	r.target = g.targetOf(r.self, file.Address)
	r.target.private = true // no matter who may read it
	r.about(file.Address)
	right := access.Publish
	if file.Kind == publish.Metadata {
		right = access.Manage
	}
	return g.authorizeChange(r, right)
}
