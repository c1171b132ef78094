package fill

import (
	"bytes"
	"fmt"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// keysMarker is the first line of the keys files that a Filler keeps. Without
// it a file is its operator's, and pins the keys of a namespace.
const (
	keysMarker = "Kept by the registry: "
	keysLine   = keysMarker + "these keys came from the origin. Delete this line to pin them, so that no others count.\n\n"
)

// namespaceKeys are the keys of a namespace, as the tree has them.
type namespaceKeys struct {
	ring    *signing.Keyring // nil: there is no file
	pinned  bool
	content []byte
}

// readKeys reads the keys file of a namespace. A pinned file without a usable
// key lets nothing in: somebody wanted it to keep something out.
func (p *place) readKeys() (k namespaceKeys, err error) {
	if k.content, err = read(p.keys, p.keysFile, maxHeld); err != nil || k.content == nil {
		return k, err
	}
	ring, _ := signing.ReadKeyring(k.content) // the index reports what of it is not usable
	k.ring, k.pinned = ring, !bytes.HasPrefix(k.content, []byte(keysMarker))
	return k, nil
}

// pin is the keyring that alone counts; nil if the origin's keys do.
func (k *namespaceKeys) pin() *signing.Keyring {
	if k.pinned {
		return k.ring
	}
	return nil
}

// with is the file with further keys, nil when it has them all. Those that were
// there stay: what is held may be signed by them.
func (k *namespaceKeys) with(keys []signing.PublicKey) ([]byte, error) {
	known := make(map[string]bool) // all that the file will have
	if k.ring != nil {
		for _, key := range k.ring.Keys() {
			known[key.Armor] = true
		}
	}
	file := bytes.NewBuffer(bytes.Clone(k.content))
	if file.Len() == 0 {
		file.WriteString(keysLine)
	}
	added := false
	for _, key := range keys {
		if !known[key.Armor] {
			known[key.Armor], added = true, true
			fmt.Fprintf(file, "%s\n", bytes.TrimSpace([]byte(key.Armor)))
		}
	}
	switch {
	case !added:
		return nil, nil
	case file.Len() > maxHeld || len(known) > signing.MaxKeys:
		return nil, fmt.Errorf("%w: the namespace has had too many keys, remove those in its keys file that are not needed", ErrConflict)
	}
	return file.Bytes(), nil
}
