package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Publisher takes files into the tree. Usually it is a *publish.Publisher, whose
// errors publishFailed knows.
type Publisher interface {
	// Put publishes a file. It reads the body last, and not at all if the answer does
	// not depend on it.
	Put(context.Context, publish.File, publish.Upload) (publish.Result, error)

	// Metadata returns the registry.hcl of a provider or module as it is now. The error
	// is publish.ErrNothing if there is none, and any other if that is unknown.
	Metadata(address.Address) ([]byte, error)

	// State returns the published or staged files of a provider's version.
	State(ctx context.Context, provider address.Address, version string) (wire.Publication, error)

	// Drop removes the staged files of a provider's version.
	Drop(ctx context.Context, provider address.Address, version string) error
}

// The methods of a path, as in the field Allow.
const (
	allowRead    = "GET, HEAD"
	allowReadPut = "GET, HEAD, PUT"
	allowPut     = "PUT"
	allowStaging = "GET, HEAD, DELETE"
)

// serveChange answers a request that is neither GET nor HEAD, for a path below its
// protocol's:
//
//	PUT    providers/:namespace/:type/registry.hcl
//	PUT    providers/:namespace/:type/:version/:file
//	DELETE providers/:namespace/:type/:version/
//	PUT    modules/:namespace/:name/:system/:file
//	POST   modules/:namespace/:name/:system/refresh
//	POST   refresh
//
// Below registries/:hostname/ it accepts only a registry.hcl. It reads no snapshot: the
// Publisher knows better what has just come into the tree.
func (g *Registry) serveChange(w http.ResponseWriter, r *request, service servicePath) error {
	if module, ok := g.namesRefresh(service); ok && r.Method == http.MethodPost {
		return g.refresh(w, r, module)
	}
	if g.Publisher == nil || service.protocol == "refresh" {
		return methodNotAllowed(allowRead, "this registry accepts GET and HEAD only")
	}
	protocol := service.protocol
	if protocol != "providers" && protocol != "modules" {
		return g.notPublishedHere(r.Method, service, nil)
	}
	body := newUploadBody(w, r.Request)
	defer body.release()
	var array [4]string // no path that can be changed has more segments
	s, err := split(service.rest, array[:0])
	if errors.Is(err, errNotFound) {
		return g.notPublishedHere(r.Method, service, nil)
	}
	if err != nil {
		return err
	}
	allow := allowedMethods(protocol, s)
	if service.original != "" {
		if !namesMetadata(protocol, s) {
			return g.notPublishedHere(r.Method, service, nil)
		}
		if err := g.standInFor(r, service.original); err != nil {
			return err
		}
	}
	switch {
	case r.Method == http.MethodPut && (allow == allowPut || allow == allowReadPut) && !isReleasePath(service, s):
		return g.put(w, r, protocol, s, body)
	case r.Method == http.MethodDelete && allow == allowStaging:
		return g.drop(w, r, s)
	}
	return g.notPublishedHere(r.Method, service, s)
}

// changes reports whether a request would publish or remove something if its path
// allowed that. Such a request is always answered here. The next handler may answer
// everything with an empty page and status 200, which a script takes for success.
func (g *Registry) changes(method string) bool {
	switch method {
	case http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete:
		return g.Publisher != nil
	}
	return false
}

// isReleasePath reports whether a path is the path of a provider's release, without the
// slash at its end.
func isReleasePath(service servicePath, s []string) bool {
	if service.protocol != "providers" || service.original != "" || len(s) != 3 {
		return false
	}
	_, err := address.ParseModuleVersion(s[2])
	return err == nil
}

// notPublishedHere returns the answer for a request that would change something, if its
// path has no such method. It tells a command with a slightly wrong path the right one.
// s are the segments after the protocol, or nil if there are too many.
func (g *Registry) notPublishedHere(method string, service servicePath, s []string) error {
	paths := fmt.Sprintf("files are published by PUT to %[1]s/providers/NAMESPACE/TYPE/VERSION/FILE and %[1]s/modules/NAMESPACE/NAME/SYSTEM/VERSION.tar.gz", g.prefix)
	if service.protocol == "" && service.rest != "" { // not even a GET
		return fail(http.StatusNotFound, "there is nothing at this path: %s", paths)
	}
	allow := allowRead
	if s != nil {
		allow = allowedMethods(service.protocol, s)
	}
	isModule := service.protocol == "modules" && len(s) == 3
	switch {
	case method == http.MethodDelete && isReleasePath(service, s):
		return methodNotAllowed(allow, "a slash is missing at the end of the path: the staged files of a version are deleted at VERSION/")
	case method == http.MethodPut && (isModule || isReleasePath(service, s) || allow == allowStaging):
		return methodNotAllowed(allow, "the name of the file is missing at the end of the path: "+paths)
	case allow == allowRead:
		return methodNotAllowed(allow, "this path accepts GET and HEAD only: "+paths)
	}
	return methodNotAllowed(allow, "this path accepts these methods only: "+allow)
}

