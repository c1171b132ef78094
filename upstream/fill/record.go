package fill

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

// recordName is the file beside the packages of a provider or module in which its list
// of versions outlives a restart, and is shared by instances over the same tree. The
// index ignores it.
const recordName = ".versions.json"

// damagedSuffix is added to the name of a record that is damaged.
const damagedSuffix = ".damaged"

// IsRecord reports whether a file of that name, beside packages, has a list of versions, or
// had one before it was damaged. Without packages it has no use.
func IsRecord(name string) bool { return name == recordName || name == recordName+damagedSuffix }

// recordFormat is the only one there is.
const recordFormat = 1

// maxRecord bounds what is read back, in bytes; no list of versions is larger.
const maxRecord = 8 << 20

// A version that is missing in an origin's list may be back in the next one. For so long, and
// of so many versions, it is remembered when they were first seen.
const (
	missingFor = 90 * 24 * time.Hour
	maxMissing = 2000
)

// A record is a list of versions as an origin sent it. It does not change.
type record struct {
	Fetched  time.Time
	Versions []datedVersion   // the newest first
	Missing  []missingVersion // the last ones first
}

// A missingVersion was in earlier lists and is not in the record's.
type missingVersion struct {
	datedVersion           // without protocols and platforms
	Listed       time.Time // when an origin last listed it
}

// A datedVersion is a version with what is known of its age.
type datedVersion struct {
	wire.ProviderVersion
	Published time.Time // according to the origin; zero: unknown
	Seen      time.Time // when this mirror first had it in a list
	Asked     bool      // the origin has been asked for Published
}

// matures is when a version reaches the minimum release age, counted from its
// publication. If the origin does not tell that, from when it was first seen:
// nothing is concluded from its number, nor from its place in the list.
func (d datedVersion) matures(minAge time.Duration) time.Time {
	switch {
	case minAge == 0:
		return time.Time{}
	case !d.Published.IsZero():
		return d.Published.Add(minAge)
	}
	return d.Seen.Add(minAge)
}

// newRecord makes the record of a list, with what was known before; nil: nothing.
func newRecord(list []wire.ProviderVersion, before *record, now time.Time) *record {
	r := &record{Fetched: now, Versions: make([]datedVersion, len(list))}
	for i, v := range list {
		r.Versions[i] = datedVersion{ProviderVersion: v, Seen: now}
	}
	if before == nil {
		return r
	}
	return r.withPastOf(before)
}

// withPastOf is the record with what the other one knows of the past: when versions were
// first seen and published, and which ones there were. The other one may be the earlier or
// the later one, and of another instance.
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
	merged := &record{Fetched: r.Fetched, Versions: slices.Clone(r.Versions)}
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

// listed are the versions of the record, for the case that another one lacks them.
func (r *record) listed() []missingVersion {
	list := make([]missingVersion, len(r.Versions))
	for i, d := range r.Versions {
		d.ProviderVersion = wire.ProviderVersion{Version: d.Version}
		list[i] = missingVersion{d, r.Fetched}
	}
	return list
}

// withPastOf is the version with what is known of it from another record.
func (d datedVersion) withPastOf(known datedVersion) datedVersion {
	if !d.Asked {
		d.Published, d.Asked = known.Published, known.Asked
	}
	if known.Seen.Before(d.Seen) {
		d.Seen = known.Seen
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

// mature lists the versions that have the minimum release age, until when there
// will be more of them; zero: never.
func (r *record) mature(minAge time.Duration, now time.Time) (list []wire.ProviderVersion, until time.Time) {
	list = make([]wire.ProviderVersion, 0, len(r.Versions))
	for _, d := range r.Versions {
		at := d.matures(minAge)
		if !at.After(now) {
			list = append(list, d.ProviderVersion)
		} else if until.IsZero() || at.Before(until) {
			until = at
		}
	}
	return list, until
}

// weigh is about how many bytes a record and the listing of it take in memory.
// Platforms that versions share count once.
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
	Fetched  time.Time       `json:"fetched"`
	Versions []recordVersion `json:"versions"`

	// Earlier releases do not know it, and write records without it.
	Missing []recordVersion `json:"missing,omitempty"`
}

type recordVersion struct {
	Version   string             `json:"version"`
	Protocols []string           `json:"protocols,omitempty"`
	Platforms []address.Platform `json:"platforms,omitempty"`
	Published time.Time          `json:"published,omitzero"`
	Seen      time.Time          `json:"seen,omitzero"`
	Asked     bool               `json:"asked,omitempty"`
	Listed    time.Time          `json:"listed,omitzero"` // of a missing version
}

func (d datedVersion) encode(listed time.Time) recordVersion {
	return recordVersion{d.Version, d.Protocols, d.Platforms, d.Published.UTC(), d.Seen.UTC(), d.Asked, listed.UTC()}
}

func (r *record) encode() []byte {
	file := recordFile{Format: recordFormat, Fetched: r.Fetched.UTC(), Versions: make([]recordVersion, len(r.Versions))}
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

// decodeRecord reads what encode wrote. Nothing counts of a record with anything wrong in
// it: a date in it may be wrong too.
func decodeRecord(content []byte) (*record, error) {
	var file recordFile
	if err := json.Unmarshal(content, &file); err != nil || file.Format != recordFormat || file.Fetched.IsZero() {
		return nil, errBadRecord
	}
	r := &record{Fetched: file.Fetched}
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
		if v.Seen.IsZero() { // it was written before versions of a first list had one
			v.Seen = file.Fetched
		}
		r.Versions = append(r.Versions, datedVersion{list[i], v.Published, v.Seen, v.Asked || !v.Published.IsZero()})
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
		r.Missing = append(r.Missing, missingVersion{datedVersion{wire.ProviderVersion{Version: v.Version}, v.Published, v.Seen, v.Asked}, v.Listed})
	}
	if err := r.order(list); err != nil {
		return nil, err
	}
	return r, nil
}

// order brings the versions, which are the versions of list, into the order of lists. Earlier
// releases have written builds before the plain version.
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
		if !ok { // it is written otherwise there
			return errBadRecord
		}
		r.Versions[i] = d
	}
	return nil
}

