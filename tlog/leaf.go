package tlog

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An Event says what has happened to a package or a version.
type Event string

const (
	// Found: it was there when the log was begun. Nothing is known of its age.
	Found Event = "found"

	// Offered: clients could download it from this time on.
	Offered Event = "offered"

	// Repacked: the same content, by its "h1:", has other bytes, by its "zh:".
	Repacked Event = "repacked"

	// Withdrawn is an event of a whole version, whose end is Restored.
	Withdrawn Event = "withdrawn"

	// Restored means that the version is withdrawn no longer.
	Restored Event = "restored"
)

var events = []Event{Found, Offered, Repacked, Withdrawn, Restored}

// HasPackage reports whether a leaf of the event has the hashes of a package.
func (e Event) HasPackage() bool { return e == Found || e == Offered || e == Repacked }

// MaxLeaf is the length of the longest leaf, in bytes: the format of a bundle has two bytes
// for it.
const MaxLeaf = 1<<16 - 1

// A Leaf is an entry of a log. Its text has fields separated by one space:
//
//	offered 2026-11-24T22:00:00Z module acme/vpc/aws 1.2.0 h1:… zh:… 9f…
//	offered 2026-11-24T22:00:00Z provider acme/demo 1.2.0 linux_amd64 h1:… zh:… key:C5F323384ED56B62 9f…
//	withdrawn 2026-11-25T08:00:00Z module acme/vpc/aws 1.2.0 9f…
type Leaf struct {
	Event Event

	// Time of the event by the clock of the server, in UTC, to the second.
	Time time.Time

	// Address without HOSTNAME if the registry hosts it, so that a registry can be renamed.
	Address address.Address

	// Version as the registry spells it.
	Version string

	// Platform of a provider's package. It is empty for modules, and in events of a whole
	// version.
	Platform address.Platform

	// Hashes of the package: one "zh:", and before it one "h1:" or several.
	Hashes []string

	// Pack is the number of the rule by which the files of a folder were packed. 0: the
	// package is no packed folder.
	Pack int

	// Key is the ID of the key that has signed the release of a provider, 16 hexadecimal
	// digits; empty: the registry has signed it.
	Key string

	// Origin is when the package was published, by the account of the registry that it is
	// mirrored from, as far as its own lists did not contradict that; zero: not known.
	Origin time.Time

	// Commit of the git repository from which the registry has packed the version of a module that it
	// hosts, in hexadecimal; empty: it comes from none.
	Commit string

	// Nonce makes the hash of a leaf impossible to guess: the hashes in a proof must not
	// confirm a guess of an entry.
	Nonce [16]byte
}

// newNonce returns random bytes for a leaf.
func newNonce() (nonce [16]byte) {
	rand.Read(nonce[:])
	return nonce
}

// String returns the text of the leaf, without an end of line.
func (l Leaf) String() string {
	fields := []string{string(l.Event), formatTime(l.Time), kindOf(l.Address), l.Address.String(), l.Version}
	if l.Platform != (address.Platform{}) {
		fields = append(fields, l.Platform.String())
	}
	fields = append(fields, l.Hashes...)
	if l.Pack != 0 {
		fields = append(fields, "pack:"+strconv.Itoa(l.Pack))
	}
	if l.Key != "" {
		fields = append(fields, "key:"+l.Key)
	}
	if !l.Origin.IsZero() {
		fields = append(fields, "origin:"+formatTime(l.Origin))
	}
	if l.Commit != "" {
		fields = append(fields, "commit:"+l.Commit)
	}
	return strings.Join(append(fields, hex.EncodeToString(l.Nonce[:])), " ")
}

func kindOf(a address.Address) string {
	if a.IsModule() {
		return "module"
	}
	return "provider"
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || formatTime(t) != s {
		return time.Time{}, fmt.Errorf("%q is no time in UTC to the second", s)
	}
	return t, nil
}

// ParseLeaf reads the text of a leaf. It skips fields with a name that it does not know, such
// as later versions may add.
func ParseLeaf(text string) (Leaf, error) {
	l, err := parseLeaf(text)
	if err != nil {
		return Leaf{}, fmt.Errorf("entry %.100q: %w", text, err)
	}
	return l, nil
}

