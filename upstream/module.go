package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// modules implements the module registry protocol, modules.v1.
type modules struct{ *Client }

// url returns the URL of a document of a module for the segments of its path.
func (c modules) url(ctx context.Context, a address.Address, segments ...string) (*url.URL, error) {
	base, err := c.modulesBase(ctx)
	if err != nil {
		return nil, err
	}
	return below(base, append([]string{a.Namespace, a.Name, a.System}, segments...)...), nil
}

func (c modules) versions(ctx context.Context, a address.Address) ([]wire.ProviderVersion, error) {
	u, err := c.url(ctx, a, "versions")
	if err != nil {
		return nil, err
	}
	d, err := c.read(ctx, u, maxModuleDocument)
	if err != nil {
		return nil, err
	}
	list, err := wire.DecodeModuleVersions(d.body)
	if err != nil {
		return nil, badList(d.url, err)
	}
	versions := make([]wire.ProviderVersion, len(list))
	for i, v := range list {
		versions[i].Version = v
	}
	return versions, nil
}

func (c modules) published(ctx context.Context, a address.Address, version string) (time.Time, error) {
	u, err := c.url(ctx, a, version)
	if err != nil {
		return time.Time{}, err
	}
	d, err := c.read(optional(ctx), u, maxModuleDocument)
	if err != nil {
		return time.Time{}, err
	}
	return d.published()
}

// ModuleSource asks the origin for the location of a module's files. The error is a
// Failure. It is ErrUnsafe or ErrMalformed if the location is not fetched.
func (c *Client) ModuleSource(ctx context.Context, a address.Address, version string) (ModuleSource, error) {
	if err := c.checkVersion(a, version); err != nil {
		return ModuleSource{}, err
	}
	if !a.IsModule() {
		return ModuleSource{}, fail(c.base, ErrNotFound, "that is not the address of a module")
	}
	u, err := modules{c}.url(ctx, a, version, "download")
	if err != nil {
		return ModuleSource{}, err
	}
	got, err := c.ask(ctx, location{u, trusted}, maxMetadata)
	if err != nil {
		return ModuleSource{}, err
	}
	text := got.location()
	if text == "" {
		return ModuleSource{}, fail(got.url, ErrMalformed, "it does not say where the files of the module are")
	}
	// Relative locations are relative to the requested URL, even after redirects.
	s, err := got.moduleSource(text, u)
	if err != nil {
		return ModuleSource{}, err
	}
	if s.trust = got.trust; s.trust < trusted { // another host has answered instead of the origin
		s.trust = c.trustOf(location{got.url, got.trust}, s.URL)
	}
	if s, err = c.followed(ctx, s); err != nil {
		return ModuleSource{}, err
	}
	return s, nil
}

// location returns the location of a package according to an answer. OpenTofu prefers
// the body of a 200 to the header; Terraform reads only the header. In the body there may
// be a URL for OpenTofu ≥ 1.12 alone, which needs neither a suffix nor a leading dot (checklist
// 83, 84).
func (a answer) location() string {
	var body struct {
		Location       string          `json:"location"`
		UseCredentials json.RawMessage `json:"use_registry_credentials"`
	}
	header := a.header.Get("X-Terraform-Get")
	if a.status == http.StatusOK && json.Unmarshal(a.body, &body) == nil && body.Location != "" && (header == "" || body.UseCredentials == nil) {
		return body.Location
	}
	return header
}

// moduleSource reads a location that an answer names, and which may be relative to from.
func (a answer) moduleSource(text string, from *url.URL) (ModuleSource, error) {
	s, err := ParseModuleSource(text, from)
	if refused, is := errors.AsType[*refusal](err); is {
		return s, refused.failure(a.url)
	}
	return s, err
}

// followed asks a URL that is not evidently an archive for the location of the archive,
// as clients do.
func (c *Client) followed(ctx context.Context, s ModuleSource) (ModuleSource, error) {
	for range maxModuleHops {
		if s.Git || s.Format != "" {
			return s, nil
		}
		u := *s.URL
		query := u.Query()
		query.Set("terraform-get", "1")
		u.RawQuery = query.Encode()
		got, err := c.ask(ctx, location{&u, s.trust}, maxMetadata)
		if IsKind(err, ErrTooLarge) {
			break // an archive whose format clients do not know either
		}
		if err != nil {
			return s, brokenLink(err, "module")
		}
		text := got.header.Get("X-Terraform-Get")
		if text == "" {
			break
		}
		next, err := got.moduleSource(text, &u)
		if err != nil {
			return s, err
		}
		if s.InTopFolder {
			return s, fail(got.url, ErrMalformed, "the link to the module has the folder *, which clients do not find")
		}
		next.trust = c.trustOf(location{got.url, got.trust}, next.URL)
		next.Folder = strings.Trim(next.Folder+"/"+s.Folder, "/")
		s = next
	}
	if s.Git || s.Format != "" {
		return s, nil
	}
	return s, fail(s.URL, ErrMalformed, "the link to the module is neither an archive nor a git repository: it must end in .tar.gz, .tgz, .tar.bz2 or .zip, have archive=tar.gz or the like, or begin with git::https")
}

// ReserveModule waits for one of the slots for modules of this kind of source.
// Repositories have slots of their own: they may take minutes, and packages must not
// wait for them. Otherwise it is like ReserveDownload.
func (c *Client) ReserveModule(ctx context.Context, s ModuleSource) (release func(), err error) {
	if !s.Git || !git.Available() {
		return c.ReserveDownload(ctx)
	}
	return c.repositories.take(ctx, s.URL.Host)
}

// FetchModule writes the files of a module to a folder on the local disk, which exists
// and is empty. Temporary files are in the folder until FetchModule returns, so that a
// caller who removes the folder after a crash leaves nothing. If the source has a
// Folder, only the files of that folder are written, at the same path, with the files
// outside of it that its configuration leads to by relative paths: called modules, and
// files that are read through ${path.module}. Links stay links, and lead to files in
// the folder. On an error the caller must discard the written files. The caller has
// reserved a slot (ReserveModule).
func (c *Client) FetchModule(ctx context.Context, s ModuleSource, into string) (content ModuleContent, err error) {
	named := s
	if s.Git && !git.Available() {
		if s, err = archiveOf(s); err != nil {
			return content, err
		}
	}
	if s.Git {
		content.Commit, err = c.fetchGit(ctx, s, into)
	} else {
		content, err = c.fetchArchive(ctx, s, into)
	}
	if err == nil {
		err = checkCommit(named, content)
	}
	if err != nil {
		return content, err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return content, fmt.Errorf("writing the module: %w", err)
	}
	defer root.Close()
	if s.Folder != "" && !s.Git { // from a repository, only these files were fetched
		if err := keepNeeded(ctx, root, s.Folder); err != nil {
			return content, asModuleFailure(ctx, s.URL, err)
		}
	}
	return content, asModuleFailure(ctx, s.URL, checkLinks(ctx, root))
}
