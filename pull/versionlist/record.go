// Package versionlist has the list of versions that an origin has sent, as it is kept in a tree. It
// says how old a version is: when it was published, as far as the origin has said so and its own
// lists do not contradict it, and when it was first seen.
package versionlist

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// recordFormat is the only format.
const recordFormat = 1

// maxRecord limits the size of a record that is read, in bytes; no list of versions is
// larger.
const maxRecord = 8 << 20

// A version that is missing in an origin's list may be back in the next list. The time
// at which it was first seen is remembered for this long, and for this many versions.
const (
	missingFor = 90 * 24 * time.Hour
	maxMissing = 2000
)

// A Record is a list of versions from an origin. It does not change.
type Record struct {
	Of       string         // the repository and the tags, of a hosted module
	Fetched  time.Time      // when the origin was asked: what is new since then may be missing
	Versions []DatedVersion // newest first

	missing []missingVersion // the last missing ones first
}

// A missingVersion was in earlier lists and is not in this record's list.
type missingVersion struct {
	DatedVersion           // without protocols and platforms
	Listed       time.Time // time of the last list with the version
}

// A DatedVersion is a version with the known facts about its age.
type DatedVersion struct {
	wire.ProviderVersion
	Published time.Time // according to the origin; zero: unknown
	Lacked    time.Time // time of the last list without the version, before it was first seen; zero: there was none
	Seen      time.Time // time of the first list with the version
	Asked     bool      // the origin has been asked for Published
}

// published returns when the version was published; zero: unknown. The word of the origin counts
// as far as its own lists do not contradict it: a version is younger than the last list without
// it. So an origin that says that a new version is old is believed only about versions that were
// there before it was first asked.
func (d DatedVersion) published() time.Time {
	if d.Published.IsZero() {
		return time.Time{}
	}
	return later(d.Published, d.Lacked)
}

// Matures returns when a version reaches the minimum release age, counted from its
// publication. If the origin does not say when that was, it counts from when the
// version was first seen: neither its number nor its place in the list says anything
// about its age.
func (d DatedVersion) Matures(minAge time.Duration) time.Time {
	switch {
	case minAge == 0:
		return time.Time{}
	case !d.Published.IsZero():
		return d.published().Add(minAge)
	}
	return d.Seen.Add(minAge)
}

// New makes the record of a list. before is the previous record; nil if there is
// none.
func New(list []wire.ProviderVersion, before *Record, now time.Time) *Record {
	r := &Record{Fetched: now, Versions: make([]DatedVersion, len(list))}
	var lacked time.Time
	if before != nil && before.Fetched.Before(now) { // else a clock was wrong
		lacked = before.Fetched
	}
	for i, v := range list {
		r.Versions[i] = DatedVersion{ProviderVersion: v, Lacked: lacked, Seen: now}
	}
	if before == nil {
		return r
	}
	return r.WithPastOf(before)
}

// WithPastOf returns the record with the facts about the past in another record: when
// versions were first seen and published, and which versions there were. The other
// record may be earlier or later, and from another instance.
func (r *Record) WithPastOf(other *Record) *Record {
	forgotten := func(m missingVersion) bool { return !m.Listed.Add(missingFor).After(r.Fetched) }
	missing := make(map[string]missingVersion)
	for _, m := range slices.Concat(slices.DeleteFunc(slices.Concat(other.missing, r.missing), forgotten), other.listed()) {
		if known, ok := missing[m.Version]; ok {
			m.Listed = later(m.Listed, known.Listed)
			m.DatedVersion = m.withPastOf(known.DatedVersion)
		}
		missing[m.Version] = m
	}
	merged := &Record{Of: r.Of, Fetched: r.Fetched, Versions: slices.Clone(r.Versions)}
	for i, d := range merged.Versions {
		if known, ok := missing[d.Version]; ok {
			merged.Versions[i] = d.withPastOf(known.DatedVersion)
			delete(missing, d.Version)
		}
	}
	for _, m := range missing {
		if !forgotten(m) {
			merged.missing = append(merged.missing, m)
		}
	}
	slices.SortFunc(merged.missing, func(a, b missingVersion) int {
		return cmp.Or(b.Listed.Compare(a.Listed), strings.Compare(a.Version, b.Version))
	})
	if len(merged.missing) > maxMissing {
		merged.missing = slices.Clone(merged.missing[:maxMissing])
	}
	return merged
}

// maxSkew is how far the clocks of instances may differ.
const maxSkew = time.Hour

// NewerThan reports whether a record was fetched after another one. A record from the future is older than
// all others: a clock was wrong, and the record would otherwise win until that time has come.
func (r *Record) NewerThan(other *Record, now time.Time) bool {
	future := now.Add(maxSkew)
	return !r.Fetched.After(future) && (r.Fetched.After(other.Fetched) || other.Fetched.After(future))
}

