package clientconfig

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Credentials returns the block that has a token for a hostname.
func Credentials(hostname, token string) string {
	return fmt.Sprintf("credentials %s {\n  token = %s\n}\n", quote(hostname), quote(token))
}

// Token returns the token for a hostname; empty if the file has none. It ignores mistakes elsewhere
// in the file.
func (f *File) Token(hostname svchost.Hostname) (string, error) {
	blocks, diagnostics := f.blocks(hcl.BlockHeaderSchema{Type: "credentials", LabelNames: []string{"hostname"}})
	for _, b := range blocks {
		if name, err := address.ParseHostname(b.Labels[0]); err != nil || name != hostname {
			continue
		}
		if a := argument(b, "token"); a != nil {
			if token, ok := stringValue(a); ok && token != "" {
				return token, nil
			}
		}
		return "", fmt.Errorf("its credentials for %s have no token", hostname.ForDisplay())
	}
	return "", f.unread(slices.DeleteFunc(slices.Concat(f.diagnostics, diagnostics), func(d *hcl.Diagnostic) bool {
		return d.Summary == "Missing block label" // {"credentials": {}}, as a logout leaves it
	}))
}

// A Helper is a program that users name in their configuration, which tells tokens of hosts, as from
// a password manager.
type Helper struct {
	Name string // of the program, without terraform-credentials-
	Args []string
}

// Helper returns the credentials_helper; nil if the file has none. It ignores mistakes elsewhere in
// the file.
func (f *File) Helper() (*Helper, error) {
	blocks, _ := f.blocks(hcl.BlockHeaderSchema{Type: "credentials_helper", LabelNames: []string{"name"}})
	if len(blocks) == 0 {
		return nil, nil
	}
	b := blocks[0] // clients refuse a second one
	h := &Helper{Name: b.Labels[0]}
	if a := argument(b, "args"); a != nil {
		var ok bool
		if h.Args, ok = stringList(a); !ok {
			return nil, errors.New("args of its credentials_helper are no list of strings")
		}
	}
	return h, nil
}
