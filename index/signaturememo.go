package index

import (
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// A signature that verified is remembered with the memo's digests, under the
// sha256 of the document, the signature and the keys together: verifying those
// of a large tree takes most of a restart. It is not remembered for long, as a
// signature can have a lifetime of its own; the key's is told anew each time.
const signatureMemory = 24 * time.Hour

func signatureRecord(document, signature []byte, keys *keysFile) string {
	d := sha256Of(document)
	all := append(append(append([]byte(nil), d[:]...), keys.sum[:]...), signature...)
	return "signature " + sha256Of(all).String()
}

// verify is the keyring's Verify, or what it said of the same before.
func (m *memo) verify(record string, document, signature []byte, keys *keysFile, now time.Time) (signing.PublicKey, error) {
	if known, ok := m.recent(record, now); ok {
		key := signing.PublicKey{ID: known.h1}
		if known.size != 0 {
			key.Expires = time.Unix(known.size, 0)
		}
		return key, nil
	}
	m.verified.Add(1)
	key, err := keys.Verify(document, signature)
	if err != nil {
		return key, err
	}
	d := digest{stamp: stamp{modTime: now.UnixNano()}, h1: key.ID}
	if !key.Expires.IsZero() {
		d.size = key.Expires.Unix()
	}
	m.keep(record, d)
	return key, nil
}

// recent returns a record that is not older than signatures are remembered.
func (m *memo) recent(record string, now time.Time) (digest, bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	d, ok := m.before[record]
	if !ok {
		d, ok = m.seen[record]
	}
	if age := now.Sub(time.Unix(0, d.stamp.modTime)); !ok || age < 0 || age > signatureMemory {
		return digest{}, false
	}
	m.seen[record] = d
	return d, true
}
