package verify

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// No entry proves the documents beside a log. They explain findings, and the bytes of packages
// count if their hashes are on record.

const (
	maxVersions = 8 << 20   // bytes of a list of versions
	maxShasums  = 1 << 20   // bytes
	maxModule   = 512 << 20 // bytes of a module's package

	// packageTimeout is for a package, with all attempts.
	packageTimeout = 10 * time.Minute
)

// service returns the URL of what is served of a place below names. The log is beside the
// services.
func (p place) service(names ...string) *url.URL {
	a := p.address
	path := []string{".."}
	if a.Hostname != "" {
		path = append(path, "registries", string(a.Hostname))
	}
	if a.IsModule() {
		path = append(path, "modules", a.Namespace, a.Name, a.System)
	} else {
		path = append(path, "providers", a.Namespace, a.Name)
	}
	return p.log.base.JoinPath(append(path, names...)...)
}

// providerFile returns the URL of a file of a provider's release.
func (p place) providerFile(host, name string) *url.URL {
	return p.log.base.JoinPath("..", "mirror", host, p.address.Namespace, p.address.Name, name)
}

func (p place) ask(ctx context.Context, u *url.URL, limit int64) (answer, error) {
	return p.log.client.ask(ctx, question{url: u, hosts: p.log.hosts, limit: limit})
}

// askFile asks for a file of a provider's release. What is hosted has a name of the registry
// or none.
func (p place) askFile(ctx context.Context, own, name string, limit int64) (a answer, err error) {
	hosts := []string{string(p.address.Hostname)}
	if hosts[0] == "" {
		hosts = []string{"-", own}
	}
	for _, host := range hosts {
		if a, err = p.ask(ctx, p.providerFile(host, name), limit); err != nil || a.status != http.StatusNotFound {
			break
		}
	}
	return a, err
}

// whyWithdrawn returns the reason for which a version is withdrawn, in the registry's words;
// empty: it tells none.
func (p place) whyWithdrawn(ctx context.Context, own, version string) string {
	var a answer
	var err error
	if p.address.IsModule() {
		a, err = p.ask(ctx, p.service(version, "download"), maxCheckpoint)
	} else {
		a, err = p.askFile(ctx, own, address.ChecksumsName(p.address.Name, version), maxShasums)
	}
	if err != nil || a.status != http.StatusGone {
		return ""
	}
	return reasonOf(a.body)
}

// notices returns what a registry's list of versions says against the versions; nil: nothing.
func (p place) notices(ctx context.Context) func(version string) string {
	a, err := p.ask(ctx, p.service("versions"), maxVersions)
	if err != nil || a.status != http.StatusOK {
		return nil
	}
	type deprecation struct{ Reason, Link string }
	var list struct {
		Modules []struct {
			Versions []struct {
				Version     string
				Deprecation *deprecation
			}
		}
		Warnings []string
	}
	if json.Unmarshal(a.body, &list) != nil {
		return nil
	}
	if !p.address.IsModule() {
		return func(string) string { return providerNotice(list.Warnings) }
	}
	return func(version string) string {
		if len(list.Modules) == 0 {
			return ""
		}
		for _, v := range list.Modules[0].Versions {
			if normal, err := address.ParseModuleVersion(v.Version); err != nil || normal.String() != version || v.Deprecation == nil {
				continue
			}
			text := v.Deprecation.Reason
			if text == "" {
				text = "it is deprecated"
			}
			if v.Deprecation.Link != "" {
				text += " (" + v.Deprecation.Link + ")"
			}
			return shortened(text, maxReason)
		}
		return ""
	}
}

// providerNotice returns the warnings about deprecated versions, which name the versions.
func providerNotice(warnings []string) string {
	var about []string
	for _, w := range warnings {
		if strings.Contains(w, "deprecated") {
			about = append(about, w)
		}
	}
	return shortened(strings.Join(about, "; "), maxReason)
}