// allowedMethods returns the methods of a path where publishing is on. No file has the
// name of a document of the protocols.
func allowedMethods(protocol string, s []string) string {
	last := s[len(s)-1]
	switch {
	case protocol == "providers" && len(s) == 4 && last == "":
		return allowStaging
	case protocol == "providers" && len(s) == 4 && last != "":
		return allowPut
	case protocol == "providers" && len(s) == 3 && last != "versions",
		protocol == "modules" && len(s) == 4 && last != "versions" && last != "download":
		return allowReadPut
	}
	return allowRead
}

// put answers a request that publishes a file. It checks everything that does not need
// the body first. If a client announces the body with `Expect: 100-continue`, the first
// read asks for it.
func (g *Registry) put(w http.ResponseWriter, r *request, protocol string, s []string, body *uploadBody) error {
	r.Kind = KindPublish
	file, err := parsePublished(protocol, r.original, s)
	if err != nil {
		return publishFailed(err)
	}
	if r.Version = file.Version; file.Kind == publish.Package {
		r.Platform = file.Platform.String()
	}
	r.Upload = &Upload{Kind: file.Kind, File: file.Name}
	result, err := g.publish(r, file, body)
	r.Upload.Subject, r.Upload.Outcome = r.knownSubject().ID, outcomeOf(result, err)
	switch {
	case errors.Is(err, publish.ErrNothing):
		r.Upload = nil // the client has sent nothing
		return fail(http.StatusNotFound, "no such file with this checksum is here: send its bytes")
	case err != nil:
		err = publishFailed(err)
		_, r.Upload.Reason = Status(err)
		return err
	}
	status := http.StatusOK
	switch result.Outcome {
	case publish.Added:
		status = http.StatusCreated
		r.Upload.Files, r.Upload.Notices = namesOf(result.Publication, file), result.Notices
		if file.Version != "" {
			set(w, "Location", g.detailURL(r, file))
		}
	case publish.Waiting:
		status = http.StatusAccepted
		result.Files = nil // a client can ask for the files sent before
	}
	if file.Kind == publish.Metadata && result.SHA256 != "" {
		set(w, "Etag", metadataTag(result.SHA256))
	}
	return writePublication(w, r, status, result.Publication)
}

// publish has the Publisher take a file, if r may publish it.
func (g *Registry) publish(r *request, file publish.File, body *uploadBody) (publish.Result, error) {
	if err := g.authorizeFileChange(r, file); err != nil {
		return publish.Result{}, err
	}
	upload, err := readUpload(r.Request)
	if err != nil {
		return publish.Result{}, err
	}
	upload.Body, upload.Subject = fileBody{body}, r.knownSubject().ID
	if file.Kind == publish.Metadata {
		upload.Precondition = metadataPrecondition(r.Header)
	}
	return g.Publisher.Put(r.Context(), file, upload)
}

// parsePublished returns the file at a path, of this registry or of the one at the
// hostname original. Its error is a publish.Refusal.
func parsePublished(protocol string, original svchost.Hostname, s []string) (publish.File, error) {
	parse := func() (address.Address, error) { return address.ParseProvider("", s[0], s[1]) }
	form := "a provider: use NAMESPACE/TYPE"
	if protocol == "modules" {
		parse = func() (address.Address, error) { return address.ParseModule("", s[0], s[1], s[2]) }
		form = "a module: use NAMESPACE/NAME/SYSTEM"
	}
	a, err := parse()
	// A tree would take a namespace that looks like a hostname for a HOSTNAME.
	if err != nil || original == "" && address.IsHostname(a.Namespace) {
		return publish.File{}, &publish.Refusal{Kind: publish.ErrRefused, Reasons: []string{"that is not the address of " + form}}
	}
	name := s[len(s)-1]
	switch {
	case len(s) == 3 || name == tree.MetadataName && protocol == "modules":
		return publish.ParseMetadataFile(a.WithHostname(original), name)
	case protocol == "modules":
		return publish.ParseModuleFile(a, name)
	}
	return publish.ParseReleaseFile(a, s[2], name)
}

