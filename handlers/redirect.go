package handlers

import (
	"errors"
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// redirects reports whether a client is redirected to the store that has the file.
// Rules and the signed link have been checked before. HEAD, which Terraform 1.11.0 to
// 1.12.0 sends first, is answered here, because the store refuses it for a URL that is
// signed for GET. So are 304 and If-Match, because the store does not know the
// registry's ETags.
func (g *Registry) redirects(r *request, f *index.File) bool {
	return g.Redirect > 0 && r.Method == http.MethodGet && r.Header.Get("If-Match") == "" &&
		!r.needsNoContent(`"`+f.Tag()+`"`)
}

// redirect answers with 307 and a signed URL of the store. No cache may store the
// answer, since anyone can use the URL to download the file for as long as it is valid. The
// error is ErrEncoded, before anything is answered, if the store would not send the bytes of
// the file.
func (g *Registry) redirect(w http.ResponseWriter, r *request, f *index.File) error {
	url, err := r.snapshot.SignedURL(r.Context(), f, g.Redirect)
	switch {
	case errors.Is(err, tree.ErrChanged):
		return errReplaced
	case errors.Is(err, tree.ErrEncoded):
		return err
	case err != nil:
		return unavailable("the file cannot be served at the moment: try again, and tell the registry's operator", err)
	}
	set(w, "Cache-Control", "no-store", "Location", url, "Content-Length", "0", contentTypeOptions, noSniff)
	w.WriteHeader(http.StatusTemporaryRedirect)
	r.answered(r.Request, http.StatusTemporaryRedirect, 0)
	if r.asksForBeginning() {
		g.downloaded(r, f)
	}
	return nil
}
