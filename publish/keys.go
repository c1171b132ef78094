package publish

import (
	"context"
	"errors"
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// namespaceKeys are the keys of publishers that count for the releases of a namespace.
type namespaceKeys struct {
	ring     *signing.Keyring // nil: the namespace is not signed
	required bool             // a release needs the signature of its publisher
}

// keys returns the keys that the index uses for the folder of an address. If its namespace has none, the
// keys under another name of the registry count. If keys are missing or unreadable, nothing is
// published: the error is a *Refusal, or a tree.ErrNotWritable. It is ErrUnavailable if another
// folder has taken the place of the keys.
func (p *Publisher) keys(ctx context.Context, files tree.Tree, a address.Address) (namespaceKeys, error) {
	k, err := p.readKeys(ctx, files, a)
	var missing *Refusal
	if (err == nil || errors.As(err, &missing)) && !files.Keys.Same() {
		return k, p.unavailable("reading the keys", tree.ErrReplaced)
	}
	return k, err
}

func (p *Publisher) readKeys(ctx context.Context, files tree.Tree, a address.Address) (k namespaceKeys, err error) {
	first, namespace := a.Hostname, a.Namespace
	others := slices.DeleteFunc(p.hostnames(), func(h svchost.Hostname) bool { return h == first })
	for _, hostname := range append([]svchost.Hostname{first}, others...) {
		part, name, err := keys.Locate(files, hostname, namespace)
		if err != nil {
			return k, err
		}
		content, err := part.ReadFile(name, tree.MaxDocument)
		switch {
		case err != nil:
			return k, err
		case keys.SaysUnsigned(content):
			return namespaceKeys{required: p.options.RequireSignatures}, nil
		case content != nil:
			ring, _ := signing.ReadKeyring(content) // the index reports the unusable part of it
			return namespaceKeys{ring, true}, nil
		}
		if err := keys.Require(ctx, p.options.KeyCopies, hostname, namespace); errors.Is(err, keys.ErrMissing) {
			return k, refused("%v", err)
		} else if err != nil {
			return k, err
		}
	}
	return namespaceKeys{required: p.options.RequireSignatures}, nil
}