func parseLeaf(text string) (l Leaf, err error) {
	if len(text) > MaxLeaf {
		return Leaf{}, fmt.Errorf("it has more than %d bytes", MaxLeaf)
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Leaf{}, errors.New("it is no line of text")
	}
	fields := strings.Split(text, " ")
	if len(fields) < 6 || slices.Contains(fields, "") {
		return Leaf{}, errors.New("it has not the fields EVENT TIME KIND ADDRESS VERSION … NONCE, with one space between them")
	}
	if l.Event = Event(fields[0]); !slices.Contains(events, l.Event) {
		return Leaf{}, fmt.Errorf("event %q is not known", fields[0])
	}
	if l.Time, err = parseTime(fields[1]); err != nil {
		return Leaf{}, err
	}
	if l.Address, err = address.Parse(fields[3]); err != nil {
		return Leaf{}, err
	}
	if kind := kindOf(l.Address); kind != fields[2] {
		return Leaf{}, fmt.Errorf("%s is the address of a %s", fields[3], kind)
	}
	l.Version = fields[4]
	if err = address.CheckModuleVersion(l.Version); err != nil {
		return Leaf{}, err
	}
	nonce, err := hex.DecodeString(fields[len(fields)-1])
	if err != nil || len(nonce) != len(l.Nonce) {
		return Leaf{}, errors.New("it does not end with 16 bytes in hexadecimal")
	}
	copy(l.Nonce[:], nonce)
	for i, field := range fields[5 : len(fields)-1] {
		if err := l.setField(i, field); err != nil {
			return Leaf{}, err
		}
	}
	return l, l.check()
}

func (l *Leaf) setField(i int, field string) (err error) {
	name, value, named := strings.Cut(field, ":")
	switch {
	case !named && i == 0 && !l.Address.IsModule():
		l.Platform, err = address.ParsePlatformName(field)
		return err
	case !named:
		return fmt.Errorf("field %q has no name", field)
	case wire.IsCompared(field):
		l.Hashes = append(l.Hashes, field)
		return nil
	case name == "pack":
		if l.Pack, err = strconv.Atoi(value); err != nil || l.Pack < 1 || strconv.Itoa(l.Pack) != value {
			return fmt.Errorf("%q is no number of a rule for packing", value)
		}
		return nil
	case name == "key":
		if b, err := hex.DecodeString(value); err != nil || len(b) != 8 || strings.ToUpper(value) != value {
			return fmt.Errorf("%q is no ID of a key, of 16 hexadecimal digits", value)
		}
		l.Key = value
		return nil
	case name == "origin":
		l.Origin, err = parseTime(value)
		return err
	case name == "commit":
		if b, err := hex.DecodeString(value); err != nil || len(b) != 20 && len(b) != 32 || strings.ToLower(value) != value {
			return fmt.Errorf("%q is no commit, of 40 or 64 hexadecimal digits", value)
		}
		l.Commit = value
		return nil
	default:
		return nil
	}
}

// IsAmbiguous reports whether an entry of a module has several "h1:", so that it would be of several
// packages. The zip of a provider may have two (checklist 68).
func (l Leaf) IsAmbiguous() bool { return l.Address.IsModule() && len(l.Hashes) > 2 }

// check refuses leaves that are not what a log writes.
func (l Leaf) check() error {
	if !l.Event.HasPackage() {
		if len(l.Hashes) != 0 || l.Platform != (address.Platform{}) {
			return fmt.Errorf("%s is an event of a version, and has no package", l.Event)
		}
		return nil
	}
	if (l.Platform == (address.Platform{})) != l.Address.IsModule() {
		return errors.New("a package of a provider has a platform, and no other one has")
	}
	last := len(l.Hashes) - 1
	for i, hash := range l.Hashes {
		want, parse, write := "h1", wire.ParseH1, wire.SHA256.H1
		if i == last {
			want, parse, write = "zh", wire.ParseZH, wire.SHA256.ZH
		}
		if sum, ok := parse(hash); !ok || write(sum) != hash { // a hash has one form
			return fmt.Errorf("hash %d is %q, which is no %s: of a package", i+1, hash, want)
		}
	}
	if last < 1 {
		return errors.New("it has not both an h1: and a zh: hash")
	}
	return nil
}
