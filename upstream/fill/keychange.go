package fill

import (
	"log/slog"
	"path"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// noteKeys tells of keys that the origin sends for a namespace and the tree did not
// have before. The first ones of a namespace are no news.
func (f *Filler) noteKeys(r *upstream.Release, before namespaceKeys) {
	if !r.Signed() || !before.known() || before.pinned {
		return
	}
	f.outages.end(unsigned(r.Address))
	known := before.ring.Keys()
	var added []string
	for _, key := range r.Keys {
		if !slices.ContainsFunc(known, func(k signing.PublicKey) bool { return k.ID == key.ID }) {
			added = append(added, key.ID)
		}
	}
	if len(added) == 0 {
		return
	}
	f.log(slog.LevelWarn, "the origin has a further key for a namespace: pin its keys if it is not to be trusted with that",
		"namespace", namespaceOf(r.Address), "keys", added)
	f.observe(Event{Kind: KeyAdded, Hostname: r.Address.Hostname, Namespace: r.Address.Namespace, Keys: added}, nil)
}

// noteUnsigned tells of a release without signature, once for a namespace that had
// some before.
func (f *Filler) noteUnsigned(r *upstream.Release, before namespaceKeys) {
	if r.Signed() || !before.known() || !f.outages.begin(unsigned(r.Address)) {
		return
	}
	f.log(slog.LevelWarn, "a namespace that was signed has a release that nobody known has signed",
		"namespace", namespaceOf(r.Address), "provider", r.Address.String(), "version", r.Version)
	f.observe(Event{Kind: SignatureLost, Hostname: r.Address.Hostname, Namespace: r.Address.Namespace}, nil)
}

func (k *namespaceKeys) known() bool { return k.ring != nil && len(k.ring.Keys()) > 0 }

func namespaceOf(a address.Address) string {
	return path.Join(a.Hostname.ForDisplay(), a.Namespace)
}

func unsigned(a address.Address) string { return "unsigned " + namespaceOf(a) }
