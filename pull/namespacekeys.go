package pull

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// keysMarker starts the keys files that a Filler writes. A file without it is the
// operator's, and pins the keys of a namespace.
const (
	keysMarker = "Kept by the registry: "
	keysHeader = keysMarker + "these keys came from the origin. Delete this line to pin them, so that no others count.\n\n"
)

// namespaceKeys are the keys of a namespace in the tree.
type namespaceKeys struct {
	ring     *signing.Keyring // nil: no file, or the file says that the namespace is not signed
	pinned   bool
	unsigned bool // the file says so
	content  []byte
}

// readKeys reads the keys file of the namespace. If a pinned file has no usable key, no
// release is accepted: the purpose of the file is to exclude other keys. The same is
// true if the namespace had keys and its file is gone: the origin's keys must not
// replace them.
func (d *directory) readKeys() (k namespaceKeys, err error) {
	if k.content, err = read(d.keys, d.keysFile, tree.MaxDocument); err != nil {
		return k, err
	}
	if k.content == nil {
		return k, d.requireKeys()
	}
	if k.unsigned = keys.SaysUnsigned(k.content); k.unsigned {
		return k, nil
	}
	ring, _ := signing.ReadKeyring(k.content) // the index reports keys that cannot be used
	k.ring, k.pinned = ring, !bytes.HasPrefix(k.content, []byte(keysMarker))
	return k, nil
}

// pin returns the pinned keyring; nil if the origin's keys count.
func (k namespaceKeys) pin() *signing.Keyring {
	if k.pinned {
		return k.ring
	}
	return nil
}

// known reports whether the namespace has any keys.
func (k namespaceKeys) known() bool { return k.ring != nil && len(k.ring.Keys()) > 0 }

// withKeys returns the file with further keys. It returns nil if none of them is worth
// adding, or if the file must not get any. The keys in the file stay, since releases in
// the tree may be signed by them.
func (k namespaceKeys) withKeys(keys []signing.PublicKey) ([]byte, error) {
	if k.unsigned {
		return nil, nil
	}
	ring := k.ring
	if ring == nil {
		ring = signing.KnownKeyring(nil)
	}
	file := bytes.NewBuffer(bytes.Clone(k.content))
	if file.Len() == 0 {
		file.WriteString(keysHeader)
	} else if !bytes.HasSuffix(k.content, []byte("\n")) {
		file.WriteByte('\n')
	}
	added := 0
	for _, key := range keys {
		if ring.Counts(key) {
			added++
			fmt.Fprintf(file, "%s\n", bytes.TrimSpace([]byte(key.Armor)))
		}
	}
	if added == 0 {
		return nil, nil
	}
	if file.Len() <= tree.MaxDocument {
		if grown, _ := signing.ReadKeyring(file.Bytes()); !slices.ContainsFunc(keys, grown.Counts) {
			return file.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("%w: the namespace has had too many keys, remove those in its keys file that are not needed", ErrConflict)
}