// authorizeChange asks the rules whether r has the right to publish or to manage the
// target. The answer does not depend on what exists. A signed link does not count: it
// is for reading a file.
func (g *Registry) authorizeChange(r *request, right access.Right) error {
	name := r.target.resource().Address
	if g.Rules == nil {
		return fail(http.StatusForbidden, "nobody may %s anything here: the registry's operator has to configure `auth`, and `access` with a rule such as `allow ci %s %s`", right, right, name)
	}
	subject, err := g.subject(r)
	if err != nil {
		return err
	}
	switch {
	case g.rules.Decide(subject, right, r.target.resource()).Allowed:
		r.target.readable = true // as far as its publication is concerned
		return nil
	case !subject.Anonymous():
		return fail(http.StatusForbidden, "your credentials do not allow you to %s %s: ask the registry's operator for a rule with the right `%s`", right, name, right)
	case r.hasCredentials():
		return fail(http.StatusUnauthorized, "the credentials for %s are unknown, expired or revoked: send a valid token as `Authorization: Bearer TOKEN`", name)
	}
	return fail(http.StatusUnauthorized, "it requires credentials to %s %s: send a token as `Authorization: Bearer TOKEN`", right, name)
}

// answerStaging answers with the published or staged files of a provider's version.
func (g *Registry) answerStaging(w http.ResponseWriter, r *request) error {
	a, version, err := r.staged()
	if err != nil {
		return err
	}
	state, err := g.Publisher.State(r.Context(), a, version)
	if err != nil {
		return publishFailed(err)
	}
	r.Version = version
	return writePublication(w, r, http.StatusOK, state)
}

// drop answers a request to remove the staged files of a provider's version.
func (g *Registry) drop(w http.ResponseWriter, r *request, s []string) error {
	if _, err := g.resolveProviders(r, s); err != nil {
		return err
	}
	a, version, err := r.staged()
	if err != nil {
		return err
	}
	if err := g.Publisher.Drop(r.Context(), a, version); err != nil {
		return publishFailed(err)
	}
	r.Version = version
	set(w, "Cache-Control", "no-store", contentTypeOptions, noSniff)
	w.WriteHeader(http.StatusNoContent)
	r.answered(r.Request, http.StatusNoContent, 0)
	return nil
}

// staged returns the provider and version of a KindStaging. Both are names of folders,
// so they must be names that can be published.
func (r *request) staged() (address.Address, string, error) {
	r.about(r.target.Address)
	v, err := address.ParseModuleVersion(r.target.version)
	switch {
	case err != nil:
		return address.Address{}, "", fail(http.StatusNotFound, "that is not a version: use MAJOR.MINOR.PATCH")
	case address.IsHostname(r.target.Namespace):
		return address.Address{}, "", fail(http.StatusNotFound, "that is not the address of a provider: use NAMESPACE/TYPE")
	}
	return r.target.Address, v.String(), nil
}

// writePublication answers with published or staged files.
func writePublication(w http.ResponseWriter, r *request, status int, p wire.Publication) error {
	return r.write(w, status, Content{Type: jsonType, Body: p.Encode(), Caching: "no-store"})
}

// detailURL returns the URL at which the API describes the version of a file.
func (g *Registry) detailURL(r *request, f publish.File) string {
	a, path := f.Address, ""
	if a.IsModule() {
		path = "/modules/" + a.String()
	} else {
		path = "/providers/" + url.PathEscape(a.Namespace) + "/" + url.PathEscape(a.Name)
	}
	return g.baseFor(r) + g.prefix + path + "/" + f.Version
}

// namesOf returns the names of the files that have come into the tree with file.
func namesOf(p wire.Publication, file publish.File) []string {
	names := make([]string, len(p.Files))
	for i := range p.Files {
		names[i] = p.Files[i].Name
	}
	if len(names) == 0 {
		names = append(names, file.Name)
	}
	return names
}
