package memo

import (
	"crypto/sha256"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Fingerprint returns a digest of the names of entries, and of the stamps of the files among
// them. lasts reports whether any change would change the digest.
func Fingerprint(entries []tree.Entry, now time.Time) (sum wire.SHA256, lasts bool) {
	h := sha256.New()
	var b []byte
	lasts = true
	for _, e := range entries {
		b = append(b[:0], e.Name...)
		b = append(b, 0)
		switch {
		case e.Bad != nil || e.Link:
			lasts = false
		case e.Info.IsDir():
			b = append(b, 'd')
		default:
			stamp := tree.StampOf(e.Info)
			lasts = lasts && stamp.Settled(now)
			b = AppendStamp(append(b, 'f'), stamp)
			if !e.Info.Mode().IsRegular() {
				lasts = false
			}
		}
		h.Write(b)
	}
	h.Sum(sum[:0])
	return sum, lasts
}
