package publish

import (
	"context"
	"errors"
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// keys returns the publisher's keys, and whether a release needs their signature. The
// keys are nil if the namespace is not signed. They are the keys that the index uses
// for the folder of the release. If that has none, the keys under another name of the
// registry count. If keys are missing or unreadable, nothing is published: the error is
// a *Refusal, or a tree.ErrNotWritable. It is ErrUnavailable if another folder has taken the
// place of the keys.
func (p *Publisher) keys(ctx context.Context, files tree.Tree, present *presentRelease) (keys *signing.Keyring, needsSignature bool, err error) {
	keys, needsSignature, err = p.readKeys(ctx, files, present)
	var missing *Refusal
	if (err == nil || errors.As(err, &missing)) && !files.Keys.Same() {
		return nil, true, p.unavailable("reading the keys", tree.ErrReplaced)
	}
	return keys, needsSignature, err
}

func (p *Publisher) readKeys(ctx context.Context, files tree.Tree, present *presentRelease) (ring *signing.Keyring, needsSignature bool, err error) {
	first, namespace := present.address.Hostname, present.address.Namespace
	others := slices.DeleteFunc(p.hostnames(), func(h svchost.Hostname) bool { return h == first })
	for _, hostname := range append([]svchost.Hostname{first}, others...) {
		part, name, err := keys.Locate(files, hostname, namespace)
		if err != nil {
			return nil, true, err
		}
		content, err := part.ReadFile(name, tree.MaxDocument)
		switch {
		case err != nil:
			return nil, true, err
		case keys.SaysUnsigned(content):
			return nil, p.options.RequireSignatures, nil
		case content != nil:
			ring, _ = signing.ReadKeyring(content) // the index reports the unusable part of it
			return ring, true, nil
		}
		if err := keys.Require(ctx, p.options.KeyCopies, hostname, namespace); errors.Is(err, keys.ErrMissing) {
			return nil, true, refused("%v", err)
		} else if err != nil {
			return nil, true, err
		}
	}
	return nil, p.options.RequireSignatures, nil
}