// shasums returns the SHA256SUMS of a release. It must be the file whose digest the look-up has.
func (p place) shasums(ctx context.Context, own, version, digest string) (sums wire.Checksums, err error) {
	a, err := p.askFile(ctx, own, address.ChecksumsName(p.address.Name, version), maxShasums)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("SHA256SUMS is not served: it answered %d", a.status)
	}
	served := wire.SHA256Of(a.body).String()
	if served != digest && !a.kept {
		found, _, err := p.log.lookup(ctx, p.path(version), true)
		if err != nil {
			return nil, err
		}
		digest = found.Shasums
	}
	if served != digest {
		return nil, errors.New("the SHA256SUMS that is served is not the one of the look-up")
	}
	if sums, err = wire.DecodeChecksums(a.body); err != nil {
		return nil, errors.New("the SHA256SUMS that is served cannot be read")
	}
	return sums, nil
}

// modulePackage returns the content of a module's package that has one of the hashes on
// record: as the cache has it, or as it is served. The cache has packages by their bytes: the
// links of another package with the same files may be other ones.
func (p place) modulePackage(ctx context.Context, version string, h1s, zhs []string) (content, error) {
	cache := p.log.client.Cache
	for _, zh := range zhs {
		var kept content
		if json.Unmarshal(cache.read(nameOf("package "+zh)), &kept) == nil && slices.Contains(h1s, kept.h1()) {
			return kept, nil
		}
	}
	var c content
	var zh string
	var err error
	for _, format := range address.DistinctModuleFormats() {
		if c, zh, err = p.fetchModule(ctx, version, format); err == nil || !errors.Is(err, errNotServed) {
			break
		}
	}
	if err != nil {
		return content{}, err
	}
	if !slices.Contains(h1s, c.h1()) {
		return content{}, errOtherServed
	}
	if !slices.Contains(zhs, zh) { // nothing vouches for the links
		return content{Files: c.Files}, nil
	}
	if kept, err := json.Marshal(c); err == nil {
		cache.write(nameOf("package "+zh), kept)
	}
	return c, nil
}

var (
	errNotServed   = errors.New("the registry does not serve the package any more")
	errOtherServed = errors.New("the registry serves other bytes now, too")
)

// fetchModule returns the content of a module's package that is served, and its "zh:".
func (p place) fetchModule(ctx context.Context, version, format string) (c content, zh string, err error) {
	f, err := os.CreateTemp("", "caddy-terraform-registry-*."+format)
	if err != nil {
		return c, "", err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	u := p.service(version, "archive."+format)
	h := sha256.New()
	size, err := p.log.client.download(ctx, question{url: u, hosts: p.log.hosts, limit: maxModule}, io.MultiWriter(f, h))
	if err != nil {
		return c, "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return c, "", err
	}
	entries, err := archive.ReadModuleEntries(ctx, f, size, format)
	if err != nil {
		return c, "", fmt.Errorf("the package that the registry serves cannot be read: %w", err)
	}
	return content{entries.Files, entries.Links}, wire.SHA256(h.Sum(nil)).ZH(), nil
}

// download writes the body of an answer.
func (c *Client) download(ctx context.Context, q question, to io.Writer) (size int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, packageTimeout)
	defer cancel()
	response, err := c.do(ctx, q)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	switch status := response.StatusCode; {
	case status == http.StatusOK:
	case status == http.StatusNotFound || status == http.StatusGone || status == http.StatusUnprocessableEntity:
		// A mirror says 422 if it will not get the module, such as when its origin has other bytes now.
		if why := reasonOf(readErrorBody(response)); why != "" {
			return 0, fmt.Errorf("%w: %s", errNotServed, why)
		}
		return 0, errNotServed
	default:
		return 0, unanswered(q.url, "%s", refusal(status, readErrorBody(response)))
	}
	size, err = io.Copy(to, io.LimitReader(response.Body, q.limit+1))
	switch {
	case err != nil:
		return size, &UnansweredError{q.url.Host, transportReason(err), true}
	case size > q.limit:
		return size, unanswered(q.url, "the package has more than %d bytes", q.limit)
	}
	return size, nil
}

// readErrorBody returns the beginning of an answer that is an error.
func readErrorBody(response *http.Response) []byte {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxCheckpoint))
	return body
}
