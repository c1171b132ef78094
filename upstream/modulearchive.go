package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// fetchArchive receives an archive and unpacks it.
func (c *Client) fetchArchive(ctx context.Context, s ModuleSource, into string) (content ModuleContent, err error) {
	f, err := os.CreateTemp(into, ".archive-*")
	if err != nil {
		return content, fmt.Errorf("writing the module: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	d := c.newDownload(s.location(), f, c.maxModule)
	d.host, _ = c.credentials(s.location())
	if err := d.run(ctx); err != nil {
		return content, c.advised(brokenLink(err, "module"), s.location(), "the origin's link to it may have expired", "configure another token for this host")
	}
	digest := d.digest()
	if s.SHA256 != (wire.SHA256{}) && digest.SHA256 != s.SHA256 {
		return content, fail(s.URL, ErrBadChecksum, "the module's archive is not the one that the origin names")
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return content, fmt.Errorf("writing the module: %w", err)
	}
	defer root.Close()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return content, fmt.Errorf("writing the module: %w", err)
	}
	limit := min(c.maxUnpacked, max(freeUnpacked, maxModuleRatio*digest.Size))
	u := newUnpacker(root, limit, s.InTopFolder)
	if err := u.unpack(ctx, f, digest.Size, s.Format); err != nil {
		return content, asModuleFailure(ctx, s.URL, err)
	}
	return ModuleContent{Commit: u.commit, SHA256: digest.SHA256}, nil
}

// asModuleFailure returns the failure of a module with bad files. Errors of the disk
// are not the origin's fault.
func asModuleFailure(ctx context.Context, from *url.URL, err error) error {
	var refused *refusal
	var file *fs.PathError
	var link *os.LinkError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return transportFailure(ctx, from, ctx.Err())
	case errors.As(err, &refused):
		return refused.failure(from)
	case errors.As(err, &file) || errors.As(err, &link):
		return fmt.Errorf("writing the module: %w", err)
	}
	return fail(from, ErrMalformed, "the module's archive is damaged")
}

func tooManyFiles() error {
	return refuse(ErrTooLarge, "the module has more than %d files, or their names are very long", maxArchiveFiles)
}
