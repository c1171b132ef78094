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
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// recordName is the file beside a provider's packages that outlives a restart,
// and tells other instances over the same tree. The index ignores it.
const recordName = ".versions.json"

// recordFormat is the only one there is.
const recordFormat = 1

// maxRecord bounds what is read back, in bytes; no list of versions is larger.
const maxRecord = 8 << 20

// A record is a list of versions as an origin gave it. It does not change.
type record struct {
	Fetched   time.Time
	Versions  []dated   // the newest first
	Unsettled time.Time // since first sight it is not known which versions are old; zero: it is
}

// weigh is about how many bytes a record has in memory, and the listing of it.
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
	Format    int               `json:"format"`
	Fetched   time.Time         `json:"fetched"`
	Unsettled time.Time         `json:"unsettled,omitzero"`
	Versions  []recordedVersion `json:"versions"`
}

type recordedVersion struct {
	Version   string             `json:"version"`
	Protocols []string           `json:"protocols,omitempty"`
	Platforms []address.Platform `json:"platforms,omitempty"`
	Published time.Time          `json:"published,omitzero"`
	Seen      time.Time          `json:"seen,omitzero"`
}

func (r *record) encode() []byte {
	file := recordFile{Format: recordFormat, Fetched: r.Fetched.UTC(), Unsettled: r.Unsettled.UTC(), Versions: make([]recordedVersion, len(r.Versions))}
	for i, d := range r.Versions {
		file.Versions[i] = recordedVersion{d.Version, d.Protocols, d.Platforms, d.Published.UTC(), d.Seen.UTC()}
	}
	content, err := json.Marshal(file)
	if err != nil {
		return nil // a date of the year 10000: the record is not kept
	}
	return append(content, '\n')
}

var errRecordDamaged = errors.New("the record of versions is damaged")

// decodeRecord reads what encode wrote. A record of which anything is wrong is
// worth nothing: the origin has a better one.
func decodeRecord(content []byte) (*record, error) {
	var file recordFile
	if err := json.Unmarshal(content, &file); err != nil || file.Format != recordFormat || file.Fetched.IsZero() {
		return nil, errRecordDamaged
	}
	r := &record{Fetched: file.Fetched, Unsettled: file.Unsettled}
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
		r.Versions = append(r.Versions, dated{list[i], v.Published, v.Seen})
		for _, p := range v.Platforms {
			if _, err := address.ParsePlatform(p.OS, p.Arch); err != nil {
				return nil, errRecordDamaged
			}
		}
		if len(wire.ValidProtocols(slices.Clone(v.Protocols))) != len(v.Protocols) {
			return nil, errRecordDamaged
		}
	}
	sorted := wire.NormalVersions(list)
	if !slices.EqualFunc(list, sorted, func(a, b wire.ProviderVersion) bool { return a.Version == b.Version }) {
		return nil, errRecordDamaged
	}
	return r, nil
}

// readRecord is what the tree remembers; nil if that is nothing of use.
func (c *catalog) readRecord() *record {
	p, err := c.place(c.address)
	if err != nil {
		return nil
	}
	content, err := read(p.providers, path.Join(p.dir, recordName), maxRecord)
	if err != nil {
		return nil
	}
	r, err := decodeRecord(content)
	if err != nil {
		return nil
	}
	c.kept.Store(true)
	return r
}

// keepRecord writes a record down if something of the provider is held: anybody
// may ask for any provider, and is not to fill the tree with folders of them by
// it. Where versions have to be of some age it is written all the same, since it
// says when they were seen.
func (c *catalog) keepRecord(r *record) error {
	content := r.encode()
	if content == nil || len(content) > maxRecord {
		return nil
	}
	p, err := c.place(c.address)
	if err != nil {
		return err
	}
	if c.source.Policy.MinAge == 0 {
		if _, err := p.providers.Fs.Stat(path.Join(p.providers.Dir, p.dir)); errors.Is(err, fs.ErrNotExist) {
			return nil // keepRecordOf does it with the first fill
		}
	}
	if err := write(p.providers, path.Join(p.dir, recordName), content); err != nil {
		return err
	}
	c.kept.Store(true)
	return nil
}

// keepRecordOf writes down, with the first package of a provider, what there was
// no folder for before.
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
