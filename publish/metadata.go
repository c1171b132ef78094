package publish

import (
	"bytes"
	"context"
	"errors"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// putMetadata replaces the registry.hcl of a provider or module, if all of it can be
// used.
func (p *Publisher) putMetadata(ctx context.Context, tree index.Tree, f File, u Upload) (Result, error) {
	if u.Bodiless {
		return Result{}, ErrNothing
	}
	var body bytes.Buffer
	sum, _, err := p.digest(&body, f.Kind, u)
	if err != nil {
		return Result{}, err
	}
	if _, problems := index.ParseMetadata(body.Bytes()); len(problems) > 0 {
		bad := &Refusal{Kind: ErrRefused}
		for _, problem := range problems {
			bad.Reasons = append(bad.Reasons, index.MetadataName+": "+problem.String())
		}
		return Result{}, bad
	}
	changed, err := p.replaceMetadata(ctx, tree, f, body.Bytes())
	if err != nil {
		return Result{}, err
	}
	p.awaitScan(ctx, f.Address) // unchanged, it may have come a moment ago
	if !changed {
		return f.unchanged(sum), nil
	}
	return f.added(sum), nil
}

func (p *Publisher) replaceMetadata(ctx context.Context, tree index.Tree, f File, content []byte) (changed bool, err error) {
	folder := tree.Folder(f.Address)
	part, _, err := folder.In()
	if err != nil {
		return false, err
	}
	unlock, err := p.lockIn(ctx, part, f.Address.String())
	if err != nil {
		return false, err
	}
	defer unlock()
	before, err := folder.ReadMetadata()
	if err != nil {
		return false, index.StorageError(err)
	}
	if bytes.Equal(before, content) {
		return false, nil
	}
	err = folder.WriteMetadata(before, content)
	if errors.Is(err, index.ErrMetadataChanged) {
		return false, conflict("%s of %s has been changed meanwhile: send it again", f.Name, f.Address)
	}
	return true, index.StorageError(err)
}
