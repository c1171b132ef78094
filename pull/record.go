package pull

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
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

// A record is a list of versions from an origin. It does not change.
type record struct {
	Of       string           // the repository and the tags, of a hosted module
	Fetched  time.Time        // when the origin was asked: what is new since then may be missing
	Versions []datedVersion   // newest first
	Missing  []missingVersion // the last missing ones first
}

// A missingVersion was in earlier lists and is not in this record's list.
type missingVersion struct {
	datedVersion           // without protocols and platforms
	Listed       time.Time // time of the last list with the version
}

// A datedVersion is a version with the known facts about its age.
type datedVersion struct {
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
func (d datedVersion) published() time.Time {
	if d.Published.IsZero() {
		return time.Time{}
	}
	return later(d.Published, d.Lacked)
}

// matures returns when a version reaches the minimum release age, counted from its
// publication. If the origin does not say when that was, it counts from when the
// version was first seen: neither its number nor its place in the list says anything
// about its age.
func (d datedVersion) matures(minAge time.Duration) time.Time {
	switch {
	case minAge == 0:
		return time.Time{}
	case !d.Published.IsZero():
		return d.published().Add(minAge)
	}
	return d.Seen.Add(minAge)
}

// newRecord makes the record of a list. before is the previous record; nil if there is
// none.
func newRecord(list []wire.ProviderVersion, before *record, now time.Time) *record {
	r := &record{Fetched: now, Versions: make([]datedVersion, len(list))}
	var lacked time.Time
	if before != nil && before.Fetched.Before(now) { // else a clock was wrong
		lacked = before.Fetched
	}
	for i, v := range list {
		r.Versions[i] = datedVersion{ProviderVersion: v, Lacked: lacked, Seen: now}
	}
	if before == nil {
		return r
	}
	return r.withPastOf(before)
}

// withPastOf returns the record with the facts about the past in another record: when
// versions were first seen and published, and which versions there were. The other
// record may be earlier or later, and from another instance.
func (r *record) withPastOf(other *record) *record {
	forgotten := func(m missingVersion) bool { return !m.Listed.Add(missingFor).After(r.Fetched) }
	missing := make(map[string]missingVersion)
	for _, m := range slices.Concat(slices.DeleteFunc(slices.Concat(other.Missing, r.Missing), forgotten), other.listed()) {
		if known, ok := missing[m.Version]; ok {
			m.Listed = later(m.Listed, known.Listed)
			m.datedVersion = m.withPastOf(known.datedVersion)
		}
		missing[m.Version] = m
	}
	merged := &record{Of: r.Of, Fetched: r.Fetched, Versions: slices.Clone(r.Versions)}
	for i, d := range merged.Versions {
		if known, ok := missing[d.Version]; ok {
			merged.Versions[i] = d.withPastOf(known.datedVersion)
			delete(missing, d.Version)
		}
	}
	for _, m := range missing {
		if !forgotten(m) {
			merged.Missing = append(merged.Missing, m)
		}
	}
	slices.SortFunc(merged.Missing, func(a, b missingVersion) int {
		return cmp.Or(b.Listed.Compare(a.Listed), strings.Compare(a.Version, b.Version))
	})
	if len(merged.Missing) > maxMissing {
		merged.Missing = slices.Clone(merged.Missing[:maxMissing])
	}
	return merged
}

// maxSkew is how far the clocks of instances may differ.
const maxSkew = time.Hour

// newerThan reports whether a record was fetched after another one. A record from the future is older than
// all others: a clock was wrong, and the record would otherwise win until that time has come.
func (r *record) newerThan(other *record, now time.Time) bool {
	future := now.Add(maxSkew)
	return !r.Fetched.After(future) && (r.Fetched.After(other.Fetched) || other.Fetched.After(future))
}

// listed returns the versions of the record, in the form for versions missing in
// another one.
func (r *record) listed() []missingVersion {
	list := make([]missingVersion, len(r.Versions))
	for i, d := range r.Versions {
		d.ProviderVersion = wire.ProviderVersion{Version: d.Version}
		list[i] = missingVersion{d, r.Fetched}
	}
	return list
}

// withPastOf returns the version with the known facts about it in another record.
func (d datedVersion) withPastOf(known datedVersion) datedVersion {
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

// version finds a version by its text.
func (r *record) version(text string) (datedVersion, bool) {
	i := slices.IndexFunc(r.Versions, func(d datedVersion) bool { return d.Version == text })
	if i < 0 {
		return datedVersion{}, false
	}
	return r.Versions[i], true
}

// mature returns the versions that have the minimum release age, and the time at which
// there will be more of them; zero: never.
func (r *record) mature(minAge time.Duration, now time.Time) (list []wire.ProviderVersion, until time.Time) {
	list = make([]wire.ProviderVersion, 0, len(r.Versions))
	for _, d := range r.Versions {
		date := d.matures(minAge)
		if !date.After(now) {
			list = append(list, d.ProviderVersion)
		} else if until.IsZero() || date.Before(until) {
			until = date
		}
	}
	return list, until
}

// weigh estimates how many bytes a record and its list take in memory. Platforms that
// versions share count once.
func (r *record) weigh() int64 {
	total := 256 * len(r.Missing)
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

func (d datedVersion) encode(listed time.Time) recordVersion {
	return recordVersion{d.Version, d.Protocols, d.Platforms, d.Published.UTC(), d.Lacked.UTC(), d.Seen.UTC(), d.Asked, listed.UTC()}
}

func (r *record) encode() []byte {
	file := recordFile{Format: recordFormat, Of: r.Of, Fetched: r.Fetched.UTC(), Versions: make([]recordVersion, len(r.Versions))}
	for i, d := range r.Versions {
		file.Versions[i] = d.encode(time.Time{})
	}
	for _, m := range r.Missing {
		file.Missing = append(file.Missing, m.encode(m.Listed))
	}
	content, err := json.Marshal(file)
	if err != nil {
		return nil // a date in the year 10000: the record is not kept
	}
	return append(content, '\n')
}

var errBadRecord = errors.New("the record of versions is damaged")

// decodeRecord reads a result of encode. If anything is wrong in a record, the whole
// record is refused, since its dates may be wrong, too.
func decodeRecord(content []byte) (*record, error) {
	var file recordFile
	if err := json.Unmarshal(content, &file); err != nil || file.Format != recordFormat || file.Fetched.IsZero() {
		return nil, errBadRecord
	}
	r := &record{Of: file.Of, Fetched: file.Fetched}
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
		r.Versions = append(r.Versions, datedVersion{list[i], v.Published, v.Lacked, v.Seen, v.Asked || !v.Published.IsZero()})
		for _, p := range v.Platforms {
			if _, err := address.ParsePlatform(p.OS, p.Arch); err != nil {
				return nil, errBadRecord
			}
		}
		if len(wire.ValidProtocols(slices.Clone(v.Protocols))) != len(v.Protocols) {
			return nil, errBadRecord
		}
	}
	for _, v := range file.Missing {
		if _, err := address.ParseProviderVersion(v.Version); err != nil || v.Seen.IsZero() || v.Listed.IsZero() {
			return nil, errBadRecord
		}
		r.Missing = append(r.Missing, missingVersion{datedVersion{wire.ProviderVersion{Version: v.Version}, v.Published, v.Lacked, v.Seen, v.Asked}, v.Listed})
	}
	if err := r.order(list); err != nil {
		return nil, err
	}
	return r, nil
}

// order puts the versions into the order of list, which has the same versions. Earlier
// releases wrote builds before the version without metadata.
func (r *record) order(list []wire.ProviderVersion) error {
	dated := make(map[string]datedVersion, len(r.Versions))
	for _, d := range r.Versions {
		dated[d.Version] = d
	}
	normal := wire.NormalVersions(list)
	if len(normal) != len(r.Versions) {
		return errBadRecord
	}
	for i, v := range normal {
		d, ok := dated[v.Version]
		if !ok { // the record has another spelling
			return errBadRecord
		}
		r.Versions[i] = d
	}
	return nil
}

// readRecord returns the record in the tree, or nil if there is none. The error is
// errBadRecord if the record is damaged, or else ErrUnread.
func (c *catalog) readRecord() (*record, error) {
	_, in, dir, err := c.folder(c.address)
	if err != nil {
		return nil, err
	}
	r, err := readRecord(in, dir)
	if r != nil && r.Of != tagsOf(c.git) { // the module was in another repository
		return nil, nil
	}
	if r != nil {
		c.kept.Store(true)
	}
	return r, err
}

func readRecord(in tree.Part, dir string) (*record, error) {
	content, err := read(in, path.Join(dir, tree.VersionsName), maxRecord)
	switch {
	case errors.Is(err, ErrConflict): // the file is too large
		return nil, errBadRecord
	case err != nil || content == nil:
		return nil, err
	}
	return decodeRecord(content)
}

// Dates returns when versions of a provider or module were published at their origin, as far as
// the record in a tree says: with a minimum release age, origins are asked for it.
func Dates(files tree.Tree, a address.Address) (map[string]time.Time, error) {
	in, dir, err := files.Folder(a).In()
	if err != nil {
		return nil, unread(err)
	}
	r, err := readRecord(in, dir)
	if r == nil || err != nil {
		return nil, err
	}
	dates := make(map[string]time.Time)
	for _, m := range slices.Concat(r.listed(), r.Missing) {
		if at := m.published(); !at.IsZero() {
			dates[m.Version] = at
		}
	}
	return dates, nil
}

// keepRecord writes a record if the tree has a folder of the provider or module:
// clients may request any address, and must not fill the tree with directories. With a
// minimum release age it is always written, since it says when versions were first
// seen. So it does not replace a record that cannot be read now, and keeps the past in
// the record of the tree, which another instance may have written. A damaged record is
// set aside.
func (c *catalog) keepRecord(r *record) error {
	c.keeping.Lock() // otherwise one of two concurrent records would be lost
	defer c.keeping.Unlock()
	_, in, dir, err := c.folder(c.address)
	if err != nil {
		return err
	}
	if c.source.Policy.MinAge == 0 {
		if exists, err := in.Exists(dir); err != nil || !exists {
			return err // keepRecordOf does it with the first package
		}
	}
	name := path.Join(dir, tree.VersionsName)
	switch before, err := readRecord(in, dir); {
	case errors.Is(err, errBadRecord):
		if err := in.Move(name, path.Join(dir, tree.DamagedVersionsName)); err != nil {
			return err
		}
		c.log(slog.LevelWarn, "the list of versions that was kept is damaged: versions without a date of publication count as new, but for those in the tree",
			kindOf(c.address), c.address.String(), "kept_as", tree.DamagedVersionsName)
	case err != nil:
		return err
	case before != nil && before.Of != r.Of:
	case before != nil && before.newerThan(r, time.Now()): // another instance has written it meanwhile
		r = before.withPastOf(r)
	case before != nil:
		r = r.withPastOf(before)
	}
	content := r.encode()
	if content == nil || len(content) > maxRecord {
		return nil
	}
	if err := in.WriteFile(name, content); err != nil {
		return err
	}
	c.kept.Store(true)
	return nil
}

// provenRecord returns the past that the tree proves although the record is damaged: a
// version existed at the time of its packages, or of the record of its package's
// source. No part of the damaged record counts, since any of its dates may be wrong. So
// versions that are not in the tree, and for which the origin has no date, wait for the
// minimum release age once more.
func (c *catalog) provenRecord() (*record, error) {
	_, in, dir, err := c.folder(c.address)
	if err != nil {
		return nil, err
	}
	now, proven := time.Now(), new(record)
	err = in.Walk(c.ctx, dir, func(name string, info fs.FileInfo) {
		version, ok := c.provenBy(dir, name)
		if ok && info.Mode().IsRegular() && info.ModTime().Before(now) {
			d := datedVersion{ProviderVersion: wire.ProviderVersion{Version: version}, Seen: info.ModTime()}
			proven = proven.withPastOf(&record{Missing: []missingVersion{{d, now}}})
		}
	})
	return proven, unread(err)
}

// provenBy returns the version that existed when a file was written.
func (c *catalog) provenBy(dir, name string) (version string, ok bool) {
	if c.address.IsModule() {
		version, ok = tree.VersionOfSource(path.Base(name))
		return version, ok && path.Dir(name) == dir
	}
	f, err := address.ParseReleaseFile(c.address.Name, path.Base(name))
	if err != nil || f.Kind != address.PackageFile {
		return "", false
	}
	return f.Version.String(), true
}

// keepRecordOf writes the record with the first package of a provider or module, since
// there was no directory for it before.
func (f *Filler) keepRecordOf(a address.Address) {
	c, ok := f.catalogs.Get(a)
	if !ok || c.kept.Load() {
		return
	}
	c.mutex.Lock()
	r := c.record
	c.mutex.Unlock()
	if r != nil {
		c.keep(r)
	}
}
