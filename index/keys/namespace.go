package keys

import (
	"fmt"
	"path"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Namespace has one keys file.
type Namespace struct {
	Hostname svchost.Hostname // empty: it is hosted
	Name     string
}

// ParseNamespace parses the form that String returns.
func ParseNamespace(text string) (n Namespace, err error) {
	host, name, mirrored := strings.Cut(text, "/")
	if !mirrored {
		name = text
	} else if n.Hostname, err = address.ParseHostname(host); err != nil {
		return Namespace{}, fmt.Errorf("%q is not a hostname: %w", host, err)
	}
	if n.Name, err = address.ParseNamespace(name); err != nil {
		return Namespace{}, fmt.Errorf("give the namespace as NAMESPACE or HOSTNAME/NAMESPACE: %w", err)
	}
	return n, nil
}

// File returns where the keys of a namespace are expected, in the form that users write.
func (n Namespace) File() string { return "keys/" + n.String() + suffix }

// String returns the namespace in the form that users write: acme, or
// registry.terraform.io/hashicorp.
func (n Namespace) String() string {
	if n.Hostname == "" {
		return n.Name
	}
	return address.DisplayHostname(n.Hostname) + "/" + n.Name
}

const suffix = ".asc"

// NamespaceOf returns the namespace whose keys count for an address.
func NamespaceOf(a address.Address) Namespace {
	return Namespace{Hostname: a.Hostname, Name: a.Namespace}
}

// Missing returns the finding for missing keys, which says what to do.
func (n Namespace) Missing() *tree.Finding {
	return tree.Findingf(tree.KeysMissing, "%s is gone, or cannot be read, and the namespace had keys: put the file back; "+
		"if its releases are no longer signed, write the line `unsigned` into it, or run `caddy-terraform-registry keys forget %s`", n.File(), n)
}

// Locate returns where the keys of a namespace are, or would be, in any spelling: a part
// of the tree, and the path in it. The hostname is empty for a hosted namespace. The error
// is a StorageError: the place is unknown.
func Locate(t tree.Tree, hostname svchost.Hostname, namespace string) (in tree.Part, name string, err error) {
	dir := "."
	if hostname != "" {
		// The spelling that `terraform providers mirror` writes.
		dir, err = findKeys(t.Keys, dir, address.DisplayHostname(hostname), func(name string) bool {
			h, err := address.ParseHostname(name)
			return err == nil && h == hostname
		})
	}
	if err == nil {
		name, err = findKeys(t.Keys, dir, namespace+suffix, func(name string) bool {
			name, ok := strings.CutSuffix(name, suffix)
			parsed, err := address.ParseNamespace(name)
			return ok && err == nil && parsed == namespace
		})
	}
	return t.Keys, name, err
}

// findKeys returns the path of a name in a folder of keys, or of another spelling of it.
func findKeys(p tree.Part, dir, name string, same func(string) bool) (string, error) {
	normal := path.Join(dir, name)
	if exists, err := p.Exists(normal); exists || err != nil {
		return normal, err
	}
	entries, err := p.List(dir)
	if err != nil {
		return "", tree.StorageError(err)
	}
	for _, e := range lowerCaseFirst(entries) {
		if e.Name != name && !same(e.Name) {
			continue
		}
		if e.Bad != nil {
			return "", tree.StorageError(e.Bad)
		}
		return e.Path(), nil
	}
	return normal, nil
}
