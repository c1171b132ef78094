package fill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// recordName is the file beside the packages of a provider or module in which its list
// of versions outlives a restart, and is shared by instances over the same tree. The
// index ignores it.
const recordName = ".versions.json"

// recordFormat is the only one there is.
const recordFormat = 1

// maxRecord bounds what is read back, in bytes; no list of versions is larger.
const maxRecord = 8 << 20

// A record is a list of versions as an origin sent it. It does not change.
type record struct {
	Fetched  time.Time
	Versions []datedVersion // the newest first
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
	known := make(map[string]datedVersion)
	if before != nil {
		for _, d := range before.Versions {
			known[d.Version] = d
		}
	}
	r := &record{Fetched: now, Versions: make([]datedVersion, len(list))}
	for i, v := range list {
		d, ok := known[v.Version]
		if d.ProviderVersion = v; !ok {
			d.Seen = now
		}
		r.Versions[i] = d
	}
	return r
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

// withDatesOf is the record with the dates that only the other one has.
func (r *record) withDatesOf(other *record) *record {
	asked := make(map[string]time.Time)
	for _, d := range other.Versions {
		if d.Asked {
			asked[d.Version] = d.Published
		}
	}
	changed := *r
	changed.Versions = slices.Clone(r.Versions)
	for i := range changed.Versions {
		d := &changed.Versions[i]
		if published, ok := asked[d.Version]; ok && !d.Asked {
			d.Published, d.Asked = published, true
		}
	}
	return &changed
}

// weigh is about how many bytes a record and the listing of it take in memory.
// Platforms that versions share count once.
func (r *record) weigh() int64 {
	total := 0
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
}

type recordVersion struct {
	Version   string             `json:"version"`
	Protocols []string           `json:"protocols,omitempty"`
	Platforms []address.Platform `json:"platforms,omitempty"`
	Published time.Time          `json:"published,omitzero"`
	Seen      time.Time          `json:"seen,omitzero"`
	Asked     bool               `json:"asked,omitempty"`
}

func (r *record) encode() []byte {
	file := recordFile{Format: recordFormat, Fetched: r.Fetched.UTC(), Versions: make([]recordVersion, len(r.Versions))}
	for i, d := range r.Versions {
		file.Versions[i] = recordVersion{d.Version, d.Protocols, d.Platforms, d.Published.UTC(), d.Seen.UTC(), d.Asked}
	}
	content, err := json.Marshal(file)
	if err != nil {
		return nil // a date in the year 10000: the record is not kept
	}
	return append(content, '\n')
}

var errBadRecord = errors.New("the record of versions is damaged")

// decodeRecord reads what encode wrote. A record with anything wrong in it is
// ignored: the origin has a better one.
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
	if err := r.order(list); err != nil {
		return nil, err
	}
	return r, nil
}

// order brings the versions, which are those of list, into the order of lists. Earlier
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

// readRecord returns the record in the tree, or nil if there is none of use. The error is
// index.ErrStore: there may be one.
func (c *catalog) readRecord() (*record, error) {
	_, in, dir, err := c.folder(c.address)
	var content []byte
	if err == nil {
		content, err = read(in, path.Join(dir, recordName), maxRecord)
	}
	switch {
	case errors.Is(err, index.ErrStore):
		return nil, err
	case err != nil:
		return nil, nil
	}
	r, err := decodeRecord(content)
	if err != nil {
		return nil, nil
	}
	c.kept.Store(true)
	return r, nil
}

// keepRecord writes a record if the tree has a folder of the provider or module: clients
// may request any, and must not fill the tree with directories that way.
// With a minimum release age it is always written, since it says when versions
// were first seen.
func (c *catalog) keepRecord(r *record) error {
	content := r.encode()
	if content == nil || len(content) > maxRecord {
		return nil
	}
	_, in, dir, err := c.folder(c.address)
	if err != nil {
		return err
	}
	if c.source.Policy.MinAge == 0 {
		if _, err := in.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil // keepRecordOf does it with the first package
		}
	}
	if err := in.WriteFile(path.Join(dir, recordName), content); err != nil {
		return err
	}
	c.kept.Store(true)
	return nil
}

// keepRecordOf writes, with the first package of a provider or module, what there was no
// directory for before.
func (f *Filler) keepRecordOf(a address.Address) {
	c, ok := f.catalogs.get(a)
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
