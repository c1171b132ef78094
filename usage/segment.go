package usage

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A segment has counts of one day.
type segment struct {
	// ID makes segments with the same counts differ.
	ID string `json:"id"`

	// Parts are segments that count with this one, and not without it: the counts of a merged
	// segment may be too many for one value.
	Parts []string `json:"parts,omitempty"`

	// Replaces are segments whose counts this one has.
	Replaces []string `json:"replaces,omitempty"`

	// Partial says that there were more downloads than are counted.
	Partial bool `json:"partial,omitempty"`

	Downloads tally            `json:"downloads,omitempty"`
	By        map[string]tally `json:"by,omitempty"` // by user or group
}

// A tally has counts by address, version and platform.
type tally map[string]map[string]map[string]uint64

func (t tally) add(u *Use, n uint64) {
	a := u.Address.String()
	if t[a] == nil {
		t[a] = make(map[string]map[string]uint64)
	}
	if t[a][u.Version] == nil {
		t[a][u.Version] = make(map[string]uint64)
	}
	t[a][u.Version][u.Platform] += n
}

// The kinds of segments.
const (
	ofMinute = "minute" // the counts of an instance in a minute
	ofDay    = "day"    // merged
	ofPart   = "part"   // one of the Parts of a merged one
)

// A segmentName is the name of a segment: the version of the format, the day, the kind and the
// hash of the bytes. Segments of other versions are left to the instances that know them.
type segmentName struct {
	day  Day
	kind string
	text string
}

const (
	segmentVersion = "1-"
	dayInName      = "20060102"
)

func nameSegment(day Day, kind string, content []byte) segmentName {
	sum := sha256.Sum256(content)
	return segmentName{day, kind, segmentVersion + day.Time().Format(dayInName) + "-" + kind + "-" + hex.EncodeToString(sum[:16])}
}

func parseSegmentName(text string) (n segmentName, ok bool) {
	rest, ok := strings.CutPrefix(text, segmentVersion)
	if !ok {
		return n, false
	}
	parts := strings.Split(rest, "-")
	if len(parts) != 3 || !slices.Contains([]string{ofMinute, ofDay, ofPart}, parts[1]) {
		return n, false
	}
	day, err := time.Parse(dayInName, parts[0])
	return segmentName{DayOf(day), parts[1], text}, err == nil && DayOf(day).Time().Equal(day)
}

// Limits of a segment, in bytes. Some storages, such as Consul, limit values to half a megabyte.
const (
	maxSegment = 256 << 10 // before it is compressed
	maxDecoded = 4 << 20
	maxCount   = 1 << 48 // a greater count is damage, and could make sums wrong

	overheadOfUse = 48 // beside its texts
)

// split returns segments of counts, at least one, each of at most that many bytes.
func split(of map[Use]uint64, most int) iter.Seq[*segment] {
	return func(yield func(*segment) bool) {
		s, size := new(segment), 0
		for _, u := range slices.SortedFunc(maps.Keys(of), Use.compare) {
			added := overheadOfUse + len(u.Address.Hostname) + len(u.Address.Namespace) + len(u.Address.Name) + len(u.Address.System) + len(u.Version) + len(u.Platform) + len(u.By)
			if size > 0 && size+added > most {
				if !yield(s) {
					return
				}
				s, size = new(segment), 0
			}
			s.add(&u, of[u])
			size += added
		}
		yield(s)
	}
}

func (u Use) compare(other Use) int {
	if c := strings.Compare(u.By, other.By); c != 0 {
		return c
	}
	if c := u.Address.Compare(other.Address); c != 0 {
		return c
	}
	return strings.Compare(u.Version+" "+u.Platform, other.Version+" "+other.Platform)
}

func (s *segment) add(u *Use, n uint64) {
	to := &s.Downloads
	if u.By != "" {
		if s.By == nil {
			s.By = make(map[string]tally)
		}
		t := s.By[u.By]
		to = &t
		defer func() { s.By[u.By] = *to }()
	}
	if *to == nil {
		*to = make(tally)
	}
	to.add(u, n)
}

// encode returns the bytes of a segment, which differ from the bytes of any other.
func (s *segment) encode() []byte {
	s.ID = rand.Text()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_ = json.NewEncoder(w).Encode(s) // texts and numbers always encode, and a buffer takes them
	_ = w.Close()
	return b.Bytes()
}

var errDamaged = errors.New("the segment is damaged")

// decodeSegment reads a segment.
func decodeSegment(name segmentName, content []byte) (*segment, error) {
	if nameSegment(name.day, name.kind, content) != name {
		return nil, errDamaged
	}
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, errDamaged
	}
	s := new(segment)
	if json.NewDecoder(io.LimitReader(r, maxDecoded)).Decode(s) != nil {
		return nil, errDamaged
	}
	return s, nil
}

// sumInto adds the counts of a segment to others.
func (s *segment) sumInto(sum *dayTally) {
	s.Downloads.sumInto(sum.uses, "")
	for by, t := range s.By {
		t.sumInto(sum.uses, by)
	}
	sum.partial = sum.partial || s.Partial
}

func (t tally) sumInto(sum map[Use]uint64, by string) {
	for text, versions := range t {
		a, err := address.Parse(text)
		if err != nil {
			continue
		}
		for version, platforms := range versions {
			for platform, n := range platforms {
				if n <= maxCount {
					sum[Use{a, version, platform, by}.normal()] += n
				}
			}
		}
	}
}
