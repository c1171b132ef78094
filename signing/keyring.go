package signing

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// A Keyring has the public keys of a namespace. It does not change, and is safe for
// concurrent use.
type Keyring struct {
	members []member
	now     func() time.Time
}

// A member is a public key in two forms: as clients receive it, and as they read it.
type member struct {
	public PublicKey
	read   func() openpgp.EntityList
}

// KnownKeyring returns a keyring of keys that ReadKeyring has returned before, perhaps
// before a restart. Reading a key verifies the signatures in it, which takes most of a
// millisecond, so it is postponed until a signature has to be verified.
func KnownKeyring(keys []PublicKey) *Keyring {
	ring := &Keyring{now: time.Now}
	for _, key := range keys {
		ring.members = append(ring.members, member{public: key, read: sync.OnceValue(func() openpgp.EntityList {
			entities, _ := openpgp.ReadArmoredKeyRing(strings.NewReader(key.Armor)) // ReadKeyring has read it before
			return entities
		})})
	}
	return ring
}

// ReadKeyring reads a keys file, which has ASCII armor blocks of public keys with any
// text between them. It leaves out blocks and keys that clients could not use and
// returns an error for each. The Keyring has the other keys and is never nil.
func ReadKeyring(armored []byte) (*Keyring, []error) {
	ring := &Keyring{now: time.Now}
	if len(armored) > maxSize {
		return ring, []error{fmt.Errorf("the keys file is larger than %d bytes: keep only public keys in it", maxSize)}
	}
	found := blocks(armored)
	if len(found) == 0 {
		return ring, []error{fmt.Errorf("the keys file is not usable: %w", noBlock(openpgp.PublicKeyType))}
	}
	var problems []error
	count, work := 0, 0
	keys := make([][][]*packet.OpaquePacket, len(found)) // keys of each block
	failed := make([]error, len(found))
	for i, b := range found {
		keys[i], failed[i] = b.publicKeys()
		if count += len(keys[i]); count > MaxKeys {
			return ring, []error{fmt.Errorf("the keys file has more than %d keys: keep only those that sign releases", MaxKeys)}
		}
	}
	for i, block := range keys {
		if failed[i] != nil {
			problems = append(problems, fmt.Errorf("key block %d: %w", i+1, failed[i]))
		}
		for _, packets := range block {
			m, err := newMember(packets, &work)
			if err != nil {
				problems = append(problems, fmt.Errorf("key block %d: %w", i+1, err))
				continue
			}
			ring.add(m)
		}
	}
	return ring, problems
}

// add adds a key. A publisher may have extended a key, so that there are several copies
// of it. The copy that is valid for longest counts, at the position of the first copy:
// some clients stop at the first key with the ID of the signature's issuer. The other
// copy stays, behind all keys so far, if it has sub-keys that the first copy lacks.
func (r *Keyring) add(m member) {
	i := slices.IndexFunc(r.members, m.sameKey)
	if i < 0 {
		r.members = append(r.members, m)
		return
	}
	if m.outlasts(r.members[i]) {
		r.members[i], m = m, r.members[i]
	}
	if !slices.ContainsFunc(r.members, func(known member) bool { return known.sameKey(m) && known.hasSubkeysOf(m) }) {
		r.members = append(r.members, m)
	}
}

// sameKey reports whether two members are copies of one key.
func (m member) sameKey(other member) bool {
	return bytes.Equal(m.read()[0].PrimaryKey.Fingerprint, other.read()[0].PrimaryKey.Fingerprint)
}

// outlasts reports whether this copy of a key counts instead of the other copy: it is
// revoked, expires later, or was signed by the key later, as when a sub-key has been
// extended.
func (m member) outlasts(other member) bool {
	mine, others := m.read()[0], other.read()[0]
	switch end, otherEnd := m.public.Expires, other.public.Expires; {
	case len(mine.Revocations) > 0 != (len(others.Revocations) > 0):
		return len(mine.Revocations) > 0
	case !end.Equal(otherEnd):
		return end.IsZero() || !otherEnd.IsZero() && end.After(otherEnd)
	}
	return lastSelfSignature(mine).After(lastSelfSignature(others))
}

// lastSelfSignature returns the time at which a key last signed one of its user IDs or
// sub-keys.
func lastSelfSignature(entity *openpgp.Entity) (last time.Time) {
	note := func(s *packet.Signature) {
		if s != nil && s.CreationTime.After(last) {
			last = s.CreationTime
		}
	}
	for _, identity := range entity.Identities {
		note(identity.SelfSignature)
	}
	for _, sub := range entity.Subkeys {
		note(sub.Sig)
	}
	return last
}

// hasSubkeysOf reports whether m has all sub-keys of the other copy.
func (m member) hasSubkeysOf(other member) bool {
	return !slices.ContainsFunc(other.read()[0].Subkeys, func(sub openpgp.Subkey) bool {
		return !slices.ContainsFunc(m.read()[0].Subkeys, func(own openpgp.Subkey) bool {
			return bytes.Equal(own.PublicKey.Fingerprint, sub.PublicKey.Fingerprint)
		})
	})
}

// Counts reports whether a key is worth keeping: the ring has neither the key nor a
// copy that is valid for longer. A key that cannot be used does not count.
func (r *Keyring) Counts(key PublicKey) bool {
	if slices.ContainsFunc(r.Keys(), func(known PublicKey) bool { return known.Armor == key.Armor }) {
		return false
	}
	further, _ := ReadKeyring([]byte(key.Armor))
	with := &Keyring{members: slices.Clone(r.members)}
	for _, m := range further.members {
		with.add(m)
	}
	return !slices.EqualFunc(with.Keys(), r.Keys(), func(a, b PublicKey) bool { return a.Armor == b.Armor })
}

