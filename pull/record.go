package pull

import (
	"errors"
	"log/slog"
	"path"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/versionlist"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// The list of versions that an origin has sent is kept beside the packages, for a restart and for
// other instances.

// readRecord returns the record in the tree, or nil if there is none. The error is
// versionlist.ErrDamaged if the record is damaged, or else ErrUnread.
func (c *originList) readRecord() (*versionlist.Record, error) {
	_, in, dir, err := c.folder(c.address)
	if err != nil {
		return nil, err
	}
	r, err := readRecord(in, dir)
	if r != nil && r.Of != tagsOf(c.git) { // the module was in another repository
		return nil, nil
	}
	if r != nil {
		c.kept.Store(true)
	}
	return r, err
}

// readRecord reads a record like the method, from the folder of a provider or module.
func readRecord(in tree.Part, dir string) (*versionlist.Record, error) {
	r, err := versionlist.Read(in, dir)
	if errors.Is(err, versionlist.ErrDamaged) {
		return nil, err
	}
	return r, unread(err)
}

// keepRecord writes a record if the tree has a folder of the provider or module:
// clients may request any address, and must not fill the tree with directories. With a
// minimum release age it is always written, since it says when versions were first
// seen. So it does not replace a record that cannot be read now, and keeps the past in
// the record of the tree, which another instance may have written. A damaged record is
// set aside.
func (c *originList) keepRecord(r *versionlist.Record) error {
	c.keeping.Lock() // otherwise one of two concurrent records would be lost
	defer c.keeping.Unlock()
	_, in, dir, err := c.folder(c.address)
	if err != nil {
		return err
	}
	if c.source.Policy.MinAge == 0 {
		if exists, err := in.Exists(dir); err != nil || !exists {
			return err // keepRecordOf does it with the first package
		}
	}
	switch before, err := readRecord(in, dir); {
	case errors.Is(err, versionlist.ErrDamaged):
		if err := in.Move(path.Join(dir, tree.VersionsName), path.Join(dir, tree.DamagedVersionsName)); err != nil {
			return err
		}
		c.log(slog.LevelWarn, "the list of versions that was kept is damaged: versions without a date of publication count as new, but for those in the tree",
			kindOf(c.address), c.address.String(), "kept_as", tree.DamagedVersionsName)
	case err != nil:
		return err
	case before != nil && before.Of != r.Of:
	case before != nil && before.NewerThan(r, time.Now()): // another instance has written it meanwhile
		r = before.WithPastOf(r)
	case before != nil:
		r = r.WithPastOf(before)
	}
	written, err := r.Write(in, dir)
	if written {
		c.kept.Store(true)
	}
	return err
}

// provenRecord returns the past that the tree proves although the record is damaged.
func (c *originList) provenRecord() (*versionlist.Record, error) {
	_, in, dir, err := c.folder(c.address)
	if err != nil {
		return nil, err
	}
	r, err := versionlist.Proven(c.ctx, in, dir, c.address)
	return r, unread(err)
}

// keepRecordOf writes the record with the first package of a provider or module, since
// there was no directory for it before.
func (f *Filler) keepRecordOf(a address.Address) {
	c, ok := f.lists.Get(a)
	if !ok || c.kept.Load() {
		return
	}
	c.mutex.Lock()
	r := c.record
	c.mutex.Unlock()
	if r != nil {
		c.keep(r)
	}
}