// listed returns the versions of the record, in the form for versions missing in
// another one.
func (r *Record) listed() []missingVersion {
	list := make([]missingVersion, len(r.Versions))
	for i, d := range r.Versions {
		d.ProviderVersion = wire.ProviderVersion{Version: d.Version}
		list[i] = missingVersion{d, r.Fetched}
	}
	return list
}

// withPastOf returns the version with the known facts about it in another record.
func (d DatedVersion) withPastOf(known DatedVersion) DatedVersion {
	if !d.Asked {
		d.Published, d.Asked = known.Published, known.Asked
	}
	if known.Seen.Before(d.Seen) {
		d.Seen, d.Lacked = known.Seen, known.Lacked
	}
	return d
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Find finds a version by its text.
func (r *Record) Find(text string) (DatedVersion, bool) {
	i := slices.IndexFunc(r.Versions, func(d DatedVersion) bool { return d.Version == text })
	if i < 0 {
		return DatedVersion{}, false
	}
	return r.Versions[i], true
}

// Mature returns the versions that have the minimum release age.
func (r *Record) Mature(minAge time.Duration, now time.Time) []wire.ProviderVersion {
	list := make([]wire.ProviderVersion, 0, len(r.Versions))
	for _, d := range r.Versions {
		if !d.Matures(minAge).After(now) {
			list = append(list, d.ProviderVersion)
		}
	}
	return list
}

// Weigh estimates how many bytes a record and its list take in memory. Platforms that
// versions share count once.
func (r *Record) Weigh() int64 {
	total := 256 * len(r.missing)
	shared := make(map[*address.Platform]bool)
	for _, d := range r.Versions {
		total += 256 + len(d.Version)
		for _, p := range d.Protocols {
			total += 16 + len(p)
		}
		if len(d.Platforms) == 0 || shared[&d.Platforms[0]] {
			continue
		}
		shared[&d.Platforms[0]] = true
		for _, p := range d.Platforms {
			total += 32 + len(p.OS) + len(p.Arch)
		}
	}
	return int64(total)
}

type recordFile struct {
	Format   int             `json:"format"`
	Of       string          `json:"of,omitempty"`
	Fetched  time.Time       `json:"fetched"`
	Versions []recordVersion `json:"versions"`

	// Earlier releases do not know this field, and leave it out of the records that
	// they write.
	Missing []recordVersion `json:"missing,omitempty"`
}

type recordVersion struct {
	Version   string             `json:"version"`
	Protocols []string           `json:"protocols,omitempty"`
	Platforms []address.Platform `json:"platforms,omitempty"`
	Published time.Time          `json:"published,omitzero"`
	Lacked    time.Time          `json:"lacked,omitzero"` // since the release that has it
	Seen      time.Time          `json:"seen,omitzero"`
	Asked     bool               `json:"asked,omitempty"`
	Listed    time.Time          `json:"listed,omitzero"` // of a missing version
}

func (d DatedVersion) encode(listed time.Time) recordVersion {
	return recordVersion{d.Version, d.Protocols, d.Platforms, d.Published.UTC(), d.Lacked.UTC(), d.Seen.UTC(), d.Asked, listed.UTC()}
}

func (r *Record) encode() []byte {
	file := recordFile{Format: recordFormat, Of: r.Of, Fetched: r.Fetched.UTC(), Versions: make([]recordVersion, len(r.Versions))}
	for i, d := range r.Versions {
		file.Versions[i] = d.encode(time.Time{})
	}
	for _, m := range r.missing {
		file.Missing = append(file.Missing, m.encode(m.Listed))
	}
	content, err := json.Marshal(file)
	if err != nil {
		return nil // a date in the year 10000: the record is not kept
	}
	return append(content, '\n')
}

// ErrDamaged: the record in the tree cannot be used.
var ErrDamaged = errors.New("the record of versions is damaged")

// decode reads a result of encode. If anything is wrong in a record, the whole
// record is refused, since its dates may be wrong, too.
func decode(content []byte) (*Record, error) {
	var file recordFile
	if err := json.Unmarshal(content, &file); err != nil || file.Format != recordFormat || file.Fetched.IsZero() {
		return nil, ErrDamaged
	}
	r := &Record{Of: file.Of, Fetched: file.Fetched}
	list := make([]wire.ProviderVersion, len(file.Versions))
	shared := make(map[string][]address.Platform)
	for i, v := range file.Versions {
		if len(v.Platforms) > 0 {
			written := fmt.Sprint(v.Platforms)
			if _, ok := shared[written]; !ok {
				shared[written] = v.Platforms
			}
			v.Platforms = shared[written]
		}
		list[i] = wire.ProviderVersion{Version: v.Version, Protocols: v.Protocols, Platforms: v.Platforms}
		if v.Seen.IsZero() { // the record was written before versions of a first list had this date
			v.Seen = file.Fetched
		}
		r.Versions = append(r.Versions, DatedVersion{list[i], v.Published, v.Lacked, v.Seen, v.Asked || !v.Published.IsZero()})
		for _, p := range v.Platforms {
			if _, err := address.ParsePlatform(p.OS, p.Arch); err != nil {
				return nil, ErrDamaged
			}
		}
		if len(wire.ValidProtocols(slices.Clone(v.Protocols))) != len(v.Protocols) {
			return nil, ErrDamaged
		}
	}
	for _, v := range file.Missing {
		if _, err := address.ParseProviderVersion(v.Version); err != nil || v.Seen.IsZero() || v.Listed.IsZero() {
			return nil, ErrDamaged
		}
		r.missing = append(r.missing, missingVersion{DatedVersion{wire.ProviderVersion{Version: v.Version}, v.Published, v.Lacked, v.Seen, v.Asked}, v.Listed})
	}
	if err := r.order(list); err != nil {
		return nil, err
	}
	return r, nil
}

// order puts the versions into the order of list, which has the same versions. Earlier
// releases wrote builds before the version without metadata.
func (r *Record) order(list []wire.ProviderVersion) error {
	dated := make(map[string]DatedVersion, len(r.Versions))
	for _, d := range r.Versions {
		dated[d.Version] = d
	}
	normal := wire.NormalVersions(list)
	if len(normal) != len(r.Versions) {
		return ErrDamaged
	}
	for i, v := range normal {
		d, ok := dated[v.Version]
		if !ok { // the record has another spelling
			return ErrDamaged
		}
		r.Versions[i] = d
	}
	return nil
}

// Read returns the record in the folder of a provider or module, or nil if there is none. The
// error is ErrDamaged, or says why the record cannot be read.
func Read(in tree.Part, dir string) (*Record, error) {
	content, err := in.ReadFile(path.Join(dir, tree.VersionsName), maxRecord)
	switch {
	case errors.Is(err, tree.ErrDocumentTooLarge):
		return nil, ErrDamaged
	case err != nil || content == nil:
		return nil, err
	}
	return decode(content)
}

// Write writes the record into the folder of a provider or module, and reports whether it has: a
// record that is too large is not kept.
func (r *Record) Write(in tree.Part, dir string) (written bool, err error) {
	content := r.encode()
	if content == nil || len(content) > maxRecord {
		return false, nil
	}
	err = in.WriteFile(path.Join(dir, tree.VersionsName), content)
	return err == nil, err
}

// Dates returns when versions of a provider or module were published at their origin, as far as
// the record in a tree says: with a minimum release age, origins are asked for it.
func Dates(files tree.Tree, a address.Address) (map[string]time.Time, error) {
	in, dir, err := files.Folder(a).Locate()
	if err != nil {
		return nil, err
	}
	r, err := Read(in, dir)
	if r == nil || err != nil {
		return nil, err
	}
	dates := make(map[string]time.Time)
	for _, m := range slices.Concat(r.listed(), r.missing) {
		if at := m.published(); !at.IsZero() {
			dates[m.Version] = at
		}
	}
	return dates, nil
}

// Proven returns the past that the folder of a provider or module proves although its record is
// damaged: a version existed at the time of its packages, or of the record of its package's
// source. No part of the damaged record counts, since any of its dates may be wrong. So
// versions that are not in the tree, and for which the origin has no date, wait for the
// minimum release age once more.
func Proven(ctx context.Context, in tree.Part, dir string, a address.Address) (*Record, error) {
	now, proven := time.Now(), new(Record)
	err := in.Walk(ctx, dir, func(name string, info fs.FileInfo) {
		version, ok := provenBy(a, dir, name)
		if ok && info.Mode().IsRegular() && info.ModTime().Before(now) {
			d := DatedVersion{ProviderVersion: wire.ProviderVersion{Version: version}, Seen: info.ModTime()}
			proven = proven.WithPastOf(&Record{missing: []missingVersion{{d, now}}})
		}
	})
	return proven, err
}

// provenBy returns the version that existed when a file was written.
func provenBy(a address.Address, dir, name string) (version string, ok bool) {
	if a.IsModule() {
		version, ok = tree.VersionOfSource(path.Base(name))
		return version, ok && path.Dir(name) == dir
	}
	f, err := address.ParseReleaseFile(a.Name, path.Base(name))
	if err != nil || f.Kind != address.PackageFile {
		return "", false
	}
	return f.Version.String(), true
}