// readRecord returns the record in the tree, or nil if there is none. The error is
// errBadRecord for one that is damaged, or else ErrUnread.
func (c *catalog) readRecord() (*record, error) {
	_, in, dir, err := c.folder(c.address)
	if err != nil {
		return nil, err
	}
	r, err := readRecord(in, dir)
	if r != nil {
		c.kept.Store(true)
	}
	return r, err
}

func readRecord(in tree.Part, dir string) (*record, error) {
	content, err := read(in, path.Join(dir, recordName), maxRecord)
	switch {
	case errors.Is(err, ErrConflict): // it is too large
		return nil, errBadRecord
	case err != nil || content == nil:
		return nil, err
	}
	return decodeRecord(content)
}

// keepRecord writes a record if the tree has a folder of the provider or module: clients
// may request any, and must not fill the tree with directories that way.
// With a minimum release age it is always written, since it says when versions
// were first seen. So it is written over no record that cannot be read now, and what that
// in the tree knows of the past stays: another instance may have written it. A damaged
// one is kept aside.
func (c *catalog) keepRecord(r *record) error {
	c.keeping.Lock() // or one of two would be lost that are kept at the same time
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
	name := path.Join(dir, recordName)
	switch before, err := readRecord(in, dir); {
	case errors.Is(err, errBadRecord):
		if err := in.Fs.Rename(path.Join(in.Dir, name), path.Join(in.Dir, name+damagedSuffix)); err != nil {
			return tree.StorageError(err)
		}
		c.log(slog.LevelWarn, "the list of versions that was kept is damaged: versions without a date of publication count as new, but for those in the tree",
			kindOf(c.address), c.address.String(), "kept_as", recordName+damagedSuffix)
	case err != nil:
		return err
	case before != nil && before.Fetched.After(r.Fetched): // it was written meanwhile
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

// provenRecord returns a record that is made from the tree, in place of a damaged one: a
// version was there at the time of its packages, or of the record of where its package came
// from. Nothing of the damaged record counts, since any date in it may be wrong. So versions
// that are not in the tree, and whose date the origin does not tell, wait for the minimum
// release age once more.
func (c *catalog) provenRecord() (*record, error) {
	_, in, dir, err := c.folder(c.address)
	if err != nil {
		return nil, err
	}
	now, proven := time.Now(), new(record)
	err = in.WalkFiles(c.ctx, dir, func(name string, info fs.FileInfo) {
		version, ok := c.provenBy(dir, name)
		if ok && info.Mode().IsRegular() && info.ModTime().Before(now) {
			d := datedVersion{ProviderVersion: wire.ProviderVersion{Version: version}, Seen: info.ModTime()}
			proven = proven.withPastOf(&record{Missing: []missingVersion{{d, now}}})
		}
	})
	return proven, unread(err)
}

// provenBy returns the version that was there when a file was written.
func (c *catalog) provenBy(dir, name string) (version string, ok bool) {
	if c.address.IsModule() {
		version, ok = versionOfSourceRecord(path.Base(name))
		return version, ok && path.Dir(name) == dir
	}
	f, err := address.ParseReleaseFile(c.address.Name, path.Base(name))
	if err != nil || f.Kind != address.PackageFile {
		return "", false
	}
	return f.Version.String(), true
}

// keepRecordOf writes, with the first package of a provider or module, what there was no
// directory for before.
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