// Keys returns the usable public keys in the order of the file. Of several copies of a
// key it returns only the copy that counts.
func (r *Keyring) Keys() []PublicKey {
	keys := make([]PublicKey, len(r.members))
	for i, m := range r.members {
		keys[i] = m.public
	}
	return keys
}

// publicKeys decodes a block of public keys.
func (b block) publicKeys() ([][]*packet.OpaquePacket, error) {
	switch b.label {
	case openpgp.PublicKeyType:
		return b.keys()
	case openpgp.PrivateKeyType:
		return nil, errPrivate
	}
	return nil, fmt.Errorf("it is a %s, not a public key: remove it", b.label)
}

// errPrivate depends on the packets, too: a private key with a wrong label is still
// private.
var errPrivate = errors.New("it is a private key and is not used: remove it, " +
	"and put in the public key as written by gpg --armor --export KEY; if others could read this file, replace the key")

// newMember makes a member of the packets of a public key. The error says why clients
// could not use the key (checklist 42). newMember adds to the work for reading the keys
// of the document.
func newMember(packets []*packet.OpaquePacket, work *int) (member, error) {
	var raw bytes.Buffer
	for _, p := range packets {
		if p.Tag == tagPrivateKey || p.Tag == tagPrivateSubkey {
			return member{}, errPrivate
		}
		if err := p.Serialize(&raw); err != nil {
			return member{}, err
		}
	}
	if err := checkBounds(packets); err != nil {
		return member{}, err
	}
	if *work += verifyingWork(packets); *work > maxVerifyingWork {
		return member{}, errTooMuchWork
	}
	first, err := packets[0].Parse()
	if err != nil {
		return member{}, fmt.Errorf("clients cannot read this kind of key, use RSA or Ed25519: %w", err)
	}
	primary, ok := first.(*packet.PublicKey)
	if !ok {
		return member{}, errors.New("it does not begin with a public key: export it again")
	}
	text, err := enarmor(openpgp.PublicKeyType, raw.Bytes())
	if err != nil {
		return member{}, err
	}
	entities, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(text))
	if err == nil && len(entities) != 1 {
		err = errors.New("there is no key in it")
	}
	if err != nil {
		return member{}, fmt.Errorf("clients cannot read key %s, export it again: %w", primary.KeyIdString(), err)
	}
	if err := usable(entities); err != nil {
		return member{}, fmt.Errorf("clients cannot use key %s: %w", primary.KeyIdString(), err)
	}
	self, identity := primarySelfSignature(entities[0])
	public := PublicKey{
		ID:      primary.KeyIdString(),
		Armor:   string(text),
		Created: primary.CreationTime.UTC(),
		Expires: expiry(primary, self),
	}
	if identity != nil {
		public.UserID = strings.ToValidUTF8(identity.Name, "\uFFFD")
	}
	return member{
		public: public,
		read:   func() openpgp.EntityList { return entities },
	}, nil
}

// usable returns an error if clients cannot use a key that this version of the library
// reads.
func usable(entities openpgp.EntityList) error {
	entity := entities[0]
	// Clients' versions of the library do not know post-quantum sub-keys, and then take
	// the signatures of such a sub-key for signatures of the sub-key before it.
	modern := entity.PrimaryKey.Version != 4
	signs := len(entities.KeysByIdUsage(entity.PrimaryKey.KeyId, packet.KeyFlagSign)) > 0
	for _, sub := range entity.Subkeys {
		modern = modern || sub.PublicKey.Version != 4 || sub.IsPQ()
		signs = signs || len(entities.KeysByIdUsage(sub.PublicKey.KeyId, packet.KeyFlagSign)) > 0
	}
	if modern {
		return errors.New("it is newer than OpenPGP version 4: use an RSA or Ed25519 key of version 4")
	}
	// The library dereferences the self-signature of a user ID that has only been
	// revoked, and so makes the client crash.
	for _, identity := range entity.Identities {
		if identity.SelfSignature == nil {
			return fmt.Errorf("its user ID %.200q is not self-signed: export it again with --export-options export-clean", identity.Name)
		}
	}
	if !signs {
		return errors.New("neither it nor a sub-key is marked for signing: use a key made for signing")
	}
	return nil
}

// primarySelfSignature is like the library's method, but always returns the same
// signature. If user IDs are equally good, for example because they were added within
// the same second, the library takes any of them.
func primarySelfSignature(entity *openpgp.Entity) (*packet.Signature, *openpgp.Identity) {
	self, chosen := entity.PrimarySelfSignature()
	if chosen == nil {
		return self, nil
	}
	isPrimary := func(i *openpgp.Identity) bool {
		return i.SelfSignature.IsPrimaryId != nil && *i.SelfSignature.IsPrimaryId
	}
	for _, i := range entity.Identities {
		if i.Name < chosen.Name && len(i.Revocations) == len(chosen.Revocations) && isPrimary(i) == isPrimary(chosen) &&
			i.SelfSignature.CreationTime.Equal(self.CreationTime) {
			self, chosen = i.SelfSignature, i
		}
	}
	return self, chosen
}

// expiry returns the time at which a key expires by its self-signature; zero means
// never.
func expiry(key *packet.PublicKey, self *packet.Signature) time.Time {
	if self == nil || self.KeyLifetimeSecs == nil || *self.KeyLifetimeSecs == 0 {
		return time.Time{}
	}
	return key.CreationTime.Add(time.Duration(*self.KeyLifetimeSecs) * time.Second).UTC()
}
