package keys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// The reasons why the copy of a keys file is not forgotten. Callers compare them by
// errors.Is.
var (
	// ErrNoCopy means that there is no copy.
	ErrNoCopy = errors.New("there is no copy of its keys")

	// ErrNotGone means that the keys file exists, or may exist.
	ErrNotGone = errors.New("its keys file is not gone")
)

// Copies keep copies of keys files outside of the tree, so that a namespace that had
// keys goes on requiring them. Namespaces are named as users write them: acme, or
// registry.terraform.io/hashicorp.
type Copies interface {
	// Load returns the copy of a namespace. The error wraps fs.ErrNotExist only if there is
	// no copy.
	Load(ctx context.Context, namespace string) ([]byte, error)

	// Store creates or replaces the copy of a namespace, whole or not at all.
	Store(ctx context.Context, namespace string, copied []byte) error

	// Delete removes the copy of a namespace, if there is one.
	Delete(ctx context.Context, namespace string) error
}

// ErrMissing means that a namespace had keys, and their file is gone.
var ErrMissing = errors.New("the keys of the namespace are missing")

// Require is for a namespace without a keys file. It returns an ErrMissing if there
// is a copy of a file, and an ErrNotWritable if that is unknown. The hostname is empty for a
// hosted namespace. If copies is nil, no keys are required.
func Require(ctx context.Context, copies Copies, hostname svchost.Hostname, namespace string) error {
	if copies == nil {
		return nil
	}
	n := Namespace{Hostname: hostname, Name: namespace}
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	switch _, err := copies.Load(ctx, n.String()); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: whether %s had keys is not known", tree.ErrNotWritable, n)
	}
	return fmt.Errorf("%w: %s", ErrMissing, n.Missing().Detail)
}

// copyPatience is the longest time that a scan spends on storing copies, and on loading the
// copies of lost keys files; the first scan, also on loading all others. The remaining copies
// are tried again.
const copyPatience = 20 * time.Second

// copiesAtOnce is how many copies are loaded or stored at once: they may lie on another
// machine.
const copiesAtOnce = 16

// A keyCopy is the copy of a keys file, with the releases that its keys have verified: it
// verifies no other releases. It is immutable.
type keyCopy struct {
	keys     string            // in ASCII armor
	releases map[string]string // digests in hex, by type and version
	sum      wire.SHA256       // of all that
}

// A copyDocument is the stored form of a keyCopy.
type copyDocument struct {
	Keys     string            `json:"keys"`
	Releases map[string]string `json:"releases"`
}

// errCopyDamaged means that the stored document is not a copy of keys.
var errCopyDamaged = errors.New("the copy of its keys is damaged")

func decodeCopy(content []byte) (*keyCopy, error) {
	var d copyDocument
	if err := json.Unmarshal(content, &d); err != nil || d.Keys == "" {
		return nil, errCopyDamaged
	}
	return &keyCopy{keys: d.Keys, releases: d.Releases, sum: wire.SHA256Of(content)}, nil
}

func (c *keyCopy) encode() []byte {
	content, _ := json.Marshal(copyDocument{c.keys, c.releases}) // texts always encode
	return content
}

// has reports whether the keys have verified a release. A nil copy has none.
func (c *keyCopy) has(r Release) bool { return c != nil && c.releases[r.name] == r.digest }

// hasKeys reports whether the copy has the keys of a file. It makes no text of them: the keys of
// thousands of files are compared.
func (c *keyCopy) hasKeys(file *File) bool {
	rest, same := c.keys, true
	for _, key := range file.Keys() {
		if rest, same = strings.CutPrefix(rest, strings.TrimSpace(key.Armor)); same {
			rest, same = strings.CutPrefix(rest, "\n")
		}
		if !same {
			return false
		}
	}
	return rest == ""
}

// withKeys returns a copy with these keys instead of its own, and with further releases.
// Releases that are gone stay: they may only be unreadable at the moment.
func (c *keyCopy) withKeys(keys string, releases []Release) *keyCopy {
	next := &keyCopy{keys: keys, releases: make(map[string]string)}
	if c != nil {
		maps.Copy(next.releases, c.releases)
	}
	for _, r := range releases {
		next.releases[r.name] = r.digest
	}
	next.sum = wire.SHA256Of(next.encode())
	return next
}

// A Release identifies a release in a copy.
type Release struct{ name, digest string }

// release identifies the release by its documents.
func (c *Claim) release() Release {
	sum := wire.SHA256Of(c.Checksums)
	return Release{c.Address.Name + " " + c.Version, wire.SHA256Of(append(sum[:], c.Signature...)).String()}
}

// armored returns the keys of a file in the form of a copy.
func armored(keys []signing.PublicKey) string {
	var b strings.Builder
	for _, key := range keys {
		b.WriteString(strings.TrimSpace(key.Armor) + "\n")
	}
	return b.String()
}
