package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Metadata returns the registry.hcl of a provider or module, as it is in the tree now.
// The error is ErrNothing if there is none, and tree.ErrStore or ErrUnavailable if that
// is not known.
func (p *Publisher) Metadata(a address.Address) ([]byte, error) {
	files, err := p.open()
	if err != nil {
		return nil, err
	}
	_, content, err := p.readMetadata(files, a)
	if err == nil && content == nil {
		err = ErrNothing
	}
	return content, err
}

// readMetadata returns the folder with the registry.hcl of an address, and the content
// of the file, which is nil if there is none. The folder of a hosted address may lie
// under one of the registry's names.
func (p *Publisher) readMetadata(files tree.Tree, a address.Address) (tree.AddressFolder, []byte, error) {
	places := []address.Address{a}
	if a.Hostname == "" {
		for _, name := range p.options.Hostnames {
			places = append(places, a.WithHostname(name))
		}
	}
	for _, at := range places {
		folder := files.Folder(at)
		content, err := folder.ReadMetadata()
		switch {
		case errors.Is(err, tree.ErrStore):
			return folder, nil, err
		case err != nil:
			return folder, nil, p.unavailable("reading "+folder.Path+"/"+tree.MetadataName, err)
		case content != nil:
			return folder, content, nil
		}
	}
	return files.Folder(a), nil, nil
}

// putMetadata replaces the registry.hcl of a provider or module, if all of it can be
// used.
func (p *Publisher) putMetadata(ctx context.Context, files tree.Tree, f File, u Upload) (Result, error) {
	if u.Bodiless {
		return Result{}, ErrNothing
	}
	var body bytes.Buffer
	sum, _, err := p.digest(&body, f.Kind, u)
	if err != nil {
		return Result{}, err
	}
	if _, problems := registryhcl.Parse(body.Bytes()); len(problems) > 0 {
		bad := &Refusal{Kind: ErrRefused}
		for _, problem := range problems {
			bad.Reasons = append(bad.Reasons, tree.MetadataName+": "+problem.String())
		}
		return Result{}, bad
	}
	before, changed, err := p.replaceMetadata(ctx, files, f, u, body.Bytes())
	if err != nil {
		return Result{}, err
	}
	result := f.unchanged(sum)
	if changed {
		result = f.added(sum)
		result.Notices = noticeChanges(before, body.Bytes())
	}
	if len(bytes.TrimSpace(body.Bytes())) == 0 {
		result.SHA256 = "" // an empty file is removed
	}
	return result, nil
}

// replaceMetadata writes the registry.hcl, and waits until the index has read it: even
// an unchanged file may have been written a moment ago. It returns the content from
// before.
func (p *Publisher) replaceMetadata(ctx context.Context, files tree.Tree, f File, u Upload, content []byte) (before []byte, changed bool, err error) {
	part, _, err := files.Folder(f.Address).Locate()
	if err != nil {
		return nil, false, err
	}
	unlock, err := p.lock(ctx, part, f.Address.String())
	if err != nil {
		return nil, false, err
	}
	folder, before, err := p.readMetadata(files, f.Address)
	if err == nil {
		err = u.permits(before)
	}
	changed = err == nil && !bytes.Equal(before, content)
	if changed {
		err = folder.WriteMetadata(before, content)
	}
	unlock()
	if changed && err != nil {
		p.changed(folder.Address) // the file may have been written all the same
	}
	switch {
	case errors.Is(err, tree.ErrMetadataChanged): // an operator has copied another one into the tree
		return nil, false, ErrChanged
	case changed && err != nil:
		return nil, false, tree.StorageError(err)
	case err != nil:
		return nil, false, err
	}
	p.awaitScan(ctx, folder.Address)
	return before, changed, nil
}

// permits asks the Precondition of an upload about the file that it replaces.
func (u Upload) permits(before []byte) error {
	if u.Precondition == nil {
		return nil
	}
	var now wire.SHA256
	if before != nil {
		now = sha256.Sum256(before)
	}
	return u.Precondition(now)
}
