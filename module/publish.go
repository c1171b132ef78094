package module

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

// Publish lets clients publish releases of providers, modules and their metadata with
// PUT requests, one for each file:
//
//	PREFIX/providers/NAMESPACE/TYPE/VERSION/terraform-provider-TYPE_VERSION_OS_ARCH.zip
//	PREFIX/providers/NAMESPACE/TYPE/VERSION/terraform-provider-TYPE_VERSION_SHA256SUMS
//	PREFIX/providers/NAMESPACE/TYPE/VERSION/terraform-provider-TYPE_VERSION_SHA256SUMS.sig
//	PREFIX/providers/NAMESPACE/TYPE/VERSION/terraform-provider-TYPE_VERSION_manifest.json
//	PREFIX/providers/NAMESPACE/TYPE/VERSION/docs.zip
//	PREFIX/providers/NAMESPACE/TYPE/registry.hcl
//	PREFIX/modules/NAMESPACE/NAME/SYSTEM/VERSION.tar.gz
//	PREFIX/modules/NAMESPACE/NAME/SYSTEM/registry.hcl
//
// The files of a release are sent in any order. They are staged, and appear all at
// once as soon as SHA256SUMS, every file it lists and, where the namespace has keys or
// `signatures` is `require`, its signature are there and verified. What is published
// never changes: other bytes for the same version are refused.
//
// The rules of `access` with the right `publish` determine who may publish. The rules
// with the right `manage`, which includes it, determine who may also read and write a
// registry.hcl, even of mirrored providers and modules:
//
//	PREFIX/registries/HOSTNAME/providers/NAMESPACE/TYPE/registry.hcl
//	PREFIX/registries/HOSTNAME/modules/NAMESPACE/NAME/SYSTEM/registry.hcl
//
// Without such a rule, publishing is not allowed.
//
// Several sites may publish in one tree, with the same `staging`, `signatures` and
// `hostname`.
//
// The folder must be on the local disk, or `fs` a file system of `caddy.fs.blob`, and Caddy
// must be able to write to it. Instances that share the folder or bucket must share Caddy's
// storage too, which has the locks. With a bucket, files on their way into it are kept in
// the folder for temporary files of the system.
type Publish struct {
	// The maximum size of a file, in bytes. Larger ones are refused with 413. Default:
	// 4 GiB.
	MaxSize int64 `json:"max_size,omitempty"`

	// How long an unfinished release is kept after its last file was sent. Between `1m`
	// and 30 days. Default: `24h`.
	Staging caddy.Duration `json:"staging,omitempty"`

	// How much of unfinished releases may be staged, with files on their way in, in bytes.
	// More is refused with 507. Default: 100 GiB.
	MaxStaged int64 `json:"max_staged,omitempty"`

	// How much of that may be staged with one token. Default: 20 GiB.
	MaxStagedEach int64 `json:"max_staged_each,omitempty"`
}

// Limits of Publish.Staging. It must be longer than a file takes.
const (
	minStaging = time.Minute
	maxStaging = 30 * 24 * time.Hour
)

// Validate checks the options.
func (p *Publish) Validate() error {
	staging := time.Duration(p.Staging)
	switch {
	case p.MaxSize < 0:
		return errors.New("max_size: it must be positive")
	case p.MaxStaged < 0:
		return errors.New("max_staged: it must be positive")
	case p.MaxStagedEach < 0:
		return errors.New("max_staged_each: it must be positive")
	case staging != 0 && (staging < minStaging || staging > maxStaging):
		return fmt.Errorf("staging: %s is not between %s and %s", staging, minStaging, maxStaging)
	}
	return nil
}

// staging returns how long an unfinished release is kept.
func (p *Publish) staging() time.Duration {
	return cmp.Or(time.Duration(p.Staging), publish.DefaultStaging)
}

// provisionPublish sets up publishing. It does not change the tree.
func (h *Handler) provisionPublish(app *App, hostnames []svchost.Hostname) error {
	if h.Publish == nil {
		return nil
	}
	if err := h.Publish.Validate(); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	t := h.source.tree
	if !t.source.IsWritable() {
		return errors.New("publish: the file system of fs cannot be written to: leave out publish or fs")
	}
	if err := h.checkOtherPublishers(app, hostnames); err != nil {
		return err
	}
	publisher, err := publish.New(publish.Options{
		Open: t.source.Open,
		Index: func() publish.Index {
			if x := h.source.current(); x != nil {
				return x
			}
			return nil // not a nil *index.Index
		},
		Lock:              app.lock,
		Hostnames:         hostnames,
		KeyCopies:         storage.NewKeyCopies(app.storage, t.identity()),
		Record:            treeRecord{app, t},
		RequireSignatures: t.require,
		MaxSize:           h.Publish.MaxSize,
		Staging:           h.Publish.staging(),
		MaxStaged:         h.Publish.MaxStaged,
		MaxStagedEach:     h.Publish.MaxStagedEach,
		Logger:            h.logger,
	})
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	h.registry.Publisher, h.refused = publisher, newRefusedSubjects()
	app.publishers = append(app.publishers, publisher)
	h.warnOfPublishing()
	return nil
}

// checkOtherPublishers returns an error if another handler publishes in the same tree by other rules. Each looks after all
// that is staged in the tree, so one would publish without a signature what waits for its signature at the other, or
// discard what the other has promised to keep.
func (h *Handler) checkOtherPublishers(app *App, hostnames []svchost.Hostname) error {
	sorted := func(names []svchost.Hostname) []svchost.Hostname { return slices.Sorted(slices.Values(names)) }
	for _, other := range app.handlers {
		if other.Publish == nil || other.source.tree.identity() != h.source.tree.identity() {
			continue
		}
		if other.Publish.staging() != h.Publish.staging() || other.Signatures != h.Signatures || !slices.Equal(sorted(other.registry.Hostnames), sorted(hostnames)) {
			return fmt.Errorf("publish: two registries with the root %s publish with different options: use the same staging, signatures and hostname, or leave out publish at one", h.source.tree.root())
		}
	}
	return nil
}

// warnOfPublishing logs that no rule lets anyone publish.
func (h *Handler) warnOfPublishing() {
	if h.Access == nil || !h.Access.allows(access.Publish) && !h.Access.allows(access.Manage) {
		h.logger.Warn("publish is on, but nobody may publish: add a rule such as `allow ci publish acme` to access")
	}
}
